// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/topo/topotest"
	"github.com/trainyard/trainyard/actuator/traffic"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

func port(s string) ident.Port {
	p, err := ident.ParsePort(s)
	if err != nil {
		panic(err)
	}
	return p
}

// scene is a graph with flows and the path of each connection, which the code under test must find out.
type scene struct {
	g      *topo.Graph
	flows  []traffic.Routed
	hidden traffic.Assignment
}

// loads are what counters would say, each off by up to noise.
func (s scene) loads(noise func() float64) map[ident.Port]float64 {
	out := map[ident.Port]float64{}
	for id, l := range s.sum() {
		out[s.g.Link(topo.LinkID(id)).From] = l * (1 + noise())
	}
	return out
}

// sum is what the flows put on every link.
func (s scene) sum() []float64 {
	out := make([]float64, s.g.Len())
	for i, f := range s.flows {
		for _, p := range s.hidden[i] {
			for _, id := range f.Paths[p].Links {
				out[id] += f.PerConnection()
			}
		}
	}
	return out
}

// build routes flows "n1>n5 MB/s connections" on rail 0.
func build(f topo.Fabric, routes []plan.Route, specs []traffic.Flow) scene {
	g := topo.NewGraph(f)
	flows, problems := traffic.Route(g, traffic.Matrix{Flows: specs}, traffic.NewTable(routes))
	if len(problems) > 0 {
		panic(problems)
	}
	return scene{g: g, flows: flows}
}

func hostFlow(src, dst int, rate float64, connections int) traffic.Flow {
	leaf := func(k int) byte {
		if k > 4 {
			return 3
		}
		return 1
	}
	return traffic.Flow{
		JobID: fmt.Sprintf("j%d", src), Src: netip.AddrFrom4([4]byte{10, leaf(src), byte(src), 2}), Dst: netip.AddrFrom4([4]byte{10, leaf(dst), byte(dst), 2}),
		Connections: connections, BytesPerSecond: rate, Provenance: traffic.Measured,
	}
}

func target(g *topo.Graph, s string) topo.LinkID {
	id, err := g.ID(port(s))
	if err != nil {
		panic(err)
	}
	return id
}

// TestExplainAgainstBruteForce: what hid the loads is among the placements, and their number is that of trying
// everything.
func TestExplainAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spines := rapid.IntRange(2, 3).Draw(t, "spines")
		var specs []traffic.Flow
		n := rapid.IntRange(1, 4).Draw(t, "flows")
		for i := range n {
			rate := float64(rapid.IntRange(1, 12).Draw(t, "rate")) * 1e6
			most := 1 // trying everything must stay cheap
			if n <= 2 {
				most = 3
			}
			specs = append(specs, hostFlow(1+i, 5+i, rate, rapid.IntRange(1, most).Draw(t, "connections")))
		}
		s := build(topotest.New(topotest.Options{Spines: spines, HostBytes: 100e6}), nil, specs)
		for _, f := range s.flows {
			var ps []int
			for range f.Connections {
				ps = append(ps, rapid.IntRange(0, spines-1).Draw(t, "path"))
			}
			slices.Sort(ps)
			s.hidden = append(s.hidden, ps)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 1))
		loads := s.loads(func() float64 { return 0.04 * (r.Float64() - 0.5) })
		e := traffic.Explain(s.g, s.flows, loads, target(s.g, "lab/l1:sp1"), traffic.Options{Samples: 4096, Seed: seed})
		if !e.Fits || !e.Exact {
			t.Fatalf("%+v", e.Reason)
		}
		want := 0
		each(s.flows, nil, func(a traffic.Assignment) {
			if worst(s, a, loads) <= 1 {
				want++
			}
		})
		if e.Count != want {
			t.Fatalf("%d placements, %d by trying all", e.Count, want)
		}
		for _, a := range e.Samples {
			if w := worst(s, a, loads); w > 1 {
				t.Fatalf("placement %v is off by %v tolerances", a, w)
			}
		}
	})
}

// each calls f with every placement; connections of a flow are alike.
func each(flows []traffic.Routed, sofar traffic.Assignment, f func(traffic.Assignment)) {
	if len(sofar) == len(flows) {
		f(sofar)
		return
	}
	fl := flows[len(sofar)]
	var rec func(ps []int)
	rec = func(ps []int) {
		if len(ps) == fl.Connections {
			each(flows, append(slices.Clone(sofar), slices.Clone(ps)), f)
			return
		}
		from := 0
		if len(ps) > 0 {
			from = ps[len(ps)-1]
		}
		for p := from; p < len(fl.Paths); p++ {
			rec(append(ps, p))
		}
	}
	rec(nil)
}

// worst is the largest miss of a placement in tolerances, written down anew from the rule.
func worst(s scene, a traffic.Assignment, loads map[ident.Port]float64) float64 {
	load := scene{s.g, s.flows, a}.sum()
	w := 0.0
	for id, v := range load {
		l := s.g.Link(topo.LinkID(id))
		m := loads[l.From]
		w = max(w, math.Abs(v-m)/max(0.10*l.BytesPerSecond, 0.15*m)/(1+1e-9))
	}
	return w
}

