// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/trainyard/trainyard/actuator/sim"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

func port(name string) ident.Port { return ident.Port{Fabric: "f", Device: name, Name: "p"} }

// flow reads "a b c", "a b *2" (weight) or "a b <5" (demand).
func flow(s string) sim.Flow {
	var f sim.Flow
	for _, w := range strings.Fields(s) {
		switch w[0] {
		case '*':
			fmt.Sscan(w[1:], &f.Weight)
		case '<':
			fmt.Sscan(w[1:], &f.Demand)
		default:
			f.Links = append(f.Links, port(w))
		}
	}
	return f
}

// The first five are the cases that max-min was measured on with real switches, worked out by hand; links are
// leaf-spine ("l1s1") and spine-leaf ("s1l4"), 200 Mbit/s unless said, host links do not bind.
func TestMaxMinByHand(t *testing.T) {
	for _, c := range []struct {
		name  string
		slow  map[string]float64
		flows []string
		want  []float64
	}{
		{"one link, four flows", nil, []string{"l1s1 s1l4", "l1s1 s1l4", "l1s1 s1l4", "l1s1 s1l4"}, []float64{50, 50, 50, 50}},
		// l1s1 carries 1 and 2, s1l4 carries 1, 3 and 4: the latter fills at 66.7; 2 takes what 1 leaves on l1s1.
		{"parking lot", nil, []string{"l1s1 s1l4", "l1s1 s1l3", "l2s1 s1l4", "l3s1 s1l4"}, []float64{200. / 3, 400. / 3, 200. / 3, 200. / 3}},
		// The slow uplink gives 25 to each of its two; the other two share what is left of s1l4.
		{"slow uplink", map[string]float64{"l2s1": 50}, []string{"l2s1 s1l4", "l2s1 s1l4", "l1s1 s1l4", "l1s1 s1l4"}, []float64{25, 25, 75, 75}},
		// s1l3 = 40 holds flow 2. On l1s1 (flows 1-3) 160 are left for 1 and 3, but s1l4 (1, 4, 5) fills first at
		// 66.7; flow 3 takes the rest of l1s1: 200 - 40 - 66.7.
		{"three bottlenecks", map[string]float64{"s1l3": 40},
			[]string{"l1s1 s1l4", "l1s1 s1l3", "l1s1 s1l2", "l2s1 s1l4", "l3s1 s1l4"},
			[]float64{200. / 3, 40, 280. / 3, 200. / 3, 200. / 3}},
		// l1s2 = 80 gives 40 to 2 and 3; on spine 1 flows 1 and 4 share s1l4, 5 shares l2s1 with 4.
		{"two spines", map[string]float64{"l1s2": 80},
			[]string{"l1s1 s1l4", "l1s2 s2l4", "l1s2 s2l4", "l2s1 s1l4", "l2s1 s1l3"},
			[]float64{100, 40, 40, 100, 100}},
		{"weights", nil, []string{"x *3", "x *1"}, []float64{150, 50}},
		{"demand", nil, []string{"x <30", "x", "x"}, []float64{30, 85, 85}},
		{"demand and weight", nil, []string{"x *3 <30", "x"}, []float64{30, 170}},
		{"twice over one link", nil, []string{"x x", "x"}, []float64{200. / 3, 200. / 3}},
		{"dead link", map[string]float64{"y": 0}, []string{"x y", "x"}, []float64{0, 200}},
		{"no link, bounded", nil, []string{"<7"}, []float64{7}},
		{"nobody", nil, nil, []float64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			capacity := map[ident.Port]float64{}
			var flows []sim.Flow
			for _, s := range c.flows {
				f := flow(s)
				flows = append(flows, f)
				for _, l := range f.Links {
					capacity[l] = 200
				}
			}
			for l, v := range c.slow {
				capacity[port(l)] = v
			}
			got, err := sim.MaxMin(flows, capacity)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.want {
				if math.Abs(got[i]-c.want[i]) > 1e-9 {
					t.Fatalf("rates %.3f, by hand %.3f", got, c.want)
				}
			}
		})
	}
}

func TestMaxMinRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		flow     sim.Flow
		capacity float64
		want     string
	}{
		"unbounded":         {sim.Flow{}, 1, "no link and no demand"},
		"negative weight":   {sim.Flow{Links: []ident.Port{port("x")}, Weight: -1}, 1, "must not be negative"},
		"demand not number": {sim.Flow{Links: []ident.Port{port("x")}, Demand: math.NaN()}, 1, "must not be negative"},
		"unknown link":      {sim.Flow{Links: []ident.Port{port("y")}}, 1, "f/y:p"},
		"capacity":          {sim.Flow{Links: []ident.Port{port("x")}}, -1, "f/x:p"},
	} {
		if _, err := sim.MaxMin([]sim.Flow{c.flow}, map[ident.Port]float64{port("x"): c.capacity}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// yardOfFlows draws flows over a few links.
func yardOfFlows(t *rapid.T) ([]sim.Flow, map[ident.Port]float64) {
	links := rapid.IntRange(1, 6).Draw(t, "links")
	capacity := map[ident.Port]float64{}
	for i := range links {
		capacity[port(fmt.Sprint(i))] = float64(rapid.IntRange(0, 200).Draw(t, "capacity"))
	}
	var flows []sim.Flow
	for range rapid.IntRange(1, 8).Draw(t, "flows") {
		f := sim.Flow{Weight: float64(rapid.IntRange(1, 4).Draw(t, "weight")), Demand: float64(rapid.IntRange(0, 3).Draw(t, "demand") * 40)}
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, links-1), 1, min(3, links), rapid.ID[int]).Draw(t, "path") {
			f.Links = append(f.Links, port(fmt.Sprint(i)))
		}
		flows = append(flows, f)
	}
	return flows, capacity
}

