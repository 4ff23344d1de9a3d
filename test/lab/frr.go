// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/trainyard/trainyard/deploy/frr"
)

const (
	frrDir     = "/usr/lib/frr"
	frrModules = "/usr/lib/x86_64-linux-gnu/frr/modules"
)

// FRRInput is what a switch's bgpd configuration is rendered from.
type FRRInput struct {
	Hostname    string
	Leaf        bool
	ASN         uint32
	RouterID    netip.Addr
	Neighbours  []FRRNeighbour // spines of a leaf, leaves of a spine
	Networks    []netip.Prefix // host subnets of a leaf
	HostNets    []netip.Prefix // /16 of every OTHER leaf's hosts: what a controller may pin here
	FabricNets  []netip.Prefix // /16 of every leaf's hosts and of the links: what a controller is told
	LinkNets    netip.Prefix   // all leaf-spine /31s lie in it
	ControlPins netip.Addr
	ControlWts  netip.Addr
	AgentX      bool
}

// FRRNeighbour is one eBGP peer in the fabric.
type FRRNeighbour struct {
	Addr netip.Addr
	ASN  uint32
	Name string
}

// zebraForget has a switch forget a group of next hops a second after its last route. The kernel takes a member out of its
// group when the link goes down; FRR 8.4 keeps the group for 180 s, believes it whole when the link is back, and uses it
// again: all traffic would stay on the other spine.
const zebraForget = "zebra nexthop-group keep 1\n"

// bgpd.conf without the controller's peers, which are deploy/frr's to say. Leaves tell spines their own host subnets only (no path leads down, up and down again); spines tell
// leaves the /31 of each live link, which is what makes a recursive pin fall when the far link does (field rule 1). Filters come before what
// refers to them: FRR applies one that appears later only after its route-map delay of 5 s.
var bgpTemplate = template.Must(template.New("bgpd.conf").Parse(`hostname {{.Hostname}}
{{if .AgentX}}agentx
{{end}}{{if .Leaf}}{{range .Networks}}ip prefix-list OWN permit {{.}}
{{end}}{{else}}ip prefix-list LINKS permit {{.LinkNets}} ge 31 le 31
route-map LINKS permit 10
 match ip address prefix-list LINKS
exit
{{end}}router bgp {{.ASN}}
 bgp router-id {{.RouterID}}
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 bgp bestpath as-path multipath-relax
 timers bgp 3 9
 coalesce-time 50
 neighbor FABRIC peer-group
 neighbor FABRIC timers connect 1
 neighbor FABRIC advertisement-interval 0
{{range .Neighbours}} neighbor {{.Addr}} remote-as {{.ASN}}
 neighbor {{.Addr}} peer-group FABRIC
 neighbor {{.Addr}} description {{.Name}}
{{end}} address-family ipv4 unicast
{{range .Networks}}  network {{.}}
{{end}}{{if not .Leaf}}  redistribute connected route-map LINKS
{{end}}  neighbor FABRIC activate
{{if .Leaf}}  neighbor FABRIC prefix-list OWN out
{{end}}  maximum-paths 8
 exit-address-family
exit
`))

// BGPConfig is the package's own bgpd.conf of a switch.
func BGPConfig(in FRRInput) (string, error) {
	var b bytes.Buffer
	if err := bgpTemplate.Execute(&b, in); err != nil {
		return "", fmt.Errorf("render bgpd.conf of %s: %w", in.Hostname, err)
	}
	if !in.Leaf {
		return b.String(), nil
	}
	peers, err := frr.RenderLeafPeers(frr.Params{
		ASN: in.ASN, Pins: in.ControlPins, Weights: in.ControlWts, Prefixes: in.HostNets, Feed: in.FabricNets,
	})
	if err != nil {
		return "", fmt.Errorf("render bgpd.conf of %s: %w", in.Hostname, err)
	}
	return b.String() + peers, nil
}

// frrInput gathers what the configuration of one switch needs.
func (t Topology) frrInput(s Switch) FRRInput {
	in := FRRInput{
		Hostname: s.Name, Leaf: s.Tier == 0, ASN: s.ASN, RouterID: s.Mgmt, ControlPins: ControllerPins, ControlWts: ControllerWeights,
		LinkNets: netip.MustParsePrefix("10.0.0.0/16"),
	}
	for _, c := range t.Cables {
		switch {
		case c.Fabric && c.A == s.Name:
			peer, _ := t.Switch(c.B)
			in.Neighbours = append(in.Neighbours, FRRNeighbour{c.BAddr.Addr(), peer.ASN, c.B})
		case c.Fabric && c.B == s.Name:
			peer, _ := t.Switch(c.A)
			in.Neighbours = append(in.Neighbours, FRRNeighbour{c.AAddr.Addr(), peer.ASN, c.A})
		case c.A == s.Name:
			in.Networks = append(in.Networks, c.AAddr.Masked())
		}
	}
	for i := 1; i <= Leaves; i++ {
		hosts := netip.PrefixFrom(hostAddr(i, 0, 0), 16)
		in.FabricNets = append(in.FabricNets, hosts)
		if s.Tier == 0 && i != s.Index {
			in.HostNets = append(in.HostNets, hosts)
		}
	}
	in.FabricNets = append(in.FabricNets, in.LinkNets)
	return in
}

