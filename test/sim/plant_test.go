// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/act/acttest"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// yes is a permit that always holds.
var yes = act.PermitFunc(func(time.Time) error { return nil })

func plant(seed uint64) *Plant { return New(Config{Seed: seed, Start: start}) }

// jobA and jobB are the demo's: 0.2 s a step alone, one tenth of it compute. They meet on the link from l1 to s1 and nowhere else.
func jobA() Job {
	return Job{ID: "job-a", Nodes: []int{1, 2, 5, 6}, Compute: 20 * time.Millisecond, ComputeNoise: 0.02, BytesPerStep: 4e9, Via: func(_, _, _ int) int { return 1 }}
}

func jobB() Job {
	return Job{ID: "job-b", Nodes: []int{3, 4, 7, 8}, Compute: 20 * time.Millisecond, ComputeNoise: 0.02, BytesPerStep: 4e9, Via: func(rail, from, _ int) int {
		if rail == 0 && from == 4 {
			return 1
		}
		return 2
	}}
}

// pinB moves job-b's flow from l1 to n7 over spine 2.
var pinB = plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix("10.3.7.2/32"), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: leafSide(3, 2)}}}

// stepOver is the mean step time of a job over the last d.
func stepOver(t *testing.T, p *Plant, job string, d time.Duration) float64 {
	t.Helper()
	r, err := p.Job(job)
	if err != nil {
		t.Fatal(err)
	}
	sum, n := 0.0, 0
	for _, s := range r.Steps {
		if s.At.After(p.Now().Add(-d)) {
			sum, n = sum+s.Seconds, n+1
		}
	}
	if n == 0 {
		t.Fatalf("%s finished no step within %s", job, d)
	}
	return sum / float64(n)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A story: one job alone, a second one on the same uplink, a pin that parts them, the pin withdrawn.
func TestCollisionAndPin(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ {
		p := plant(seed)
		must(t, p.StartJob(jobA()))
		p.Advance(6 * time.Second)
		alone := stepOver(t, p, "job-a", 5*time.Second)
		if alone < 0.18 || alone > 0.23 {
			t.Errorf("seed %d: alone a step takes %.3f s, want about 0.2", seed, alone)
		}
		must(t, p.StartJob(jobB()))
		p.Advance(6 * time.Second)
		both := stepOver(t, p, "job-a", 5*time.Second)
		if both < 1.6*alone {
			t.Errorf("seed %d: with job-b a step takes %.3f s, alone %.3f: not congested", seed, both, alone)
		}
		d := p.Driver()
		p.ResetGaps()
		if res := d.Apply(t.Context(), yes, pinB); !res.OK() || !res.Changed {
			t.Fatalf("apply: %+v", res)
		}
		p.Advance(6 * time.Second)
		after := stepOver(t, p, "job-a", 5*time.Second)
		if after > 1.05*alone {
			t.Errorf("seed %d: behind the pin a step takes %.3f s, alone %.3f", seed, after, alone)
		}
		r, _ := p.Job("job-b")
		if r.Longest > 100*time.Millisecond {
			t.Errorf("seed %d: the move stopped a connection for %s", seed, r.Longest)
		}
		t.Logf("seed %d: alone %.3f s, both %.3f s, pinned %.3f s, gap %s, retransmits %.0f", seed, alone, both, after, r.Longest, r.Retransmits)
		if res := d.WithdrawAll(t.Context()); !res.OK() {
			t.Fatalf("withdraw all: %+v", res)
		}
		p.Advance(6 * time.Second)
		if again := stepOver(t, p, "job-a", 5*time.Second); again < 1.6*alone {
			t.Errorf("seed %d: without the pin a step takes %.3f s, alone %.3f", seed, again, alone)
		}
		if n := p.Writes(); n != 2 {
			t.Errorf("seed %d: %d writes, want 2", seed, n)
		}
	}
}

// What goes in comes out: a job's payload and the bytes of the links that carry it agree, to what is on its way.
func TestBytesAreConserved(t *testing.T) {
	p := plant(7)
	must(t, p.StartJob(jobA()))
	p.Advance(8 * time.Second)
	payload, spine, err := p.Stream("job-a", 0, 2)
	must(t, err)
	if spine != 1 {
		t.Fatalf("the stream hashes to s%d", spine)
	}
	for _, port := range []ident.Port{{Fabric: "plant", Device: "n2", Name: "rail0"}, {Fabric: "plant", Device: "l1", Name: "sp1"}, {Fabric: "plant", Device: "s1", Name: "lf3"}, {Fabric: "plant", Device: "l3", Name: "h5"}} {
		if sent := p.Sent(port); math.Abs(sent/(payload*onWire)-1) > 0.01 {
			t.Errorf("%s sent %.0f bytes, the stream is %.0f on the wire", port, sent, payload*onWire)
		}
	}
}

// A route never outlives its path: the far link of a pin goes down, next-hop tracking drops it, traffic takes the other spine.
func TestPinFallsWithItsPath(t *testing.T) {
	p := plant(3)
	must(t, p.StartJob(jobA()), p.StartJob(jobB()))
	d := p.Driver()
	d.Apply(t.Context(), yes, pinB)
	p.Advance(3 * time.Second)
	p.ResetGaps()
	must(t, p.SetCable("s2", "lf3", false))
	p.Advance(5 * time.Second)
	_, spine, _ := p.Stream("job-b", 0, 4)
	r, _ := p.Job("job-b")
	if spine != 1 || r.Longest < 100*time.Millisecond || r.Longest > 450*time.Millisecond {
		t.Errorf("after the cut the stream runs over s%d, longest gap %s", spine, r.Longest)
	}
	must(t, p.SetCable("s2", "lf3", true))
	p.Advance(time.Second)
	if _, spine, _ = p.Stream("job-b", 0, 4); spine != 2 {
		t.Errorf("the link is back and the pin stands, the stream runs over s%d", spine)
	}
}

// Weights part many connections roughly as asked; a job's few do not.
func TestWeights(t *testing.T) {
	p := plant(11)
	j := jobA()
	j.Connections, j.Via = 64, nil
	must(t, p.StartJob(j))
	w := plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix("10.3.5.2/32"), Kind: plan.Weights, NextHops: []plan.NextHop{{Addr: spineSide(1, 1), Weight: 25}, {Addr: spineSide(1, 2), Weight: 75}}}
	if res := p.Driver().Apply(t.Context(), yes, w); !res.OK() {
		t.Fatal(res)
	}
	p.Advance(time.Second)
	over := map[int]int{}
	for _, f := range p.flows {
		if f.src.node == 2 && f.src.rail == 0 {
			over[f.spine]++
		}
	}
	if over[2] < 40 || over[2] > 56 {
		t.Errorf("of 64 connections with weights 25:75, %d take s2", over[2])
	}
}

