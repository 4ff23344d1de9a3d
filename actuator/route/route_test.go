// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/route"
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

func flow(src, dst string, connections int) traffic.Flow {
	return traffic.Flow{JobID: "j", Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst), Connections: connections, BytesPerSecond: 10e6}
}

// field is three spines with two flows from l1 to l3, s1 and s2 busy and s3 free.
func field(t *testing.T, o topotest.Options, flows ...traffic.Flow) (route.Field, topo.LinkID) {
	t.Helper()
	o.Spines = max(o.Spines, 3)
	g := topo.NewGraph(topotest.New(o))
	routed, problems := traffic.Route(g, traffic.Matrix{Flows: flows}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	f := route.Field{Graph: g, Flows: routed, Loads: make([]float64, g.Len()), Budget: route.Budget{MaxSteps: 4, MaxRoutesPerSwitch: 8, MaxNextHops: 8, MinPathsLeft: 1}}
	for _, l := range []struct {
		port string
		load float64
	}{{"lab/l1:sp1", 24e6}, {"lab/l1:sp2", 15e6}, {"lab/l1:sp3", 5e6}} {
		id, err := g.ID(port(l.port))
		if err != nil {
			t.Fatal(err)
		}
		f.Loads[id] = l.load
	}
	id, _ := g.ID(port("lab/l1:sp1"))
	return f, id
}

func spell(moves []route.Move, refused []string) string {
	var out []string
	for _, m := range moves {
		out = append(out, fmt.Sprintf("%s; %d left, %.1f s", m.Step.Route, m.PathsLeft, m.Blackout))
	}
	for _, r := range refused {
		out = append(out, "! "+r)
	}
	return strings.Join(out, "\n")
}

func TestOff(t *testing.T) {
	one, two := flow("10.1.1.2", "10.3.5.2", 1), flow("10.1.2.2", "10.3.6.2", 1)
	for _, c := range []struct {
		name  string
		o     topotest.Options
		flows []traffic.Flow
		tune  func(*route.Field)
		want  string
	}{
		{
			"most room first", topotest.Options{}, []traffic.Flow{one}, nil,
			"l1 pin 10.3.5.2/32 via 10.0.33.0; 2 left, 0.3 s\nl1 pin 10.3.5.2/32 via 10.0.32.0; 2 left, 0.3 s",
		},
		{
			"only the roomiest", topotest.Options{}, []traffic.Flow{one, two}, func(f *route.Field) { f.Budget.MaxAlternatives = 1 },
			"l1 pin 10.3.5.2/32 via 10.0.33.0; 2 left, 0.3 s\nl1 pin 10.3.6.2/32 via 10.0.33.0; 2 left, 0.3 s",
		},
		{
			"a link that is not measured has no room", topotest.Options{}, []traffic.Flow{one}, func(f *route.Field) {
				id, _ := f.Graph.ID(port("lab/l1:sp3"))
				f.Loads[id] = math.NaN()
			},
			"l1 pin 10.3.5.2/32 via 10.0.32.0; 2 left, 0.3 s\nl1 pin 10.3.5.2/32 via 10.0.33.0; 2 left, 0.3 s",
		},
		{
			"one prefix, one route: the second job to the same nic moves along", topotest.Options{}, []traffic.Flow{one, flow("10.1.2.2", "10.3.5.2", 1)},
			func(f *route.Field) { f.Budget.MaxAlternatives = 1 }, "l1 pin 10.3.5.2/32 via 10.0.33.0; 2 left, 0.3 s",
		},
		{"a flow inside the leaf is nobody's business", topotest.Options{}, []traffic.Flow{flow("10.1.1.2", "10.1.2.2", 1)}, nil, ""},
		{
			"weights for many connections, by room", topotest.Options{}, []traffic.Flow{flow("10.1.1.2", "10.3.5.2", 8)}, func(f *route.Field) { f.Budget.MaxAlternatives = 1 },
			"l1 pin 10.3.5.2/32 via 10.0.33.0; 2 left, 0.3 s\nl1 weights 10.3.5.2/32 via 10.0.11.1 weight 3, 10.0.12.1 weight 9, 10.0.13.1 weight 16; 2 left, 3.0 s",
		},
		{
			"too many next hops", topotest.Options{}, []traffic.Flow{flow("10.1.1.2", "10.3.5.2", 8)}, func(f *route.Field) { f.Budget.MaxAlternatives, f.Budget.MaxNextHops = 1, 2 },
			"l1 pin 10.3.5.2/32 via 10.0.33.0; 2 left, 0.3 s\n! weights for traffic of l1 to 10.3.5.2: 3 next hops, at most 2",
		},
		{
			"a sick way", topotest.Options{}, []traffic.Flow{one}, func(f *route.Field) {
				id, _ := f.Graph.ID(port("lab/s3:lf3"))
				f.Sick = map[topo.LinkID]string{id: "link lab/s3:lf3 flaps"}
			},
			"l1 pin 10.3.5.2/32 via 10.0.32.0; 2 left, 0.3 s\n! traffic of l1 to 10.3.5.2: link lab/s3:lf3 flaps",
		},
		{
			"the table is full", topotest.Options{}, []traffic.Flow{one}, func(f *route.Field) {
				f.Budget.MaxRoutesPerSwitch = 1
				f.Current = []plan.Route{{Switch: "l1", Prefix: netip.MustParsePrefix("10.3.8.2/32"), Kind: plan.Pin}}
			},
			"! switch l1 holds 1 of our routes already, at most 1",
		},
		{"too few ways left", topotest.Options{}, []traffic.Flow{one}, func(f *route.Field) { f.Budget.MinPathsLeft, f.Budget.MaxAlternatives = 3, 1 },
			"! traffic of l1 to 10.3.5.2 over s3: 2 live paths left when this one dies, at least 3 wanted"},
		{"adaptive", topotest.Options{Balancing: topo.BalancingAdaptive}, []traffic.Flow{one, two}, nil, `! switch l1 balances by "adaptive", not by hash: it moves flows itself, so its routes are left alone`},
		{"unknown", topotest.Options{Balancing: topo.BalancingUnknown}, []traffic.Flow{one}, nil, "! switch l1: how it balances load is not known, so its routes are left alone"},
		{"tenant", topotest.Options{VRF: "red"}, []traffic.Flow{one}, nil, `! switch l1 carries the training prefixes in VRF "red": only the default VRF may be pinned`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, id := field(t, c.o, c.flows...)
			if c.tune != nil {
				c.tune(&f)
			}
			if got := spell(f.Off(id)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestReplace: a route of ours for the same prefix is the step's inverse, and the same route is no move.
func TestReplace(t *testing.T) {
	f, id := field(t, topotest.Options{}, flow("10.1.1.2", "10.3.5.2", 1))
	old := plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix("10.3.5.2/32"), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: netip.MustParseAddr("10.0.32.0")}}}
	f.Current = []plan.Route{old}
	moves, _ := f.Off(id)
	if len(moves) != 1 || moves[0].Step.Before == nil || moves[0].Step.Before.String() != old.String() {
		t.Errorf("%+v", moves)
	}
}

func TestCombine(t *testing.T) {
	f, id := field(t, topotest.Options{}, flow("10.1.1.2", "10.3.5.2", 1), flow("10.1.2.2", "10.3.6.2", 1))
	moves, _ := f.Off(id) // n5 over s3, over s2, n6 over s3, over s2
	p, err := f.Combine(id, moves[3], moves[0])
	if err != nil {
		t.Fatal(err)
	}
	// The emptiest way is filled first.
	if got := p.Steps[0].Route.NextHops[0].Addr.String(); got != "10.0.33.0" {
		t.Errorf("first step via %s", got)
	}
	if p.Target != port("lab/l1:sp1") || p.Forecast.PathsLeft != 2 || p.Forecast.BlackoutBoundS != route.PinBlackoutSeconds || p.DoesNothing() {
		t.Errorf("%+v", p)
	}
	for name, c := range map[string]struct {
		moves []route.Move
		tune  func(*route.Budget)
		want  string
	}{
		"the same prefix twice": {moves[:2], func(*route.Budget) {}, "two routes for 10.3.5.2/32 at l1"},
		"too many steps":        {moves[1:3], func(b *route.Budget) { b.MaxSteps = 1 }, "2 steps, at most 1"},
		"table":                 {moves[1:3], func(b *route.Budget) { b.MaxRoutesPerSwitch = 1 }, "switch l1 would hold 2 of our routes, at most 1"},
	} {
		g := f
		c.tune(&g.Budget)
		if _, err := g.Combine(id, c.moves...); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
