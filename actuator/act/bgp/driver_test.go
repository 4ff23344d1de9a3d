// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/act/acttest"
	"github.com/trainyard/trainyard/actuator/plan"
)

func pin(prefix, hop string) plan.Route {
	return plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix(prefix), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: netip.MustParseAddr(hop)}}}
}

func weights(prefix string, w1, w2 uint8) plan.Route {
	return plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix(prefix), Kind: plan.Weights, NextHops: []plan.NextHop{
		{Addr: netip.MustParseAddr("10.0.11.1"), Weight: w1}, {Addr: netip.MustParseAddr("10.0.12.1"), Weight: w2},
	}}
}

// start makes a driver that ends with the test.
func start(t *testing.T, cfg Config, p act.Permit) *Driver {
	t.Helper()
	d, err := New(cfg, p, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background(), true) })
	for s := range d.sessions {
		s.retry = 20 * time.Millisecond
	}
	return d
}

func prime(t *testing.T, d *Driver, rs ...plan.Route) {
	t.Helper()
	if err := d.Prime(t.Context(), rs); err != nil {
		t.Fatal(err)
	}
}

func apply(t *testing.T, d *Driver, rs ...plan.Route) {
	t.Helper()
	for _, r := range rs {
		if res := d.Apply(t.Context(), acttest.Always, r); !res.OK() {
			t.Fatalf("apply %s: %s: %s", r, res.Outcome, res.Detail)
		}
	}
}

func TestConformance(t *testing.T) {
	f := newFakeLeaf(t)
	d := start(t, f.config(), acttest.Always)
	prime(t, d)
	elsewhere, wide, foreign, blackhole := pin("10.3.5.2/32", "10.0.32.0"), pin("10.3.5.0/24", "10.0.32.0"), pin("10.9.5.2/32", "10.0.32.0"), pin("10.3.5.2/32", "10.3.5.2")
	elsewhere.Switch = "l9"
	two := weights("10.3.5.2/32", 1, 1)
	two.Kind = plan.Pin
	acttest.Run(t, func(*testing.T) acttest.Subject {
		return acttest.Subject{
			Driver: d,
			Routes: []acttest.Pair{
				{Route: pin("10.3.5.2/32", "10.0.31.0"), Other: pin("10.3.5.2/32", "10.0.32.0")},
				{Route: weights("10.3.6.2/32", 1, 3), Other: weights("10.3.6.2/32", 100, 1)},
				{Route: pin("10.3.7.2/32", "10.0.31.0"), Other: weights("10.3.7.2/32", 1, 1)},
			},
			Impossible: []plan.Route{
				elsewhere, wide, foreign, blackhole, two,
				pin("10.3.5.2/32", "10.0.11.1"), // a neighbour of the leaf: field rule 1
				weights("10.3.5.2/32", 0, 3), weights("10.3.5.2/32", 1, 101),
			},
			Seen:   func(*testing.T) []plan.Route { return f.routes() },
			Settle: time.Second,
		}
	})
}