// Faults show where they show on a real fabric: pauses at the slow NIC, errors at the far port, compute time at the straggler.
func TestFaults(t *testing.T) {
	p := plant(5)
	must(t, p.StartJob(jobA()), p.SlowReceiver(5, 0, 8e9))
	p.Advance(5 * time.Second)
	if s := p.fabric.byPos[5][0].pauseSeconds; s < 1 || p.fabric.byPos[6][0].pauseSeconds > 0 || p.zeroWin[5] == 0 {
		t.Errorf("n5 paused its leaf for %.2f s, want most of 5 s times two thirds", s)
	}
	must(t, p.SlowReceiver(5, 0, 0), p.SetErrors("l1", "sp1", 1e-4))
	p.Advance(5 * time.Second)
	if l := p.fabric.up(1, 1); l.errors == 0 || p.retrans[2] == 0 {
		t.Errorf("a sick link: %.0f errors, %.0f retransmits", l.errors, p.retrans[2])
	}
	must(t, p.SetErrors("l1", "sp1", 0), p.Straggle("job-a", 2, 10))
	p.Advance(5 * time.Second)
	k := p.jobs[0].ranks
	if slow, ok := last(k[2].steps).Compute, last(k[0].steps).Compute; slow < 8*ok {
		t.Errorf("the straggler computes %.3f s, the others %.3f s", slow, ok)
	}
	must(t, p.StartTraffic("storage", 3, 7, 0, 10e9, 1))
	p.Advance(3 * time.Second)
	if s := p.Sent(ident.Port{Fabric: "plant", Device: "n3", Name: "rail0"}); s < 20e9 {
		t.Errorf("storage traffic moved %.3g bytes in 3 s", s)
	}
	p.StopTraffic("storage")
	p.StopJob("job-a")
	if len(p.flows) != 0 {
		t.Errorf("%d flows are left of nothing", len(p.flows))
	}
}

