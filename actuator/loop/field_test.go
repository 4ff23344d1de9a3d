// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/journal"
	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Fifty equal posts at once, and the twin of a second Alertmanager: one incident, one write.
func TestFiftyEqualPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		store := journal.NewMem()
		l, stop := run(t, w.config(store, policy.Act))
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(true)}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(5 * time.Second)
		wantState(t, l, w, flow.Holding, 1)
		if n := w.changes(0); n != 1 {
			t.Errorf("%d writes", n)
		}
		n := 0
		for _, r := range store.Records() {
			if r.Type == string(flow.KindAlert) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d records of one transition", n)
		}
		end(t, stop)
	})
}

// An alert vanishes with a restart of Prometheus and comes back with a new start: the cooldown of the target outlives the
// episode.
func TestCooldownOutlivesTheEpisode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.outcome = flow.Harm
		l, stop := fire(t, w, journal.NewMem(), policy.Act, 5*time.Second)
		wantState(t, l, w, flow.Undone, 0)
		for i := range 3 {
			a := alertEvent(false)
			a.StartsAt = a.StartsAt.Add(time.Duration(i) * time.Second)
			if err := l.Deliver(t.Context(), []flow.AlertEvent{a}); err != nil {
				t.Fatal(err)
			}
			a.Firing, a.StartsAt = true, a.StartsAt.Add(time.Second)
			if err := l.Deliver(t.Context(), []flow.AlertEvent{a}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		if n := w.changes(0); n != 1 {
			t.Errorf("%d writes within the cooldown", n)
		}
		time.Sleep(time.Minute)
		if n := w.changes(0); n != 2 {
			t.Errorf("%d writes after the cooldown, want the second", n)
		}
		end(t, stop)
	})
}

// Stopped for a long time: what happened meanwhile is not run afterwards. What still fires is looked at anew.
func TestNoBacklogAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l, stop := run(t, w.config(journal.NewMem(), policy.Act))
		if err := l.Stop(t.Context(), false, "ada"); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			a := alertEvent(true)
			a.Fingerprint, a.Target.Name = fmt.Sprintf("f%d", i), fmt.Sprintf("sp%d", i)
			if err := l.Deliver(t.Context(), []flow.AlertEvent{a}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			a.Firing = false
			if err := l.Deliver(t.Context(), []flow.AlertEvent{a}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if err := l.Resume(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if w.changed() != 0 {
			t.Errorf("%d writes for what is over", w.changed())
		}
		for _, v := range l.Views() {
			if !v.Over {
				t.Errorf("%s is %s", v.ID, v.State)
			}
		}
		end(t, stop)
	})
}

// Twenty thousand alerts in one body are durable at once, and open no more incidents than people can read.
func BenchmarkDeliver20000(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		store, err := journal.OpenDir(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		w := newWorld()
		cfg := w.config(store, policy.Watch)
		l, err := New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		go func() { _ = l.Run(b.Context()) }()
		var alerts []flow.AlertEvent
		for i := range 20_000 {
			a := alertEvent(true)
			a.Fingerprint, a.Target = fmt.Sprintf("%016x", i), ident.Port{Fabric: "lab", Device: "l1", Name: fmt.Sprint(i)}
			a.Labels = map[string]string{"alertname": a.Name, "link": a.Target.String(), "severity": "warning", "owner": "fabric", "switch": "l1"}
			alerts = append(alerts, a)
		}
		_ = l.Deliver(b.Context(), nil)
		b.StartTimer()
		if err := l.Deliver(b.Context(), alerts); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if n := len(l.Views()); n != 64 {
			b.Fatalf("%d incidents", n)
		}
		b.StartTimer()
	}
}