func TestExplainNamesTheWorstLink(t *testing.T) {
	s := build(topotest.Lab(), nil, []traffic.Flow{hostFlow(1, 5, 10e6, 1), hostFlow(2, 6, 10e6, 1)})
	s.hidden = traffic.Assignment{{0}, {0}}
	loads := s.loads(func() float64 { return 0 })
	loads[port("lab/l1:sp2")] = 12e6 // nobody announced this
	e := traffic.Explain(s.g, s.flows, loads, target(s.g, "lab/l1:sp1"), traffic.Options{Samples: 8})
	if e.Fits || e.Count != 0 || e.Worst.Link.String() == "" || !strings.HasPrefix(e.Reason, "does not explain the present: link lab/") {
		t.Errorf("%+v", e)
	}
	delete(loads, port("lab/l1:sp2"))
	e = traffic.Explain(s.g, s.flows, loads, target(s.g, "lab/l1:sp1"), traffic.Options{Samples: 8})
	if e.Fits || e.Missing != port("lab/l1:sp2") {
		t.Errorf("a link that is not measured: %+v", e)
	}
}

// TestPinsAreKnown: a flow that we pinned has one path; its neighbour is found by what is left.
func TestPinsAreKnown(t *testing.T) {
	pin := plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix("10.3.5.2/32"), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: netip.MustParseAddr("10.0.32.0")}}}
	specs := []traffic.Flow{hostFlow(1, 5, 10e6, 1), hostFlow(2, 6, 10e6, 1)}
	s := build(topotest.Lab(), []plan.Route{pin}, specs)
	if a := s.flows[0].Allowed(); !slices.Equal(a, []int{1}) {
		t.Fatalf("the pinned flow may take %v", a)
	}
	s.hidden = traffic.Assignment{{1}, {0}}
	e := traffic.Explain(s.g, s.flows, s.loads(func() float64 { return 0 }), target(s.g, "lab/l1:sp1"), traffic.Options{Samples: 8})
	if !e.Fits || e.Count != 1 || !slices.Equal(e.Samples[0][1], []int{0}) {
		t.Errorf("%+v", e)
	}
	// Once the path is dead the pin is dropped, and the flow goes back to what is alive.
	f := topotest.Lab()
	topotest.Cut(f, port("lab/s2:lf3"))
	s = build(f, []plan.Route{pin}, specs)
	if len(s.flows[0].Paths) != 1 || s.flows[0].Paths[0].Via != "s1" || s.flows[0].Weight[0] != 1 {
		t.Errorf("after the cut: %+v", s.flows[0])
	}
}

func TestTableTakesTheLongestPrefixAndTheLastRoute(t *testing.T) {
	r := func(prefix, hop string) plan.Route {
		return plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix(prefix), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: netip.MustParseAddr(hop)}}}
	}
	table := traffic.NewTable([]plan.Route{r("10.3.0.0/16", "10.0.31.0"), r("10.3.5.2/32", "10.0.31.0")}, []plan.Route{r("10.3.5.2/32", "10.0.32.0")})
	got, ok := table.Find("l1", netip.MustParseAddr("10.3.5.2"))
	if !ok || got.Prefix.Bits() != 32 || got.NextHops[0].Addr.String() != "10.0.32.0" {
		t.Errorf("%v %v", got, ok)
	}
	if got, ok := table.Find("l1", netip.MustParseAddr("10.3.6.2")); !ok || got.Prefix.Bits() != 16 {
		t.Errorf("%v %v", got, ok)
	}
	if _, ok := table.Find("l2", netip.MustParseAddr("10.3.6.2")); ok {
		t.Error("a route of another switch")
	}
}

// TestSearchFindsWhatIsTooManyToEnumerate: twenty flows of one leaf over eight spines.
func TestSearchFindsWhatIsTooManyToEnumerate(t *testing.T) {
	f := topotest.New(topotest.Options{Leaves: 4, Spines: 8, Rails: 1, Hosts: 80, UplinkBytes: 100e6})
	r := rand.New(rand.NewPCG(3, 3))
	var specs []traffic.Flow
	for k := range 20 {
		src, dst := netip.AddrFrom4([4]byte{10, 1, byte(k + 1), 2}), netip.AddrFrom4([4]byte{10, byte(2 + k%3), byte(20*(1+k%3) + k + 1), 2})
		specs = append(specs, traffic.Flow{JobID: "j", Src: src, Dst: dst, Connections: 1, BytesPerSecond: 1e6 * (10 + 30*r.Float64())})
	}
	s := build(f, nil, specs)
	for range s.flows {
		s.hidden = append(s.hidden, []int{r.IntN(8)})
	}
	loads := s.loads(func() float64 { return 0.02 * (r.Float64() - 0.5) })
	e := traffic.Explain(s.g, s.flows, loads, target(s.g, "lab/l1:sp1"), traffic.Options{Samples: 16, Seed: 1})
	if !e.Fits || e.Exact || e.Count < 1 {
		t.Fatalf("%v %v %d", e.Fits, e.Exact, e.Count)
	}
	for _, a := range e.Samples {
		if w := worst(s, a, loads); w > 1 {
			t.Errorf("a placement is off by %v tolerances", w)
		}
	}
	again := traffic.Explain(s.g, s.flows, loads, target(s.g, "lab/l1:sp1"), traffic.Options{Samples: 16, Seed: 1})
	if fmt.Sprint(again.Samples) != fmt.Sprint(e.Samples) {
		t.Error("the same seed gives other placements")
	}
}