// startFRR starts zebra, staticd and bgpd in every switch.
func (l *Lab) startFRR(ctx context.Context) error {
	if l.cfg.NoBGP {
		return nil
	}
	account, err := user.Lookup("frr")
	if err != nil {
		return fmt.Errorf("find the user of FRR: %w", err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	var names []string
	for _, s := range l.Switches {
		names = append(names, s.Name)
	}
	return l.each(ctx, names, func(ctx context.Context, name string) error {
		s, _ := l.Switch(name)
		return l.startSwitchFRR(ctx, s, uid, gid)
	})
}

func (l *Lab) startSwitchFRR(ctx context.Context, s Switch, uid, gid int) error {
	dir, err := l.stateDir(s.Name, "frr")
	if err != nil {
		return err
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		return fmt.Errorf("give %s to FRR: %w", dir, err)
	}
	in := l.frrInput(s)
	in.AgentX = !l.cfg.NoAgents
	bgp, err := l.cfg.BGPConfig(in)
	if err != nil {
		return err
	}
	for file, text := range map[string]string{
		"zebra.conf":   "hostname " + s.Name + "\n" + zebraForget + frr.Zebra,
		"staticd.conf": "hostname " + s.Name + "\n",
		"bgpd.conf":    bgp,
		"vtysh.conf":   "",
		"frr.conf":     "agentXSocket " + l.agentX(s.Name) + "\n", // net-snmp's file of the application "frr"
	} {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := os.Chown(path, uid, gid); err != nil {
			return fmt.Errorf("give %s to FRR: %w", path, err)
		}
	}
	for _, daemon := range []string{"zebra", "staticd", "bgpd"} {
		if _, err := l.StartFRRDaemon(ctx, s.Name, daemon); err != nil {
			return err
		}
	}
	return nil
}

// StartFRRDaemon starts zebra, staticd or bgpd of a switch with the configuration in the state directory and waits
// until it answers. Up calls it; tests that killed a daemon may too.
func (l *Lab) StartFRRDaemon(ctx context.Context, place, daemon string) (*Process, error) {
	dir := filepath.Join(l.Dir, place, "frr")
	argv := []string{
		filepath.Join(frrDir, daemon), "-f", filepath.Join(dir, daemon+".conf"), "-i", filepath.Join(dir, daemon+".pid"),
		"-z", filepath.Join(dir, "zserv.api"), "--vty_socket", dir, "-P", "0", "--log", "file:" + filepath.Join(dir, daemon+".log"), "--log-level", "informational",
	}
	var env []string
	if daemon == "bgpd" && !l.cfg.NoAgents {
		argv = append(argv, "-M", "snmp")
		env = []string{"SNMPCONFPATH=" + dir, "SNMP_PERSISTENT_DIR=" + dir, "MIBS="}
	}
	out, err := os.Create(filepath.Join(dir, daemon+".out"))
	if err != nil {
		return nil, fmt.Errorf("start %s of %s: %w", daemon, place, err)
	}
	defer out.Close()
	p, err := l.Start(place, Command{Argv: argv, Env: env, Stdout: out, Stderr: out, Nice: agentNice})
	if err != nil {
		return nil, err
	}
	// The next daemon talks to this one's socket.
	err = waitFor(ctx, 10*time.Second, func() error {
		select {
		case <-p.Done():
			raw, _ := os.ReadFile(out.Name())
			return permanent{withOutput(fmt.Errorf("%s of %s ended: %w", daemon, place, p.Wait(ctx)), string(raw))}
		default:
		}
		_, err := os.Stat(filepath.Join(dir, daemon+".vty"))
		return err
	})
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("wait for %s of %s: %w", daemon, place, err)
	}
	return p, nil
}

// Vtysh runs one command in a switch's FRR shell.
func (l *Lab) Vtysh(ctx context.Context, place string, commands ...string) (string, error) {
	dir := filepath.Join(l.Dir, place, "frr")
	argv := []string{"vtysh", "--vty_socket", dir, "--config_dir", dir}
	for _, c := range commands {
		argv = append(argv, "-c", c)
	}
	out, err := l.Exec(ctx, place, argv...)
	return strings.TrimSpace(out), err
}

// converge waits until every leaf reaches every foreign host subnet over all spines, and every spine every subnet.
func (l *Lab) converge(ctx context.Context) error {
	if l.cfg.NoBGP {
		return nil
	}
	return waitFor(ctx, 30*time.Second, func() error {
		for _, s := range l.Switches {
			if err := l.converged(s); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *Lab) converged(s Switch) error {
	routes, err := l.Routes(s.Name)
	if err != nil {
		return err
	}
	hops := map[netip.Prefix]int{}
	for _, r := range routes {
		if r.Protocol == "bgp" {
			hops[r.Prefix] = len(r.NextHops)
		}
	}
	want := Spines
	if s.Tier == 1 {
		want = 1
	}
	for _, h := range l.Hosts {
		for _, n := range h.NICs {
			subnet := netip.PrefixFrom(n.Addr, 24).Masked()
			if n.Leaf != s.Name && hops[subnet] != want {
				return fmt.Errorf("%s has %d of %d next hops to %s", s.Name, hops[subnet], want, subnet)
			}
		}
	}
	if s.Tier == 1 {
		return nil
	}
	for _, c := range l.Cables {
		if subnet := c.AAddr.Masked(); c.Fabric && c.A != s.Name && hops[subnet] == 0 {
			return fmt.Errorf("%s has no route to link %s", s.Name, subnet)
		}
	}
	return nil
}
