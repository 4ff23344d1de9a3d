// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/journal"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
)

// fire runs a loop, delivers the alert and lets some time pass.
func fire(t *testing.T, w *world, store journal.Store, mode policy.Mode, wait time.Duration) (*Loop, func() error) {
	t.Helper()
	l, stop := run(t, w.config(store, mode))
	if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(true)}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(wait)
	return l, stop
}

func wantState(t *testing.T, l *Loop, w *world, want flow.IncidentState, routes int) flow.View {
	t.Helper()
	v := only(t, l)
	if v.State != want || w.count() != routes {
		t.Errorf("%s with %d routes, want %s with %d:\n%s", v.State, w.count(), want, routes, story(v))
	}
	return v
}

func end(t *testing.T, stop func() error) {
	t.Helper()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestWatchWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.outcome = flow.NoChange
		l, stop := fire(t, w, journal.NewMem(), policy.Watch, 40*time.Second)
		v := wantState(t, l, w, flow.Watched, 0)
		if v.FollowUp == nil || v.Chosen == nil || v.Verdict == nil || v.Verdict.Would != "allow" || w.changed() != 0 {
			t.Errorf("%+v, %d writes", v, w.changed())
		}
		end(t, stop)
	})
}

func TestAdvise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l, stop := fire(t, w, journal.NewMem(), policy.Advise, 5*time.Second)
		v := wantState(t, l, w, flow.Asked, 0)
		if err := l.Approve(t.Context(), "inc-x-1", "ada"); !errors.Is(err, ErrNoIncident) {
			t.Error(err)
		}
		if err := l.Approve(t.Context(), v.ID, "ada"); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		if v := wantState(t, l, w, flow.Holding, 1); v.ApprovedBy != "ada" {
			t.Error(v.ApprovedBy)
		}
		if err := l.Deny(t.Context(), v.ID, "ada"); !errors.Is(err, ErrNotAsked) {
			t.Error(err)
		}
		end(t, stop)
	})
}

func TestHarmIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.outcome = flow.Harm
		l, stop := fire(t, w, journal.NewMem(), policy.Act, 5*time.Second)
		wantState(t, l, w, flow.Undone, 0)
		end(t, stop)
	})
}

// A figure that is no number cannot be journalled: nothing is concluded from it.
func TestFigureThatIsNoNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		cfg := w.config(journal.NewMem(), policy.Act)
		cfg.Verify = func(Trial) flow.Verification {
			return flow.Verification{Outcome: flow.Better, Figures: []flow.Figure{{What: "gain", After: math.NaN()}}}
		}
		l, stop := run(t, cfg)
		if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(true)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if v := wantState(t, l, w, flow.Undone, 0); !strings.Contains(v.Reason, "inconclusive") {
			t.Error(v.Reason)
		}
		end(t, stop)
	})
}

// A fault of the thinking refuses, a fault of the verification takes back; neither ends the program.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		cfg := w.config(journal.NewMem(), policy.Act)
		cfg.Verify = func(Trial) flow.Verification { panic("index out of range") }
		propose, faulty := cfg.Propose, true
		cfg.Propose = func(ctx context.Context, q Question) (flow.Proposal, error) {
			if faulty {
				faulty = false
				panic("nil map")
			}
			return propose(ctx, q)
		}
		l, stop := run(t, cfg)
		if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(true)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if v := wantState(t, l, w, flow.Refused, 0); !strings.Contains(v.Reason, "a fault of the thinking") {
			t.Error(v.Reason)
		}
		time.Sleep(2 * time.Minute)
		if vs := l.Views(); len(vs) != 2 || vs[1].State != flow.Undone || !strings.Contains(vs[1].Reason, "a fault of the verification") || w.count() != 0 {
			t.Errorf("%+v", vs)
		}
		end(t, stop)
	})
}

func TestNeverVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.outcome = ""
		l, stop := fire(t, w, journal.NewMem(), policy.Act, 40*time.Second)
		if v := wantState(t, l, w, flow.Undone, 0); !strings.Contains(v.Reason, "inconclusive") {
			t.Error(v.Reason)
		}
		end(t, stop)
	})
}

func TestJobEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.outcome = ""
		l, stop := fire(t, w, journal.NewMem(), policy.Act, 5*time.Second)
		wantState(t, l, w, flow.Settling, 1)
		w.mu.Lock()
		w.noJob = true
		w.mu.Unlock()
		time.Sleep(3 * time.Second)
		if v := wantState(t, l, w, flow.Undone, 0); !strings.Contains(v.Reason, "job job-a ended") {
			t.Error(v.Reason)
		}
		end(t, stop)
	})
}

// The switch loses the route: it is written again. A route that nobody desires is removed.
func TestReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l, stop := fire(t, w, journal.NewMem(), policy.Act, 5*time.Second)
		wantState(t, l, w, flow.Holding, 1)
		w.mu.Lock()
		clear(w.routes)
		w.routes[route(9).Key()] = route(9)
		w.mu.Unlock()
		time.Sleep(5 * time.Second)
		wantState(t, l, w, flow.Holding, 1)
		w.mu.Lock()
		_, ours := w.routes[route(0).Key()]
		w.mu.Unlock()
		if !ours {
			t.Error("the route that was lost is not there")
		}
		end(t, stop)
	})
}

// A driver that does not answer: the write is read back, never repeated blind, and taken back if it cannot be done.
func TestDriverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.hang = make(chan struct{})
		l, stop := fire(t, w, journal.NewMem(), policy.Act, time.Minute)
		wantState(t, l, w, flow.Undone, 0)
		close(w.hang)
		time.Sleep(5 * time.Second)
		if w.count() != 0 {
			t.Error("a late answer wrote a route")
		}
		end(t, stop)
	})
}

func TestStopFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		set := func(s StopSwitch, err error) {
			w.stopMu.Lock()
			w.stopFile, w.stopErr = s, err
			w.stopMu.Unlock()
		}
		set(StopSwitch{}, errors.New("permission denied"))
		l, stop := fire(t, w, journal.NewMem(), policy.Act, 5*time.Second)
		if v := wantState(t, l, w, flow.Refused, 0); !strings.Contains(v.Reason, "stop switch") {
			t.Error(v.Reason)
		}
		set(StopSwitch{}, nil)
		time.Sleep(90 * time.Second) // looked at again
		vs := l.Views()
		if len(vs) != 2 || vs[1].State != flow.Holding || w.count() != 1 {
			t.Fatalf("%d incidents, %d routes", len(vs), w.count())
		}
		set(StopSwitch{Present: true}, nil)
		time.Sleep(5 * time.Second)
		if w.count() != 1 || !l.Status().Stopped {
			t.Errorf("a stop takes nothing back: %d routes, %+v", w.count(), l.Status())
		}
		set(StopSwitch{Present: true, Withdraw: true}, nil)
		time.Sleep(5 * time.Second)
		if w.count() != 0 {
			t.Errorf("%d routes after withdraw", w.count())
		}
		set(StopSwitch{}, nil)
		time.Sleep(5 * time.Second)
		if l.Status().Stopped {
			t.Error("still stopped")
		}
		end(t, stop)
	})
}

func TestStopWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l, stop := fire(t, w, journal.NewMem(), policy.Act, 5*time.Second)
		if err := l.Stop(t.Context(), true, "ada"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		wantState(t, l, w, flow.Released, 0)
		if err := l.Resume(t.Context(), "ada"); err != nil {
			t.Error(err)
		}
		end(t, stop)
	})
}

// A restart keeps routes: the next run finds them in the journal and on the switch, and writes nothing.
func TestRestartKeepsRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		store := journal.NewMem()
		_, stop := fire(t, w, store, policy.Act, 5*time.Second)
		end(t, stop)
		if w.count() != 1 {
			t.Fatal("a clean stop takes routes back")
		}
		l, stop := run(t, w.config(store, policy.Act))
		time.Sleep(10 * time.Second)
		wantState(t, l, w, flow.Holding, 1)
		if n := w.changes(0); n != 1 {
			t.Errorf("written %d times", n)
		}
		if s := l.Status(); s.Epoch != 2 {
			t.Errorf("epoch %d", s.Epoch)
		}
		end(t, stop)
	})
}

