// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
)

func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		valid := true
		g := newGuard(act.PermitFunc(func(time.Time) error {
			if valid {
				return nil
			}
			return errors.New("lease is over")
		}), 5*time.Second)
		says := func(what, want string) {
			t.Helper()
			err := g.check()
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, want %q", what, err, want)
			}
		}
		says("new", "desired routes have not been given")
		if err := g.prime(); err != nil {
			t.Error(err)
		}
		says("primed", "")
		for range 20 { // a heartbeat keeps it open
			time.Sleep(time.Second)
			if orphan, closed := g.tick(time.Now()); closed != nil || orphan != 0 {
				t.Errorf("tick: %v, %s", closed, orphan)
			}
		}
		says("after 20 s of heartbeats", "")
		time.Sleep(6 * time.Second)
		says("after 6 s of standstill", "stood still for 6s, longer than 5s")
		says("and it remembers", "stood still")
		if err := g.prime(); err != nil {
			t.Error(err)
		}
		says("primed again", "")

		valid = false
		time.Sleep(time.Second)
		if orphan, closed := g.tick(time.Now()); closed != nil || orphan != 0 {
			t.Errorf("a lost permit alone closes nothing: %v, %s", closed, orphan)
		}
		time.Sleep(3 * time.Second)
		if orphan, _ := g.tick(time.Now()); orphan != 3*time.Second {
			t.Errorf("orphaned for %s, want 3s", orphan)
		}
		says("a write without permit", "lease is over")
		valid = true
		says("a permit that came back does not open it", "lease is over")
		if err := g.prime(); err != nil {
			t.Error(err)
		}
		says("primed once more", "")
	})
}

func TestElapsedTakesTheLongerClock(t *testing.T) {
	now := time.Now()
	if d := elapsed(now, now.Add(3*time.Second)); d != 3*time.Second {
		t.Errorf("%s", d)
	}
	// A suspended machine: the wall clock went on, the monotonic one did not.
	if d := elapsed(now, now.Round(0).Add(time.Hour)); d != time.Hour {
		t.Errorf("suspended: %s", d)
	}
}

func TestBreaker(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	b := &breaker{leaf: "l1", reset: 10 * time.Minute}
	if err := b.check(now); err != nil {
		t.Error(err)
	}
	b.trip(now, "the session ended")
	if err := b.check(now.Add(9 * time.Minute)); err == nil || err.Error() != "no new routes on l1 until 12:10:00 UTC or a reset: the session ended" {
		t.Error(err)
	}
	if err := b.check(now.Add(10 * time.Minute)); err != nil {
		t.Error(err)
	}
	b.trip(now, "again")
	b.close()
	if err := b.check(now); err != nil {
		t.Error(err)
	}
}
