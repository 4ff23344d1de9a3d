// SPDX-License-Identifier: Apache-2.0

//go:build lab

package lab_test

import (
	"context"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/trainyard/trainyard/test/lab"
	"github.com/trainyard/trainyard/test/lab/ring"
)

// always sends every connection of a job over one spine.
func always(spine string) func(rank, rail, conn int) string {
	return func(int, int, int) string { return spine }
}

var jobA, jobB = []string{"n1", "n2", "n5", "n6"}, []string{"n3", "n4", "n7", "n8"}

func startJob(ctx context.Context, t *testing.T, l *lab.Lab, id string, hosts []string, spine string) *ring.Job {
	t.Helper()
	j, err := ring.Start(ctx, l, ring.Spec{JobID: id, Hosts: hosts, Spine: always(spine)})
	must(t, err)
	t.Cleanup(j.Kill)
	return j
}

// over lets a job run n steps and sums them up.
func over(ctx context.Context, t *testing.T, j *ring.Job, n int) ring.Stats {
	t.Helper()
	since := time.Now()
	must(t, j.WaitSteps(ctx, n))
	return j.Stats(since, time.Time{})
}

// TestStepTimeAgainstWitnesses checks what a ring says of itself against the kernel's counters and iperf3.
func TestStepTimeAgainstWitnesses(t *testing.T) {
	ctx := testContext(t, time.Minute)
	l := up(ctx, t, lab.Config{ECN: true})
	witness, err := l.Iperf3(ctx, lab.Iperf{From: netip.MustParseAddr("10.1.2.2"), To: netip.MustParseAddr("10.3.5.2"), Port: 5201, Duration: 3 * time.Second})
	must(t, err)
	t.Logf("%s alone on the path of the ring: %.1f Mbit/s, %d retransmits", witness.Version, witness.BitsPerSecond/1e6, witness.Retransmits)
	j := startJob(ctx, t, l, "job-a", jobA, "s1")
	must(t, j.WaitSteps(ctx, 3))
	begin := time.Now()
	before, err := l.PortCounters("l1", "sp1")
	must(t, err)
	must(t, j.WaitSteps(ctx, 25))
	after, err := l.PortCounters("l1", "sp1")
	must(t, err)
	took := time.Since(begin)
	st := j.Stats(begin, time.Time{})
	t.Log(st)

	// n2 -> n5 on rail 0 is all that crosses l1:sp1: half of what rank 1 says to have sent, plus headers and acknowledgements.
	var said float64
	for _, s := range j.Steps(begin, begin.Add(took)) {
		if s.Rank == 1 {
			said += float64(s.Bytes) / lab.Rails
		}
	}
	wire := float64(after.TxBytes-before.TxBytes) * l.Config().PayloadShare()
	t.Logf("rank 1 says %.2f MB on rail 0, the kernel of l1 counts %.2f MB of payload on sp1: %+.1f %%", said/1e6, wire/1e6, (wire/said-1)*100)
	if math.Abs(wire/said-1) > 0.08 { // a step that straddles the edges of the window is 4 % of it
		t.Errorf("the ring's bytes and the kernel's differ by %.1f %%", (wire/said-1)*100)
	}
	perStep := float64(j.Spec.Bytes) / float64(len(jobA)) * 2 * float64(len(jobA)-1) / lab.Rails // bytes per rail
	ideal := time.Duration(perStep * 8 / witness.BitsPerSecond * 1e9)
	t.Logf("collective %v, at iperf3's rate the bytes alone need %v", st.Collective.Round(time.Millisecond), ideal.Round(time.Millisecond))
	if st.Collective < ideal*95/100 {
		t.Errorf("a collective of %v is faster than the link allows (%v): the ring does not measure what it says", st.Collective, ideal)
	}
	if st.Collective > ideal*3/2 {
		t.Errorf("a collective of %v on free links, iperf3 would need %v", st.Collective, ideal)
	}
	if st.Resets != 0 {
		t.Errorf("%d resets", st.Resets)
	}
}

