// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"math"
	"net/netip"
	"testing"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/sim"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/topo/topotest"
	"github.com/trainyard/trainyard/actuator/traffic"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

func a(s string) netip.Addr { return netip.MustParseAddr(s) }

// model sets up jobs on rail 0 of the lab with uplinks of 100 bytes/s and places their flows: via is, by flow in
// the order of the matrix, the index of the path (0 = s1, 1 = s2; 0 for flows inside a leaf).
func model(t *testing.T, jobs []traffic.Job, via []int, routes ...plan.Route) *sim.Model {
	t.Helper()
	g := topo.NewGraph(topotest.New(topotest.Options{UplinkBytes: 100, HostBytes: 100}))
	m, problems := traffic.Ring(jobs, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	flows, problems := traffic.Route(g, m, traffic.NewTable(routes))
	if len(problems) > 0 || len(flows) != len(via) {
		t.Fatal(problems, len(flows))
	}
	place := make(traffic.Assignment, len(flows))
	for i, v := range via {
		for range flows[i].Connections {
			place[i] = append(place[i], v)
		}
	}
	loads := make([]float64, g.Len())
	for i, f := range flows {
		for _, p := range place[i] {
			for _, id := range f.Paths[p].Links {
				loads[id] += f.PerConnection()
			}
		}
	}
	target, err := g.ID(ident.Port{Fabric: "lab", Device: "l1", Name: "sp1"})
	if err != nil {
		t.Fatal(err)
	}
	return sim.New(sim.Input{
		Graph: g, Jobs: jobs, Loads: loads, Target: target, Efficiency: 1, Seed: 1, Routes: routes,
		Explanation: traffic.Explanation{Fits: true, Flows: flows, Samples: []traffic.Assignment{place}, Background: make([]float64, g.Len())},
	})
}

// ring is a job between two nodes of different pods with the figures that it measured; volume is bytes a step on
// the wire.
func ring(id, one, other string, step, compute, baseline, volume float64) traffic.Job {
	return traffic.Job{
		ID: id, Collective: "ring", Connections: 1, StepSeconds: step, BaselineStepSeconds: baseline, CollectiveSeconds: step - compute,
		BytesPerSecondByRail: []float64{volume / step / traffic.WireOverhead},
		Ranks:                []traffic.Rank{{Rank: 0, Node: "x" + id, Addrs: map[int]netip.Addr{0: a(one)}}, {Rank: 1, Node: "y" + id, Addrs: map[int]netip.Addr{0: a(other)}}},
	}
}

func pin(dst, hop string) plan.Route {
	return plan.Route{Switch: "l1", Prefix: netip.PrefixFrom(a(dst), 32), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: a(hop)}}}
}

// Two rings of 90 bytes a step and 0.1 s of computing share a link of 100 bytes/s all the time: 0.9 s alone, 1.8 s
// together. One moved away: both are back at 1.0 s.
func TestTwoRingsPartCompany(t *testing.T) {
	m := model(t, []traffic.Job{ring("a", "10.1.1.2", "10.3.5.2", 1.9, 0.1, 1.0, 90), ring("b", "10.1.2.2", "10.3.6.2", 1.9, 0.1, 1.0, 90)}, []int{0, 0, 0, 1})
	run := m.Run([]plan.Route{pin("10.3.5.2", "10.0.32.0")})
	f := run.Forecast()
	for _, j := range f.Jobs {
		if math.Abs(j.After.P50-1.0) > 1e-9 || j.After.P90-j.After.P10 > 1e-9 || !j.Affected {
			t.Errorf("%+v, by hand 1.0 s", j)
		}
	}
	if want := 1 - 1/1.9; math.Abs(f.Gain-want) > 1e-9 {
		t.Errorf("gain %v, by hand %v", f.Gain, want)
	}
	// 90 bytes a step of 1 s on each of two links.
	for _, l := range f.Links {
		if l.Link.String() == "lab/l1:sp2" && math.Abs(l.After.P50-0.9) > 1e-9 {
			t.Errorf("%+v, by hand 0.9", l)
		}
	}
	if none := m.Run(nil).Forecast(); none.Gain != 0 || none.Jobs[0].After.P50 != 1.9 {
		t.Errorf("doing nothing: %+v", none)
	}
}