// sleepy is a clock that can be put forward, as the clock of a process that was stopped is.
type sleepy struct{ ahead atomic.Int64 }

func (s *sleepy) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// A run that slept past its lease ends, writes nothing, and its permit never comes back.
func TestPausedPastTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var clock sleepy
		cfg := w.config(journal.NewMem(), policy.Act)
		cfg.Clock, cfg.Permit = clock.now, NewPermit(clock.now, 4*time.Second)
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- l.Run(t.Context()) }()
		synctest.Wait()
		if err := cfg.Permit.Valid(time.Time{}); err != nil {
			t.Error(err)
		}
		clock.ahead.Store(int64(7 * time.Second))
		if err := cfg.Permit.Valid(time.Time{}); !errors.Is(err, ErrLapsed) {
			t.Errorf("valid after a sleep: %v", err)
		}
		clock.ahead.Store(0)
		if err := cfg.Permit.Valid(time.Time{}); !errors.Is(err, ErrLapsed) {
			t.Errorf("it came back: %v", err)
		}
		if err := <-done; !errors.Is(err, ErrLapsed) {
			t.Errorf("run: %v", err)
		}
		if err := l.Deliver(t.Context(), nil); !errors.Is(err, ErrNotRunning) {
			t.Error(err)
		}
	})
}

// Another process took the journal: this one writes nothing any more and ends.
func TestFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		store := journal.NewMem()
		l, err := New(w.config(store, policy.Act))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- l.Run(t.Context()) }()
		synctest.Wait()
		loaded, _ := store.Load(t.Context())
		if err := store.Append(t.Context(), loaded.Seq, loaded.Epoch+1, []journal.Record{{Type: "tick", Payload: []byte("{}")}}); err != nil {
			t.Fatal(err)
		}
		if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(true)}); !errors.Is(err, ErrJournal) {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, journal.ErrFenced) {
			t.Errorf("run: %v", err)
		}
		if w.count() != 0 {
			t.Error("a fenced run wrote a route")
		}
	})
}

// damaged is a journal that cannot be trusted.
type damaged struct {
	*journal.MemStore
	change func(*journal.Loaded)
}

func (d damaged) Load(ctx context.Context) (journal.Loaded, error) {
	l, err := d.MemStore.Load(ctx)
	d.change(&l)
	return l, err
}

// Damage, an unknown type, and a newer version: the run is read-only, acts on nothing, and still shows what it knows.
func TestReadOnly(t *testing.T) {
	for name, change := range map[string]func(*journal.Loaded){
		"damage":       func(l *journal.Loaded) { l.Damage = journal.ErrDamaged },
		"unknown type": func(l *journal.Loaded) { l.Records[len(l.Records)-1].Type = "invented" },
		"newer rules":  func(l *journal.Loaded) { l.Records[len(l.Records)-1].Flow = flow.Version + 1 },
		"no payload":   func(l *journal.Loaded) { l.Records[len(l.Records)-1].Payload = nil },
		"newer state":  func(l *journal.Loaded) { l.State = []byte(`{"version":99}`) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				store := journal.NewMem()
				_, stop := fire(t, w, &crashing{MemStore: store}, policy.Act, 5*time.Second)
				storeWithoutCheckpoint := journal.NewMem()
				for i, r := range store.Records() {
					if err := storeWithoutCheckpoint.Append(t.Context(), uint64(i), r.Epoch, []journal.Record{r}); err != nil {
						t.Fatal(err)
					}
				}
				end(t, stop)
				w.mu.Lock()
				w.routes[route(9).Key()] = route(9) // nobody desires it, and it must stay: nothing is acted on
				w.mu.Unlock()
				l, stop := run(t, w.config(damaged{storeWithoutCheckpoint, change}, policy.Act))
				time.Sleep(30 * time.Second)
				if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(false)}); !errors.Is(err, ErrJournal) {
					t.Errorf("deliver: %v", err)
				}
				if l.Status().ReadOnly == "" || w.count() != 2 {
					t.Errorf("%+v, %d routes", l.Status(), w.count())
				}
				if len(l.Views()) != 1 && name != "newer state" {
					t.Errorf("%d incidents are shown", len(l.Views()))
				}
				if err := l.Stop(t.Context(), true, "ada"); err == nil {
					t.Error("a stop that cannot be recorded was acknowledged")
				}
				time.Sleep(time.Second)
				if w.count() != 0 {
					t.Error("stop --withdraw takes nothing back on a read-only journal")
				}
				end(t, stop)
			})
		})
	}
}