// TestHandMovedRoute is what the product is about, done by an engineer: two rings collide on a link, one host route
// moves one flow away, both are fast again and no connection breaks.
func TestHandMovedRoute(t *testing.T) {
	ctx := testContext(t, 90*time.Second)
	l := up(ctx, t, lab.Config{ECN: true})
	monitor, err := l.RouteEvents("l1")
	must(t, err)
	a := startJob(ctx, t, l, "job-a", jobA, "s1")
	must(t, a.WaitSteps(ctx, 5))
	alone := over(ctx, t, a, 20)
	b := startJob(ctx, t, l, "job-b", jobB, "s1")
	must(t, b.WaitSteps(ctx, 5))
	ce, err := l.NetSNMP("n5")
	must(t, err)
	congested := over(ctx, t, a, 25)
	marks, err := l.NetSNMP("n5")
	must(t, err)
	queue, err := l.Drops(ctx, "l1", "sp1")
	must(t, err)

	// job-b goes to spine 2 wherever it crosses: l1 -> n7, l3 -> n3 on rail 0; l2 -> n7, l4 -> n3 on rail 1. Spine 2 is
	// named by its link to the destination's leaf, as the product names it.
	moves := []struct {
		leaf, dst, via string
	}{{"l1", "10.3.7.2/32", "10.0.12.1"}, {"l3", "10.1.3.2/32", "10.0.32.1"}, {"l2", "10.4.7.2/32", "10.0.22.1"}, {"l4", "10.2.3.2/32", "10.0.42.1"}}
	moved := time.Now()
	for _, m := range moves {
		must(t, l.SetRoute(m.leaf, netip.MustParsePrefix(m.dst), netip.MustParseAddr(m.via)))
	}
	must(t, b.WaitSteps(ctx, 5))
	during := b.Stats(moved, time.Time{})
	before1, err := l.PortCounters("l1", "sp2")
	must(t, err)
	after := over(ctx, t, a, 20)
	after1, err := l.PortCounters("l1", "sp2")
	must(t, err)
	afterB := over(ctx, t, b, 10)
	t.Log("job-a alone:     ", alone)
	t.Log("job-a congested: ", congested)
	t.Log("job-b, the move: ", during)
	t.Log("job-a after:     ", after)
	t.Log("job-b after:     ", afterB)
	t.Logf("n5 received %d CE marks while congested; l1:sp1 dropped %d packets", marks["IpExt.InCEPkts"]-ce["IpExt.InCEPkts"], queue.Drops)
	if ratio := congested.Median.Seconds() / alone.Median.Seconds(); ratio < 1.5 {
		t.Errorf("congestion makes steps %.2f times longer, want 1.5 at least", ratio)
	}
	if ratio := after.Median.Seconds() / alone.Median.Seconds(); ratio > 1.25 {
		t.Errorf("after the move steps take %.2f times what they took alone", ratio)
	}
	if marks["IpExt.InCEPkts"] == ce["IpExt.InCEPkts"] {
		t.Error("no packet was marked on a full queue")
	}
	if after1.TxBytes-before1.TxBytes < 5e6 {
		t.Errorf("only %d bytes over l1:sp2 after the move", after1.TxBytes-before1.TxBytes)
	}
	events, err := monitor.Of(netip.MustParsePrefix(moves[0].dst))
	must(t, err)
	if len(events) != 1 || events[0].Deleted {
		t.Errorf("the kernel told of %v, want one route set", events)
	}
	must(t, l.DelRoute("l1", netip.MustParsePrefix(moves[0].dst)))
	for _, j := range []*ring.Job{a, b} {
		st, err := j.Stop(ctx)
		must(t, err)
		if st.Resets != 0 {
			t.Errorf("%s: %d resets", j.Spec.JobID, st.Resets)
		}
	}
	for _, h := range l.Hosts {
		v, err := l.NetSNMP(h.Name)
		must(t, err)
		if v["Tcp.EstabResets"] != 0 {
			t.Errorf("%s counts %d reset connections", h.Name, v["Tcp.EstabResets"])
		}
	}
}