func TestPrimeReplaysPinsBeforeEndOfRIBAndWritesNothingElse(t *testing.T) {
	f := newFakeLeaf(t)
	d := start(t, f.config(), acttest.Always)
	r := pin("10.3.5.2/32", "10.0.32.0")
	did, err := act.Reconcile(t.Context(), d, acttest.Always, []plan.Route{r})
	if err != nil || len(did) != 0 {
		t.Errorf("did %v, %v; want nothing to do after the replay", did, err)
	}
	waitUntil(t, "the pin is there", func() bool { return len(f.routes()) == 1 })
	if n := f.count(plan.Pin, bgp.BGP_MSG_UPDATE); n != 2 {
		t.Errorf("%d UPDATE messages for pins, want 2: the route and End-of-RIB", n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.opens[plan.Pin].restart || f.opens[plan.Weights].restart {
		t.Errorf("graceful restart offered: pins %v, weights %v", f.opens[plan.Pin].restart, f.opens[plan.Weights].restart)
	}
}

func TestCloseWithKeepSaysNothing(t *testing.T) {
	for _, keep := range []bool{true, false} {
		t.Run(fmt.Sprint("keep ", keep), func(t *testing.T) {
			f := newFakeLeaf(t)
			d := start(t, f.config(), acttest.Always)
			prime(t, d)
			apply(t, d, pin("10.3.5.2/32", "10.0.32.0"))
			before := f.count(plan.Pin, bgp.BGP_MSG_UPDATE)
			if err := d.Close(t.Context(), keep); err != nil {
				t.Error(err)
			}
			f.close()
			wantUpdates, wantNotes := 0, 0
			if !keep {
				wantUpdates, wantNotes = 1, 1
			}
			if u, n := f.count(plan.Pin, bgp.BGP_MSG_UPDATE)-before, f.count(plan.Pin, bgp.BGP_MSG_NOTIFICATION); u != wantUpdates || n != wantNotes {
				t.Errorf("heard %d UPDATEs and %d NOTIFICATIONs at the end, want %d and %d", u, n, wantUpdates, wantNotes)
			}
		})
	}
}

func TestWeightsGoWithTheirPath(t *testing.T) {
	f := newFakeLeaf(t)
	d := start(t, f.config(), acttest.Always)
	prime(t, d)
	p, w := pin("10.3.5.2/32", "10.0.32.0"), weights("10.3.6.2/32", 1, 3)
	apply(t, d, p, w)
	d.leaves["l1"].sessions[plan.Weights].update(func() { d.leaves["l1"].sessions[plan.Weights].since = time.Now().Add(-feedWait) })
	f.tell(netip.MustParseAddr("10.0.11.1"))
	waitUntil(t, "the weighted route is withdrawn", func() bool { rs := f.routes(); return len(rs) == 1 && act.Same(rs[0], p) })
	res := d.Apply(t.Context(), acttest.Always, w)
	if res.Outcome != act.Transient || !strings.Contains(res.Detail, "no path to 10.3.6.2/32 through 10.0.12.1") {
		t.Errorf("apply over a dead path: %+v", res)
	}
	f.tell(f.feed...)
	waitUntil(t, "the path is back", func() bool { return d.leaves["l1"].sessions[plan.Weights].liveAll(w) == nil })
	if len(f.routes()) != 1 {
		t.Error("the weighted route came back by itself")
	}
	apply(t, d, w)
}

func TestBreakerOpensAfterOneFlap(t *testing.T) {
	f := newFakeLeaf(t)
	d := start(t, f.config(), acttest.Always)
	prime(t, d)
	p, w := pin("10.3.5.2/32", "10.0.32.0"), weights("10.3.6.2/32", 1, 3)
	apply(t, d, p, w)
	f.drop()
	waitUntil(t, "the pin is replayed", func() bool {
		rs := f.routes()
		return f.count(plan.Pin, bgp.BGP_MSG_OPEN) == 2 && len(rs) == 1 && act.Same(rs[0], p)
	})
	res := d.Apply(t.Context(), acttest.Always, pin("10.3.7.2/32", "10.0.32.0"))
	if res.Outcome != act.Transient || !strings.Contains(res.Detail, "no new routes on l1 until") {
		t.Errorf("apply with an open breaker: %+v", res)
	}
	if res := d.Withdraw(t.Context(), acttest.Always, p.Key()); !res.OK() {
		t.Errorf("withdraw with an open breaker: %+v", res)
	}
	if err := d.ResetBreaker("l1"); err != nil {
		t.Error(err)
	}
	apply(t, d, pin("10.3.7.2/32", "10.0.32.0"))
}

// TestNothingIsSaidWithoutAPermit walks through the moments at which a permit may be gone.
func TestNothingIsSaidWithoutAPermit(t *testing.T) {
	var valid atomic.Bool
	lease := act.PermitFunc(func(time.Time) error {
		if valid.Load() {
			return nil
		}
		return errors.New("the lease has run out")
	})
	r := pin("10.3.5.2/32", "10.0.32.0")

	t.Run("at the start", func(t *testing.T) {
		f := newFakeLeaf(t)
		d := start(t, f.config(), lease)
		if err := d.Prime(t.Context(), []plan.Route{r}); err == nil || !strings.Contains(err.Error(), "lease") {
			t.Errorf("prime: %v", err)
		}
		if n := f.count(plan.Pin, bgp.BGP_MSG_OPEN); n != 0 {
			t.Errorf("%d OPEN messages", n)
		}
	})
	t.Run("between OPEN and the replay", func(t *testing.T) {
		valid.Store(true)
		f := newFakeLeaf(t)
		f.silent = true
		cfg := f.config()
		cfg.StartWait = 0
		d := start(t, cfg, lease)
		prime(t, d, r)
		waitUntil(t, "the leaf has an OPEN", func() bool { return f.count(plan.Pin, bgp.BGP_MSG_OPEN) == 1 })
		valid.Store(false)
		f.mu.Lock()
		c := f.conns[plan.Pin]
		f.mu.Unlock()
		f.send(c, f.open(), nil)
		f.send(c, bgp.NewBGPKeepAliveMessage(), nil)
		f.send(c, bgp.NewEndOfRib(bgp.RF_IPv4_UC), nil)
		waitUntil(t, "the driver has closed the connection", func() bool { return !d.Sessions()[0].Up && strings.Contains(d.Sessions()[0].Reason, "lease") })
		if u, n := f.count(plan.Pin, bgp.BGP_MSG_UPDATE), f.count(plan.Pin, bgp.BGP_MSG_NOTIFICATION); u != 0 || n != 0 {
			t.Errorf("the leaf heard %d UPDATEs and %d NOTIFICATIONs", u, n)
		}
	})
	t.Run("when the session is lost", func(t *testing.T) {
		valid.Store(true)
		f := newFakeLeaf(t)
		d := start(t, f.config(), lease)
		prime(t, d, r)
		waitUntil(t, "the pin is there", func() bool { return len(f.routes()) == 1 })
		valid.Store(false)
		f.drop()
		waitUntil(t, "the session is down", func() bool { return !d.Sessions()[0].Up && strings.Contains(d.Sessions()[0].Reason, "lease") })
		valid.Store(true)
		opens := f.count(plan.Pin, bgp.BGP_MSG_OPEN)
		time.Sleep(200 * time.Millisecond) // a valid lease alone is not enough
		if n := f.count(plan.Pin, bgp.BGP_MSG_OPEN); n != opens {
			t.Error("the driver came back before anybody said what is desired")
		}
		prime(t, d, r)
		waitUntil(t, "the pin is back", func() bool { return len(f.routes()) == 1 })
	})
	t.Run("for too long", func(t *testing.T) {
		valid.Store(true)
		f := newFakeLeaf(t)
		cfg := f.config()
		cfg.OrphanAfter = 200 * time.Millisecond
		d := start(t, cfg, lease)
		prime(t, d, r)
		waitUntil(t, "the pin is there", func() bool { return len(f.routes()) == 1 })
		valid.Store(false)
		waitUntil(t, "the orphaned pin is withdrawn", func() bool { return len(f.routes()) == 0 })
		if n := f.count(plan.Pin, bgp.BGP_MSG_NOTIFICATION); n != 0 {
			t.Error("the session was ended for it")
		}
	})
	t.Run("after a standstill", func(t *testing.T) {
		valid.Store(true)
		f := newFakeLeaf(t)
		d := start(t, f.config(), lease)
		prime(t, d, r)
		d.guard.mu.Lock()
		d.guard.beat = d.guard.beat.Add(-time.Minute) // as if nobody had run for so long
		d.guard.mu.Unlock()
		if res := d.Apply(t.Context(), acttest.Always, pin("10.3.7.2/32", "10.0.32.0")); res.Outcome != act.Cancelled || !strings.Contains(res.Detail, "stood still") {
			t.Errorf("apply after a standstill: %+v", res)
		}
		waitUntil(t, "the session is cut", func() bool { return !d.Sessions()[0].Up })
		if d.leaves["l1"].breaker.check(time.Now()) != nil {
			t.Error("our own cut counts as a flap")
		}
		prime(t, d, r)
		waitUntil(t, "it is back", func() bool { return len(f.routes()) == 1 })
	})
}

func TestManyRoutesAndTheBudget(t *testing.T) {
	f := newFakeLeaf(t)
	cfg := f.config()
	cfg.MaxRoutesPerLeaf = 150
	d := start(t, cfg, acttest.Always)
	var rs []plan.Route
	for i := range 150 {
		rs = append(rs, pin(fmt.Sprintf("10.3.%d.2/32", i), "10.0.32.0"))
	}
	prime(t, d, rs...)
	if got, err := d.Read(t.Context()); err != nil || len(got) != 150 {
		t.Fatalf("read %d routes, %v", len(got), err)
	}
	if res := d.Apply(t.Context(), acttest.Always, pin("10.3.200.2/32", "10.0.32.0")); res.Outcome != act.Transient || !strings.Contains(res.Detail, "the most that it may have") {
		t.Errorf("one too many: %+v", res)
	}
	apply(t, d, pin("10.3.7.2/32", "10.0.31.0")) // a replacement costs nothing
	if res := d.WithdrawAll(t.Context()); !res.OK() || res.Detail != "withdrew 150 routes" {
		t.Errorf("withdraw all: %+v", res)
	}
	waitUntil(t, "all are gone", func() bool { return len(f.routes()) == 0 })
}

func TestSessionDownIsSaidWithItsReason(t *testing.T) {
	f := newFakeLeaf(t)
	cfg := f.config()
	cfg.StartWait = 500 * time.Millisecond
	f.ln.Close()
	d := start(t, cfg, acttest.Always)
	r := pin("10.3.5.2/32", "10.0.32.0")
	did, err := act.Reconcile(t.Context(), d, acttest.Always, []plan.Route{r})
	if len(did) != 1 || did[0].Result.Outcome != act.Transient || err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("did %+v, %v", did, err)
	}
	// A route that is no longer desired is forgotten although the session is down: it must not come up with it.
	if !d.leaves["l1"].sessions[plan.Pin].holds(r.Prefix) {
		t.Error("a desired pin is not held for the replay")
	}
	prime(t, d)
	if d.leaves["l1"].sessions[plan.Pin].holds(r.Prefix) {
		t.Error("a pin that is not desired is still held for the replay")
	}
	if got, err := d.Read(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("read %v, %v", got, err)
	}
}

// TestNobodyElseTalksToTheSpeaker holds that a process of the same machine cannot pass for the leaf.
func TestNobodyElseTalksToTheSpeaker(t *testing.T) {
	f := newFakeLeaf(t)
	d := start(t, f.config(), acttest.Always)
	prime(t, d)
	port := d.leaves["l1"].sessions[plan.Pin].speaker.port
	c, err := net.DialTimeout("tcp4", fmt.Sprintf("127.0.0.1:%d", port), 100*time.Millisecond)
	if err == nil {
		c.Close()
		t.Error("the speaker took a connection without its password")
	}
}

func TestWrongASNumberIsNamed(t *testing.T) {
	f := newFakeLeaf(t)
	cfg := f.config()
	cfg.Leaves[0].ASN = 65009
	cfg.StartWait = 200 * time.Millisecond
	d := start(t, cfg, acttest.Always)
	prime(t, d)
	waitUntil(t, "the reason is named", func() bool { return strings.Contains(d.Sessions()[0].Reason, "bad peer as") })
	if s := d.Sessions()[0]; s.Up || s.Breaker {
		t.Errorf("%+v", s)
	}
}