// A program that was changed and commands something else on the same records hands the incident to a human, and leaves
// its routes alone.
func TestDivergence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		store := journal.NewMem()
		_, stop := fire(t, w, store, policy.Act, 5*time.Second)
		changed := journal.NewMem()
		for i, r := range store.Records() {
			if r.Type == string(flow.KindJudged) {
				var e entry
				if err := json.Unmarshal(r.Payload, &e); err != nil {
					t.Fatal(err)
				}
				for id := range e.Commands {
					e.Commands[id] = "another"
				}
				r.Payload, _ = json.Marshal(e)
			}
			if err := changed.Append(t.Context(), uint64(i), r.Epoch, []journal.Record{r}); err != nil {
				t.Fatal(err)
			}
		}
		end(t, stop)
		l, stop := run(t, w.config(changed, policy.Act))
		time.Sleep(20 * time.Second)
		v := wantState(t, l, w, flow.Handed, 1)
		if err := l.LetGo(t.Context(), v.ID, "ada"); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		wantState(t, l, w, flow.Released, 0)
		end(t, stop)
	})
}

// The poll brings what no message told: an alert that fires, and one that is gone.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		store := journal.NewMem()
		l, stop := run(t, w.config(store, policy.Act))
		if err := l.Poll(t.Context(), []flow.AlertEvent{alertEvent(true)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		wantState(t, l, w, flow.Holding, 1)
		before := len(store.Records())
		for range 50 {
			if err := l.Poll(t.Context(), []flow.AlertEvent{alertEvent(true)}); err != nil {
				t.Fatal(err)
			}
			if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(true)}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(store.Records()) - before; n != 0 {
			t.Errorf("%d records for nothing new", n)
		}
		if err := l.Poll(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Second)
		wantState(t, l, w, flow.Released, 0)
		end(t, stop)
	})
}

// Prometheus is down: the incident says so, and is looked at again.
func TestNoPicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		cfg := w.config(journal.NewMem(), policy.Act)
		cfg.Propose = func(context.Context, Question) (flow.Proposal, error) {
			return flow.Proposal{}, errors.New("thinking failed")
		}
		l, stop := run(t, cfg)
		if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(true)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if v := wantState(t, l, w, flow.Refused, 0); !strings.Contains(v.Reason, "thinking failed") {
			t.Error(v.Reason)
		}
		end(t, stop)
	})
}

// Without a driver every plan is refused: nobody can say its routes.
func TestNoDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		cfg := w.config(journal.NewMem(), policy.Act)
		cfg.Driver = nil
		l, stop := run(t, cfg)
		if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(true)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if v := wantState(t, l, w, flow.Refused, 0); !strings.Contains(v.Reason, "no driver") {
			t.Error(v.Reason)
		}
		end(t, stop)
	})
}

func TestTransientWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		n := 0
		w.fail = func(op string, _ plan.RouteKey) act.Result {
			if op == "apply" {
				if n++; n < 3 {
					return act.Result{Outcome: act.Transient, Detail: "busy"}
				}
			}
			return act.Result{}
		}
		l, stop := fire(t, w, journal.NewMem(), policy.Act, 5*time.Second)
		wantState(t, l, w, flow.Holding, 1)
		end(t, stop)
	})
}
