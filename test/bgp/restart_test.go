// SPDX-License-Identifier: Apache-2.0

//go:build lab

package bgp_test

import (
	"flag"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/test/lab"
)

// The production figure is 30 s; the test is short by default, and `-restart-time 30s` measures that.
var restartTime = flag.Duration("restart-time", 4*time.Second, "graceful restart time of TestRestart")

// TestRestart is contract 2: a restart of the controller is not an outage, a clean stop is, and a controller that never
// comes back loses its routes when the restart time is over.
func TestRestart(t *testing.T) {
	l := up(t, lab.Config{})
	cfg := driverConfig(l, "l1")
	cfg.RestartTime = *restartTime
	kept, dropped := pin(l, "n5", 2), pin(l, "n6", 2)
	split := weights(l, "n7", 1, 3)

	c := startController(t, l, cfg)
	begin := time.Now()
	c.reconcile(kept, dropped, split)
	eventually(t, l, kept.Prefix, settle, "sp2")
	eventually(t, l, dropped.Prefix, settle, "sp2")
	eventually(t, l, split.Prefix, settle, "sp1*25", "sp2*75")
	t.Logf("from a process without sessions to three routes in the kernel: %s", time.Since(begin).Round(time.Millisecond))

	mon := monitor(t, l)
	c.kill()
	gone := eventually(t, l, split.Prefix, settle)
	t.Logf("kill -9: weights gone after %s, pins stand", gone.Round(time.Millisecond))
	pause(t.Context(), time.Second) // an upgrade takes its time
	c = startController(t, l, cfg)
	begin = time.Now()
	a := c.reconcile(kept)
	if a.Actions != 0 {
		t.Errorf("the new controller did %d actions, want 0: what is kept is replayed, what is dropped is not", a.Actions)
	}
	eventually(t, l, dropped.Prefix, settle)
	t.Logf("restarted: dropped prefix gone %s after the start", time.Since(begin).Round(time.Millisecond))
	pause(t.Context(), cfg.RestartTime+time.Second) // past the restart time: nothing may expire late
	mon.expect(kept.Prefix, 0)
	mon.expect(dropped.Prefix, 1)

	mon = monitor(t, l)
	c.do(order{Op: "close", Keep: true})
	c = startController(t, l, cfg)
	c.reconcile(kept)
	pause(t.Context(), time.Second)
	mon.expect(kept.Prefix, 0)
	t.Log("clean stop with routes kept, and start: 0 kernel events")

	c.kill()
	gone = eventually(t, l, kept.Prefix, cfg.RestartTime+settle)
	t.Logf("kill -9 and not restarted: pin gone after %s, restart time %s", gone.Round(10*time.Millisecond), cfg.RestartTime)
	if gone < cfg.RestartTime-time.Second {
		t.Errorf("pin gone after %s, before the restart time of %s", gone, cfg.RestartTime)
	}

	c = startController(t, l, cfg)
	c.reconcile(kept)
	eventually(t, l, kept.Prefix, settle, "sp2")
	begin = time.Now()
	if a := c.do(order{Op: "close"}); a.Error != "" {
		t.Error(a.Error)
	}
	eventually(t, l, kept.Prefix, settle)
	t.Logf("clean stop: pin gone after %s", time.Since(begin).Round(time.Millisecond))
}

// TestPausedController is field rule 2: a controller that slept past its lease writes nothing and re-advertises nothing.
func TestPausedController(t *testing.T) {
	l := up(t, lab.Config{})
	cfg := driverConfig(l, "l1")
	cfg.Pins.HoldTime, cfg.Pins.Keepalive, cfg.RestartTime = 3*time.Second, time.Second, 2*time.Second
	pinned, split := pin(l, "n5", 2), weights(l, "n7", 1, 3)
	c := startController(t, l, cfg)
	c.do(order{Op: "lease", For: 4 * time.Second})
	c.reconcile(pinned, split)
	eventually(t, l, pinned.Prefix, settle, "sp2")
	eventually(t, l, split.Prefix, settle, "sp1*25", "sp2*75")

	c.signal(syscall.SIGSTOP)
	begin := time.Now()
	t.Logf("SIGSTOP: weights gone after %s", eventually(t, l, split.Prefix, settle).Round(10*time.Millisecond))
	eventually(t, l, pinned.Prefix, 8*time.Second)
	t.Logf("SIGSTOP: pin gone after %s", time.Since(begin).Round(10*time.Millisecond))
	pause(t.Context(), time.Until(begin.Add(6*time.Second))) // past lease and max_pause

	mon := monitor(t, l)
	c.signal(syscall.SIGCONT)
	pause(t.Context(), 10*time.Second) // GoBGP left to itself was back after 6.8 s
	mon.expect(pinned.Prefix, 0)
	mon.expect(split.Prefix, 0)
	a := c.do(order{Op: "reconcile", Routes: []plan.Route{pinned}})
	if !strings.Contains(a.Error, "lease") {
		t.Errorf("reconcile without a lease: %q", a.Error)
	}
	mon.expect(pinned.Prefix, 0)
	t.Logf("SIGCONT: nothing came back in 10 s; the driver says %q", a.Error)

	// With a new lease and the desired routes, it works again: being paused is no reason to stay dead.
	c.do(order{Op: "lease", For: time.Minute})
	deadline := time.Now().Add(5 * time.Second)
	for {
		if a := c.do(order{Op: "reconcile", Routes: []plan.Route{pinned}}); a.Error == "" {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(a.Error, c.sessions())
		}
		pause(t.Context(), 100*time.Millisecond)
	}
	eventually(t, l, pinned.Prefix, settle, "sp2")
	if r := c.do(order{Op: "withdraw-all"}).Result; r.Outcome != act.Done {
		t.Error(r)
	}
	eventually(t, l, pinned.Prefix, settle)
}

// watcher counts the kernel's route events of l1.
type watcher struct {
	t *testing.T
	m *lab.RouteMonitor
}

func monitor(t *testing.T, l *lab.Lab) watcher {
	t.Helper()
	m, err := l.RouteEvents("l1")
	must(t, err)
	t.Cleanup(m.Stop)
	return watcher{t, m}
}

func (w watcher) expect(p netip.Prefix, n int) {
	w.t.Helper()
	es, err := w.m.Of(p)
	must(w.t, err)
	if len(es) != n {
		w.t.Errorf("%d kernel route events for %s, want %d: %v", len(es), p, n, es)
	}
}
