// SPDX-License-Identifier: Apache-2.0

package topo_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/topo/topotest"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

func port(s string) ident.Port {
	p, err := ident.ParsePort(s)
	if err != nil {
		panic(err)
	}
	return p
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// spell writes paths as one line each.
func spell(g *topo.Graph, paths []topo.Path) string {
	var out []string
	for _, p := range paths {
		var links []string
		for _, l := range g.Ports(p) {
			links = append(links, strings.TrimPrefix(l.String(), "lab/"))
		}
		out = append(out, p.Via+": "+strings.Join(links, " "))
	}
	return strings.Join(out, "\n")
}

func TestPaths(t *testing.T) {
	for _, c := range []struct {
		name, src, dst string
		cut            []string
		want           string
	}{
		{"same leaf", "10.1.1.2", "10.1.2.2", nil, "l1: n1:rail0 l1:h2"},
		{"over the spines", "10.1.4.2", "10.3.7.2", nil, "s1: n4:rail0 l1:sp1 s1:lf3 l3:h7\ns2: n4:rail0 l1:sp2 s2:lf3 l3:h7"},
		{"own uplink cut", "10.1.4.2", "10.3.7.2", []string{"lab/l1:sp1"}, "s2: n4:rail0 l1:sp2 s2:lf3 l3:h7"},
		{"remote link cut: no valley over another leaf", "10.1.4.2", "10.3.7.2", []string{"lab/s2:lf3"}, "s1: n4:rail0 l1:sp1 s1:lf3 l3:h7"},
		{"nothing left", "10.1.4.2", "10.3.7.2", []string{"lab/s2:lf3", "lab/l1:sp1"}, ""},
		{"node unplugged", "10.1.4.2", "10.3.7.2", []string{"lab/l3:h7"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := topotest.Lab()
			for _, p := range c.cut {
				topotest.Cut(f, port(p))
			}
			g := topo.NewGraph(f)
			paths, err := g.Paths(addr(c.src), addr(c.dst))
			if err != nil {
				t.Fatal(err)
			}
			if got := spell(g, paths); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestThreeTiers: paths between pods go over the core and are not pinnable; paths inside a pod stay inside.
func TestThreeTiers(t *testing.T) {
	f := topotest.New(topotest.Options{Leaves: 4, Spines: 2, Rails: 1, Hosts: 4})
	// Make s1 and s2 the spines of l1, l2 and l3, l4, and join them by two core switches.
	for _, p := range []string{"l1:sp2", "l2:sp2", "l3:sp1", "l4:sp1"} {
		l := f.Links[port("lab/"+p)]
		delete(f.Links, l.To)
		delete(f.Links, l.From)
	}
	for _, c := range []string{"c1", "c2"} {
		f.Switches[c] = topo.Switch{Name: c, Tier: 2}
		for _, s := range []string{"s1", "s2"} {
			up, down := port("lab/"+s+":"+c), port("lab/"+c+":"+s)
			f.Links[up] = topo.Link{From: up, To: down, Direction: topo.Up, BytesPerSecond: 1, Up: true}
			f.Links[down] = topo.Link{From: down, To: up, Direction: topo.Down, BytesPerSecond: 1, Up: true}
		}
	}
	g := topo.NewGraph(f)
	inside, err := g.Paths(addr("10.1.1.2"), addr("10.2.2.2"))
	if err != nil || spell(g, inside) != "s1: n1:rail0 l1:sp1 s1:lf2 l2:h2" {
		t.Errorf("inside a pod: %s, %v", spell(g, inside), err)
	}
	across, err := g.Paths(addr("10.1.1.2"), addr("10.3.3.2"))
	want := "c1: n1:rail0 l1:sp1 s1:c1 c1:s2 s2:lf3 l3:h3\nc2: n1:rail0 l1:sp1 s1:c2 c2:s2 s2:lf3 l3:h3"
	if err != nil || spell(g, across) != want {
		t.Errorf("across: %s, %v", spell(g, across), err)
	}
	if _, err := g.PinNextHop(across[0]); err == nil || !strings.Contains(err.Error(), "only paths over one spine") {
		t.Errorf("pin across the core: %v", err)
	}
}

func TestNextHops(t *testing.T) {
	f := topotest.Lab()
	g := topo.NewGraph(f)
	paths, err := g.Paths(addr("10.1.4.2"), addr("10.3.7.2"))
	if err != nil {
		t.Fatal(err)
	}
	// Over s2: the far end of s2's link to l3 is l3's address on it; the direct next hop is s2's address on l1's link.
	if hop, err := g.PinNextHop(paths[1]); err != nil || hop != addr("10.0.32.0") {
		t.Errorf("pin over s2: %v, %v", hop, err)
	}
	if hop, err := g.DirectNextHop(paths[1]); err != nil || hop != addr("10.0.12.1") {
		t.Errorf("direct over s2: %v, %v", hop, err)
	}
	if n, err := g.PathsLeft(addr("10.1.4.2"), addr("10.3.7.2"), paths[1]); err != nil || n != 1 {
		t.Errorf("paths left: %d, %v", n, err)
	}
	local, _ := g.Paths(addr("10.1.1.2"), addr("10.1.2.2"))
	if _, err := g.PinNextHop(local[0]); err == nil || !strings.Contains(err.Error(), "inside leaf l1") {
		t.Errorf("pin inside a leaf: %v", err)
	}
	delete(f.Addresses, port("lab/l3:sp2"))
	if _, err := g.PinNextHop(paths[1]); err == nil || !strings.Contains(err.Error(), "lab/l3:sp2") {
		t.Errorf("pin without an address: %v", err)
	}
}

// TestParallelLinks: with two cables between the same switches a switch still chooses by hash.
func TestParallelLinks(t *testing.T) {
	f := topotest.Lab()
	up, down := port("lab/l1:sp1b"), port("lab/s1:lf1b")
	f.Links[up] = topo.Link{From: up, To: down, Direction: topo.Up, BytesPerSecond: 25e6, Up: true}
	f.Links[down] = topo.Link{From: down, To: up, Direction: topo.Down, BytesPerSecond: 25e6, Up: true}
	g := topo.NewGraph(f)
	paths, _ := g.Paths(addr("10.1.4.2"), addr("10.3.7.2"))
	if len(paths) != 3 {
		t.Fatalf("%d paths, want 3", len(paths))
	}
	if _, err := g.PinNextHop(paths[0]); err == nil || !strings.Contains(err.Error(), "2 parallel links from l1 to s1") {
		t.Errorf("pin over parallel links: %v", err)
	}
}

func TestLookupsNameWhatIsMissing(t *testing.T) {
	g := topo.NewGraph(topotest.Lab())
	_, err := g.Paths(addr("10.9.9.9"), addr("10.3.7.2"))
	_, err2 := g.ID(port("lab/l9:sp1"))
	for _, e := range []struct {
		err  error
		want string
	}{{err, `nic 10.9.9.9: not in fabric "lab"`}, {err2, `link lab/l9:sp1: not in fabric "lab"`}} {
		if e.err == nil || e.err.Error() != e.want {
			t.Errorf("got %v, want %s", e.err, e.want)
		}
	}
}

func TestPeers(t *testing.T) {
	g := topo.NewGraph(topotest.New(topotest.Options{Spines: 3}))
	for link, want := range map[string][]string{
		"lab/l1:sp2": {"lab/l1:sp1", "lab/l1:sp3"},
		"lab/s2:lf3": {"lab/s1:lf3", "lab/s3:lf3"},
		"lab/l1:h1":  nil,
	} {
		id, err := g.ID(port(link))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range g.Peers(id) {
			got = append(got, g.Link(p).From.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("peers of %s: %v, want %v", link, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := topotest.Lab().Validate(); err != nil {
		t.Errorf("the lab: %v", err)
	}
	for name, c := range map[string]struct {
		spoil func(topo.Fabric)
		want  string
	}{
		"no way back":  {func(f topo.Fabric) { delete(f.Links, port("lab/s1:lf1")) }, "link lab/l1:sp1 to lab/s1:lf1: no link back"},
		"no speed":     {func(f topo.Fabric) { l := f.Links[port("lab/l1:sp1")]; l.BytesPerSecond = 0; f.Links[l.From] = l }, "speed 0"},
		"wrong key":    {func(f topo.Fabric) { f.Links[port("lab/l1:x")] = f.Links[port("lab/l1:sp1")] }, "stored under lab/l1:x"},
		"lost switch":  {func(f topo.Fabric) { delete(f.Switches, "s2") }, "not between two switches"},
		"no direction": {func(f topo.Fabric) { l := f.Links[port("lab/l1:sp1")]; l.Direction = ""; f.Links[l.From] = l }, `direction ""`},
		"stray nic":    {func(f topo.Fabric) { delete(f.Links, port("lab/l1:h1")) }, "nic 10.1.1.2 of n1: no access link from lab/l1:h1"},
		"wrong port": {func(f topo.Fabric) {
			n := f.NICs[addr("10.1.1.2")]
			n.Attached = port("lab/l1:h2")
			f.NICs[n.Addr] = n
		}, "access link lab/l1:h2 leads to lab/n2:rail0"},
	} {
		f := topotest.Lab()
		c.spoil(f)
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestLabIsTheLab(t *testing.T) {
	f := topotest.Lab()
	if n := len(f.Switches); n != 6 {
		t.Errorf("%d switches", n)
	}
	for k := 1; k <= 8; k++ {
		for rail := range 2 {
			leaf := 1 + rail
			if k > 4 {
				leaf += 2
			}
			n, ok := f.NICs[addr(fmt.Sprintf("10.%d.%d.2", leaf, k))]
			if !ok || n.Node != fmt.Sprintf("n%d", k) || n.Rail != rail || n.Attached.String() != fmt.Sprintf("lab/l%d:h%d", leaf, k) {
				t.Errorf("n%d rail %d: %+v", k, rail, n)
			}
		}
	}
	if a := f.Addresses[port("lab/l3:sp2")]; a != netip.MustParsePrefix("10.0.32.0/31") {
		t.Errorf("l3 sp2 has %s", a)
	}
}