// TestCauses checks that each cause of slowness can be made and shows what it should (field rule 3).
func TestCauses(t *testing.T) {
	ctx := testContext(t, 2*time.Minute)
	l := up(ctx, t, lab.Config{ECN: true})
	a := startJob(ctx, t, l, "job-a", jobA, "s1")
	must(t, a.WaitSteps(ctx, 5))
	alone := over(ctx, t, a, 15)
	t.Log("alone:        ", alone)

	t.Run("straggler", func(t *testing.T) {
		must(t, a.SetCompute(2, 150*time.Millisecond))
		must(t, a.WaitSteps(ctx, 2))
		st := over(ctx, t, a, 10)
		t.Log("straggler:    ", st)
		if st.Median < alone.Median+80*time.Millisecond {
			t.Errorf("a rank that computes 130 ms longer changes the step from %v to %v only", alone.Median, st.Median)
		}
		must(t, a.SetCompute(2, a.Spec.Compute))
		must(t, a.WaitSteps(ctx, 2))
	})
	t.Run("slow receiver", func(t *testing.T) {
		before, err := l.NetSNMP("n2")
		must(t, err)
		must(t, a.SetReadRate(1, 4_000_000))
		must(t, a.WaitSteps(ctx, 2))
		st := over(ctx, t, a, 8)
		after, err := l.NetSNMP("n2")
		must(t, err)
		t.Log("slow receiver:", st)
		windows := after["TcpExt.TCPToZeroWindowAdv"] - before["TcpExt.TCPToZeroWindowAdv"]
		t.Logf("n2 closed its window %d times", windows)
		if windows == 0 || st.Median < alone.Median*3/2 {
			t.Errorf("the slow receiver closed its window %d times, steps %v (alone %v)", windows, st.Median, alone.Median)
		}
		must(t, a.SetReadRate(1, 0))
		must(t, a.WaitSteps(ctx, 5))
		again := over(ctx, t, a, 10)
		t.Log("reads again:  ", again)
		if again.Median > alone.Median*5/4 {
			t.Errorf("the receiver reads again, but steps take %v (alone %v)", again.Median, alone.Median)
		}
	})
	t.Run("incast", func(t *testing.T) {
		before, err := l.Drops(ctx, "l3", "h5")
		must(t, err)
		var streams []*ring.StreamRun
		for _, from := range []string{"n6", "n7", "n8"} {
			s, err := ring.StartStream(ctx, l, ring.Stream{From: from, To: "n5"})
			must(t, err)
			streams = append(streams, s)
		}
		must(t, a.WaitSteps(ctx, 2))
		st := over(ctx, t, a, 5)
		after, err := l.Drops(ctx, "l3", "h5")
		must(t, err)
		t.Log("incast:       ", st)
		var sum float64
		for _, s := range streams {
			x, err := s.Stop(ctx)
			must(t, err)
			sum += x.BitsPerSecond
		}
		t.Logf("streams together %.1f Mbit/s, l3:h5 dropped %d", sum/1e6, after.Drops-before.Drops)
		if st.Median < alone.Median*3/2 {
			t.Errorf("three streams into rank 2's NIC change the step from %v to %v only", alone.Median, st.Median)
		}
	})
	t.Run("cut link", func(t *testing.T) {
		p, err := ring.StartProbe(ctx, l, ring.Probe{From: "n1", To: "n5", Spine: "s1"})
		must(t, err)
		must(t, pause(ctx, 300*time.Millisecond))
		cut := time.Now()
		must(t, l.CutLink("s1", "l3"))
		must(t, pause(ctx, 1500*time.Millisecond))
		res, err := p.Stop(ctx)
		must(t, err)
		t.Logf("s1-l3 cut, no pin: %s", res)
		if res.Received == 0 || res.LongestGap > time.Second {
			t.Errorf("BGP took %v to find the other spine", res.LongestGap)
		}
		t.Log("job over the cut:", a.Stats(cut, time.Time{}))
		must(t, l.RestoreLink("s1", "l3"))
		must(t, a.WaitSteps(ctx, 2))
		t.Log("cable in again: ", over(ctx, t, a, 5))
	})
	t.Run("lost capacity", func(t *testing.T) {
		must(t, l.SetRate(ctx, "l1", "sp1", 40))
		must(t, a.WaitSteps(ctx, 2))
		st := over(ctx, t, a, 8)
		t.Log("40 Mbit/s:    ", st)
		must(t, l.SetRate(ctx, "l1", "sp1", 100))
	})
	t.Run("sick link", func(t *testing.T) {
		must(t, l.FlapLink(ctx, "l2", "s2", 2, 400*time.Millisecond))
		r, _, err := l.Route("l2", netip.MustParsePrefix("10.0.22.0/31"))
		must(t, err)
		if r.Protocol != "kernel" {
			t.Errorf("after flapping l2's link route is %+v", r)
		}
	})
	st, err := a.Stop(ctx)
	must(t, err)
	t.Log("whole run:    ", st)
	if st.Resets != 0 {
		t.Errorf("%d resets", st.Resets)
	}
}

// TestTrafficEndsByItself: bounded in time, and gone with whoever started it.
func TestTrafficEndsByItself(t *testing.T) {
	ctx := testContext(t, time.Minute)
	l := up(ctx, t, lab.Config{NoAgents: true})
	j, err := ring.Start(ctx, l, ring.Spec{JobID: "short", Hosts: []string{"n1", "n2"}, Duration: 2 * time.Second})
	must(t, err)
	s, err := ring.StartStream(ctx, l, ring.Stream{From: "n3", To: "n4", Duration: time.Second})
	must(t, err)
	must(t, poll(ctx, 8*time.Second, func() error {
		out, err := l.Exec(ctx, "n2", "ss", "-Htan", "state", "established")
		if err == nil && out != "" {
			err = errConnections(out)
		}
		return err
	}))
	st, err := j.Stop(ctx)
	must(t, err)
	if st.Steps < 3 || st.Resets != 0 {
		t.Errorf("the short job: %s", st)
	}
	x, err := s.Stop(ctx)
	must(t, err)
	t.Logf("%s; stream %.1f Mbit/s", st, x.BitsPerSecond/1e6)
}

type errConnections string

func (e errConnections) Error() string { return "connections are still there: " + string(e) }