func last(s []Step) Step { return s[len(s)-1] }

// Runs with one seed are alike; with others, flows hash otherwise.
func TestSeeds(t *testing.T) {
	run := func(seed uint64) []int {
		p := plant(seed)
		j := jobA()
		j.Via, j.Connections = nil, 4
		must(t, p.StartJob(j))
		p.Advance(time.Second)
		var spines []int
		for _, w := range p.flows {
			spines = append(spines, w.spine)
		}
		return spines
	}
	a, again, b := run(1), run(1), run(2)
	same := true
	for i := range a {
		if a[i] != again[i] {
			t.Fatal("two runs with one seed differ")
		}
		same = same && a[i] == b[i]
	}
	if same {
		t.Error("two seeds hash all flows alike")
	}
}

// The driver refuses what a leaf could not hold, and closes the way it is told.
func TestDriver(t *testing.T) {
	p := plant(1)
	d := p.Driver()
	for name, change := range map[string]func(*plan.Route){
		"not a leaf":          func(r *plan.Route) { r.Switch = "s1" },
		"not a NIC":           func(r *plan.Route) { r.Prefix = netip.MustParsePrefix("10.3.7.0/24") },
		"own NIC":             func(r *plan.Route) { r.Switch = "l3" },
		"next hop is a spine": func(r *plan.Route) { r.NextHops = []plan.NextHop{{Addr: spineSide(1, 2)}} },
		"a pin with weight":   func(r *plan.Route) { r.NextHops = []plan.NextHop{{Addr: leafSide(3, 2), Weight: 3}} },
		"two hops of a pin":   func(r *plan.Route) { r.NextHops = append(r.NextHops, plan.NextHop{Addr: leafSide(3, 1)}) },
	} {
		r := pinB
		r.NextHops = append([]plan.NextHop(nil), pinB.NextHops...)
		change(&r)
		if d.Can(r) == nil || d.Apply(t.Context(), yes, r).Outcome != act.Permanent {
			t.Errorf("%s: not refused", name)
		}
	}
	if p.Writes() != 0 {
		t.Errorf("%d writes for routes that were refused", p.Writes())
	}
	d.Apply(t.Context(), yes, pinB)
	p.Advance(100 * time.Millisecond)
	must(t, d.Close(context.Background(), true))
	if len(p.Routes()) != 1 {
		t.Fatalf("closed with keep, %d routes stand", len(p.Routes()))
	}
	d = p.Driver()
	if rs, _ := d.Read(t.Context()); len(rs) != 1 {
		t.Fatalf("the next driver finds %d routes", len(rs))
	}
	must(t, d.Close(context.Background(), false))
	p.Advance(100 * time.Millisecond)
	if len(p.Routes()) != 0 {
		t.Errorf("closed, %d routes stand", len(p.Routes()))
	}
}

// The plant's driver is the second implementation of the actuator's driver interface and passes its suite.
func TestDriverConforms(t *testing.T) {
	route := func(kind plan.Kind, dst string, hops ...plan.NextHop) plan.Route {
		return plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix(dst), Kind: kind, NextHops: hops}
	}
	acttest.Run(t, func(*testing.T) acttest.Subject {
		p := plant(1)
		return acttest.Subject{
			Driver: p.Driver(),
			Routes: []acttest.Pair{
				{Route: pinB, Other: route(plan.Pin, "10.3.7.2/32", plan.NextHop{Addr: leafSide(3, 1)})},
				{Route: route(plan.Pin, "10.3.5.2/32", plan.NextHop{Addr: leafSide(3, 1)}),
					Other: route(plan.Weights, "10.3.5.2/32", plan.NextHop{Addr: spineSide(1, 1), Weight: 1}, plan.NextHop{Addr: spineSide(1, 2), Weight: 3})},
			},
			Impossible: []plan.Route{route(plan.Pin, "10.3.7.0/24", plan.NextHop{Addr: leafSide(3, 2)}), route(plan.Pin, "10.3.7.2/32", plan.NextHop{Addr: spineSide(1, 2)})},
			Seen: func(*testing.T) []plan.Route {
				p.Advance(2 * installDelay)
				return p.Routes()
			},
		}
	})
}