// The slowest flow of a ring sets the pace of all: freeing one of its two collisions gains nothing.
func TestSlowestFlowPacesTheRing(t *testing.T) {
	jobs := []traffic.Job{ring("a", "10.1.1.2", "10.3.5.2", 1.9, 0.1, 1.0, 90), ring("b", "10.1.2.2", "10.3.6.2", 1.9, 0.1, 1.0, 90)}
	m := model(t, jobs, []int{0, 0, 0, 0}) // they meet on l1:sp1 and, the other way, on l3:sp1
	run := m.Run([]plan.Route{pin("10.3.5.2", "10.0.32.0")})
	if g := run.Gain(); math.Abs(g) > 1e-9 {
		t.Errorf("gain %v, by hand 0", g)
	}
	found := false
	for _, id := range run.Tight() {
		found = found || id == mustID(t, "l3", "sp1") || id == mustID(t, "s1", "lf1")
	}
	if !found {
		t.Error("the link that still holds them is not named")
	}
}

func mustID(t *testing.T, device, name string) topo.LinkID {
	t.Helper()
	id, err := topo.NewGraph(topotest.New(topotest.Options{UplinkBytes: 100, HostBytes: 100})).ID(ident.Port{Fabric: "lab", Device: device, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// What a frozen job does not take of its other links is there for others: a is held to 1/3 of sp1 by two others;
// on its way back it shares with c, who takes the rest.
func TestHeldJobLeavesItsOtherLinks(t *testing.T) {
	jobs := []traffic.Job{
		ring("a", "10.1.1.2", "10.3.5.2", 3, 0, 1, 100), ring("b", "10.1.2.2", "10.3.6.2", 3, 0, 1, 100),
		ring("c", "10.1.3.2", "10.3.7.2", 3, 0, 1, 100),
	}
	m := model(t, jobs, []int{0, 0, 0, 0, 0, 0})
	// Pin c away from sp1 at l1; at l3 all three still share: nothing gained.
	if g := m.Run([]plan.Route{pin("10.3.7.2", "10.0.32.0")}).Gain(); math.Abs(g) > 1e-9 {
		t.Errorf("gain %v, by hand 0", g)
	}
	// Away in both directions: a and b share by two (2 s), c is alone (1 s).
	both := m.Run([]plan.Route{pin("10.3.7.2", "10.0.32.0"), {Switch: "l3", Prefix: netip.PrefixFrom(a("10.1.3.2"), 32), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: a("10.0.12.0")}}}})
	for i, want := range []float64{2, 2, 1} {
		if got := both.Jobs()[i].After.P50; math.Abs(got-want) > 1e-6 {
			t.Errorf("job %d: %v, by hand %v", i, got, want)
		}
	}
}

// A step never gets faster than computing plus bytes over capacity, nor than its baseline.
func TestFloor(t *testing.T) {
	for _, c := range []struct {
		name     string
		baseline float64
		want     float64
	}{{"no baseline: the link's speed", 0, 1.0}, {"a slower baseline", 1.3, 1.3}} {
		m := model(t, []traffic.Job{ring("a", "10.1.1.2", "10.3.5.2", 1.9, 0.1, c.baseline, 90), ring("b", "10.1.2.2", "10.3.6.2", 1.9, 0.1, c.baseline, 90)}, []int{0, 0, 0, 1})
		if got := m.Run([]plan.Route{pin("10.3.5.2", "10.0.32.0")}).Jobs()[0].After.P50; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, by hand %v", c.name, got, c.want)
		}
	}
}

// Weights are drawn connection by connection: the band is as wide as the hash makes it, and the seed decides.
func TestWeightsAreDrawn(t *testing.T) {
	j := ring("a", "10.1.1.2", "10.3.5.2", 2, 0, 0, 100)
	j.Connections = 8
	m := model(t, []traffic.Job{j, ring("b", "10.1.2.2", "10.3.6.2", 2, 0, 0, 100)}, []int{0, 0, 0, 1})
	w := plan.Route{Switch: "l1", Prefix: netip.PrefixFrom(a("10.3.5.2"), 32), Kind: plan.Weights, NextHops: []plan.NextHop{{Addr: a("10.0.11.1"), Weight: 1}, {Addr: a("10.0.12.1"), Weight: 3}}}
	one, two := m.Run([]plan.Route{w}).Forecast(), m.Run([]plan.Route{w}).Forecast()
	if one.Jobs[0].After != two.Jobs[0].After {
		t.Error("the same seed forecasts differently")
	}
	if one.Gain <= 0 {
		t.Errorf("gain %v: most connections leave the crowded link", one.Gain)
	}
}