// TestMaxMinIsOptimal checks what makes an allocation max-min fair: no link is over capacity, and every flow has
// its demand or a bottleneck, a full link on which nobody has more per weight.
func TestMaxMinIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flows, capacity := yardOfFlows(t)
		rates, err := sim.MaxMin(flows, capacity)
		if err != nil {
			t.Fatal(err)
		}
		const tiny = 1e-6
		load := map[ident.Port]float64{}
		top := map[ident.Port]float64{}
		for i, f := range flows {
			for _, l := range f.Links {
				load[l] += rates[i]
				top[l] = max(top[l], rates[i]/f.Weight)
			}
		}
		for l, v := range load {
			if v > capacity[l]+tiny {
				t.Fatalf("link %s carries %v of %v", l, v, capacity[l])
			}
		}
		for i, f := range flows {
			if f.Demand > 0 && rates[i] > f.Demand+tiny {
				t.Fatalf("flow %d has %v, wants %v", i, rates[i], f.Demand)
			}
			held := f.Demand > 0 && rates[i] > f.Demand-tiny
			for _, l := range f.Links {
				held = held || load[l] > capacity[l]-tiny && rates[i]/f.Weight > top[l]-tiny
			}
			if !held {
				t.Fatalf("flow %d of %v has %v and nothing holds it; links %v of %v", i, flows, rates, load, capacity)
			}
		}
	})
}

// TestMaxMinAgainstDumbSolver compares with a solver that pours water by the drop.
func TestMaxMinAgainstDumbSolver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flows, capacity := yardOfFlows(t)
		rates, err := sim.MaxMin(flows, capacity)
		if err != nil {
			t.Fatal(err)
		}
		const drop = 0.05
		room := map[ident.Port]float64{}
		for l, c := range capacity {
			room[l] = c
		}
		slow := make([]float64, len(flows))
		for again := true; again; {
			again = false
			for i, f := range flows {
				add := drop * f.Weight
				fits := f.Demand == 0 || slow[i]+add <= f.Demand
				for _, l := range f.Links {
					fits = fits && room[l] >= add
				}
				if !fits {
					continue
				}
				again = true
				slow[i] += add
				for _, l := range f.Links {
					room[l] -= add
				}
			}
		}
		for i := range flows {
			// Drops that do not fit any more add up over the flows and links that depend on each other.
			if math.Abs(slow[i]-rates[i]) > 4*drop*float64(len(flows)*len(capacity)) {
				t.Fatalf("flow %d: %v by filling, %v by drops; %v on %v", i, rates, slow, flows, capacity)
			}
		}
	})
}

// TestMaxMinMonotone: the worst-off flow never loses when a link grows or another flow leaves.
func TestMaxMinMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flows, capacity := yardOfFlows(t)
		for i := range flows {
			flows[i].Demand = 0
		}
		worst := func(fs []sim.Flow) float64 {
			rates, err := sim.MaxMin(fs, capacity)
			if err != nil {
				t.Fatal(err)
			}
			least := math.Inf(1)
			for i, r := range rates {
				least = min(least, r/fs[i].Weight)
			}
			return least
		}
		before := worst(flows)
		grown := port(fmt.Sprint(rapid.IntRange(0, len(capacity)-1).Draw(t, "grown")))
		capacity[grown] += 50
		after := worst(flows)
		if after < before-1e-9 {
			t.Fatalf("link %s grew and the least share fell from %v to %v", grown, before, after)
		}
		if len(flows) > 1 {
			if alone := worst(flows[1:]); alone < after-1e-9 {
				t.Fatalf("a flow left and the least share fell from %v to %v", after, alone)
			}
		}
	})
}

func BenchmarkMaxMin512(b *testing.B) {
	capacity := map[ident.Port]float64{}
	var flows []sim.Flow
	for i := range 512 {
		f := sim.Flow{Links: []ident.Port{port(fmt.Sprint("up", i%64, i%31)), port(fmt.Sprint("down", i%31, (i*7)%64))}}
		for _, l := range f.Links {
			capacity[l] = 100
		}
		flows = append(flows, f)
	}
	for b.Loop() {
		if _, err := sim.MaxMin(flows, capacity); err != nil {
			b.Fatal(err)
		}
	}
}
