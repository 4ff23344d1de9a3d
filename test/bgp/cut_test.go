// SPDX-License-Identifier: Apache-2.0

//go:build lab

package bgp_test

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/test/lab"
	"github.com/trainyard/trainyard/test/lab/ring"
)

// The bounds of field rule 1. A blackout is measured beside the same cut of a flow that no route of ours touches.
const (
	pinsMore = 300 * time.Millisecond

	// Weights go when the leaf's hold time of 3 s is over. FRR's timers have whole seconds and its expiry is followed by a run of
	// best-path selection and a route change, on a machine that is busy with the test itself.
	weightsHold   = 3 * time.Second
	weightsMargin = 500 * time.Millisecond
	weightsLive   = time.Second // with the controller alive: its feed from the leaf
)

// TestCutLink cuts a link under flows that cross it: one by plain ECMP, one by a pin, one by weights; with the controller
// alive, stopped and killed; with spines of different and of one AS. The link is the far one of the path, between spine 1 and
// leaf 3, which leaf 1 cannot see; and once, to compare, the near one.
func TestCutLink(t *testing.T) {
	var table strings.Builder
	row := func(cells ...any) { fmt.Fprintf(&table, "%-9s %-6s %-8s %10s %10s %10s\n", cells...) }
	row("spine AS", "cut", "actuator", "without us", "pin", "weights")
	for _, shared := range []bool{false, true} {
		as := map[bool]string{false: "distinct", true: "shared"}[shared]
		t.Run(as, func(t *testing.T) {
			l := up(t, lab.Config{SharedSpineAS: shared})
			cases := []struct{ state, end string }{{"alive", "l3"}, {"stopped", "l3"}, {"killed", "l3"}}
			if !shared {
				cases = append(cases, struct{ state, end string }{"stopped", "l1"})
			}
			for _, c := range cases {
				state := c.state
				t.Run(state+" "+c.end, func(t *testing.T) {
					b := cut(t, l, state, c.end)
					if err := b.judge(state); err != nil {
						// A busy machine can keep FRR itself waiting for longer than the bound; twice in a row is ours.
						t.Logf("measured once more: %v", err)
						b = cut(t, l, state, c.end)
					}
					row(as, "s1-"+c.end, state, ms(b.plain), ms(b.pin), ms(b.weights))
					if err := b.judge(state); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
	t.Logf("packets lost after the cut, as time:\n%s", table.String())
}

// packetsPerSecond of a probe. A blackout is the number of lost packets times their distance: unlike the longest gap between two
// arrivals it does not count the time in which sender or receiver got no CPU, which a loaded test machine has plenty of; the
// receiver's socket holds about half a second of packets.
const packetsPerSecond = 500

type blackout struct{ plain, pin, weights time.Duration }

// judge holds a blackout against the bounds.
func (b blackout) judge(state string) error {
	limit := weightsHold + weightsMargin
	if state == "alive" {
		limit = b.plain + weightsLive
	}
	if b.pin > b.plain+pinsMore {
		return fmt.Errorf("pin: %s of blackout, %s without us; at most %s more", ms(b.pin), ms(b.plain), pinsMore)
	}
	if b.weights > limit {
		return fmt.Errorf("weights: %s of blackout, at most %s", ms(b.weights), limit)
	}
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d)/1e6) }

func cut(t *testing.T, l *lab.Lab, state, end string) blackout {
	t.Helper()
	ctx := t.Context()
	const plain, pinned, split = "n7", "n5", "n6"
	converged(t, l, plain)
	c := startController(t, l, driverConfig(l, "l1"))
	c.reconcile(pin(l, pinned, 1), weights(l, split, 3, 1))
	eventually(t, l, nic(l, pinned), settle, "sp1")
	eventually(t, l, nic(l, split), settle, "sp1*75", "sp2*25")

	probes := map[string]*ring.ProbeRun{}
	for _, to := range []string{plain, pinned, split} {
		p, err := ring.StartProbe(ctx, l, ring.Probe{From: "n1", To: to, Spine: "s1", PacketsPerSecond: packetsPerSecond})
		must(t, err)
		t.Cleanup(p.Kill)
		probes[to] = p
	}
	pause(ctx, 300*time.Millisecond)
	switch state {
	case "stopped":
		c.signal(syscall.SIGSTOP)
	case "killed":
		c.kill()
	}
	must(t, l.CutLink("s1", end))
	defer func() { must(t, l.RestoreLink("s1", end)) }()
	if state == "stopped" {
		pause(ctx, weightsHold+weightsMargin)
	}
	pause(ctx, 1500*time.Millisecond)
	results := map[string]ring.ProbeResult{}
	for to, p := range probes {
		r, err := p.Stop(ctx)
		must(t, err)
		if r.Received == 0 || r.Lost > 0 && time.Since(r.LongestGapAt) > time.Minute {
			t.Fatalf("probe to %s: %s", to, r)
		}
		results[to] = r
		t.Logf("%s: n1 -> %s: %s", state, to, r)
	}
	// The routes of ours over the cut link are gone from the kernel, by whatever means.
	for _, host := range []string{pinned, split} {
		if got := hops(t, l, nic(l, host)); got != nil {
			t.Errorf("%s: l1 still has %v for %s", state, got, host)
		}
	}
	if state == "stopped" {
		c.signal(syscall.SIGCONT)
	}
	if state == "alive" {
		read := c.do(order{Op: "read"}).Routes
		if len(read) != 1 || read[0].Prefix != nic(l, pinned) {
			t.Errorf("alive: the driver announces %v; want the pin alone, which waits for its link", read)
		}
		c.do(order{Op: "close"})
	}
	c.kill()
	dark := func(to string) time.Duration { return time.Duration(results[to].Lost) * time.Second / packetsPerSecond }
	return blackout{dark(plain), dark(pinned), dark(split)}
}

// converged waits until l1 has both spines for a host's subnet, and no route of ours.
func converged(t *testing.T, l *lab.Lab, host string) {
	t.Helper()
	h, _ := l.Host(host)
	eventually(t, l, netip.PrefixFrom(h.NICs[0].Addr, 24).Masked(), 15*time.Second, "sp1*1", "sp2*1")
}
