// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a source whose reads a test writes down.
type fake struct {
	name string
	read func(ctx context.Context, n int) ([]Sample, error)
	n    int // reads so far; only Read touches it, and reads do not overlap
}

func (f *fake) Name() string { return f.name }
func (f *fake) Read(ctx context.Context) ([]Sample, error) {
	f.n++
	return f.read(ctx, f.n)
}

func packets(device string, v float64) Sample {
	return New("node_network_receive_packets_total", v, "n1", device)
}

func start(t *testing.T, schedules ...Schedule) (*Set, context.CancelFunc) {
	t.Helper()
	set, err := NewSet(slog.New(slog.DiscardHandler), []Sample{New("trainyard_exporter_build_info", 1, "v", "r", "g", "node")}, schedules...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { set.Run(ctx); close(done) }()
	return set, func() { cancel(); <-done }
}

func value(s *Snapshot, name string, labels ...string) (float64, bool) {
	for _, sample := range s.Samples {
		if sample.Row.Name == name && strings.Join(sample.Labels, ",") == strings.Join(labels, ",") {
			return sample.Value, true
		}
	}
	return 0, false
}

func wantValue(t *testing.T, s *Snapshot, want float64, name string, labels ...string) {
	t.Helper()
	if got, ok := value(s, name, labels...); !ok || got != want {
		t.Errorf("%v: %s%v is %v (there: %v), want %v", s.Taken.Format("05.000"), name, labels, got, ok, want)
	}
}

func TestEachSourceOnItsOwnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := func(device string) func(context.Context, int) ([]Sample, error) {
			return func(_ context.Context, n int) ([]Sample, error) { return []Sample{packets(device, float64(n))}, nil }
		}
		set, stop := start(t, Schedule{Source: &fake{name: "fast", read: count("a")}, Interval: time.Second},
			Schedule{Source: &fake{name: "slow", read: count("b")}, Interval: 10 * time.Second})
		defer stop()
		time.Sleep(25*time.Second + 100*time.Millisecond)
		s := set.Snapshot()
		wantValue(t, s, 26, "node_network_receive_packets_total", "n1", "a")
		wantValue(t, s, 3, "node_network_receive_packets_total", "n1", "b")
		wantValue(t, s, 1, "trainyard_source_success", "slow")
		wantValue(t, s, 1, "trainyard_exporter_build_info", "v", "r", "g", "node")
	})
}

// A read that heeds nothing is abandoned: the other source goes on, the stuck one is marked, not read again, and its
// samples disappear at their age. When it returns, reading goes on.
func TestStuckReadIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := &fake{name: "stuck", read: func(_ context.Context, n int) ([]Sample, error) {
			if n == 2 {
				<-release
			}
			return []Sample{packets("a", float64(n))}, nil
		}}
		good := &fake{name: "good", read: func(_ context.Context, n int) ([]Sample, error) { return []Sample{packets("b", float64(n))}, nil }}
		set, stop := start(t, Schedule{Source: stuck, Interval: time.Second, MaxAge: 7 * time.Second}, Schedule{Source: good, Interval: time.Second})
		defer stop()

		time.Sleep(5 * time.Second)
		s := set.Snapshot()
		wantValue(t, s, 0, "trainyard_source_success", "stuck")
		wantValue(t, s, 1, "node_network_receive_packets_total", "n1", "a") // not too old yet
		wantValue(t, s, 5, "node_network_receive_packets_total", "n1", "b")
		if st := s.Sources[0]; !st.Stuck || !errors.Is(st.Err, errStuck) || st.Duration < 2*time.Second {
			t.Errorf("status is %+v", st)
		}
		time.Sleep(4 * time.Second)
		if _, ok := value(set.Snapshot(), "node_network_receive_packets_total", "n1", "a"); ok {
			t.Error("samples of a stuck source stand beyond their age")
		}
		synctest.Wait()
		if stuck.n != 2 {
			t.Errorf("read %d times while stuck", stuck.n)
		}
		close(release)
		time.Sleep(2 * time.Second)
		wantValue(t, set.Snapshot(), 1, "trainyard_source_success", "stuck")
		if v, _ := value(set.Snapshot(), "node_network_receive_packets_total", "n1", "a"); v < 3 {
			t.Errorf("value after the return is %v: the late result was used, or reading did not go on", v)
		}
	})
}

func TestDeadlineIsHeededAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &fake{name: "slow", read: func(ctx context.Context, _ int) ([]Sample, error) {
			<-ctx.Done()
			return []Sample{New("trainyard_switch_up", 0, "f", "l1")}, errors.New("the agent did not answer")
		}}
		set, stop := start(t, Schedule{Source: slow, Interval: time.Second, Timeout: 500 * time.Millisecond})
		defer stop()
		time.Sleep(900 * time.Millisecond)
		s := set.Snapshot()
		wantValue(t, s, 0, "trainyard_switch_up", "f", "l1")
		wantValue(t, s, 0, "trainyard_source_success", "slow")
		wantValue(t, s, 0.5, "trainyard_source_duration_seconds", "slow")
		if _, ok := value(s, "trainyard_source_last_success_timestamp_seconds", "slow"); ok {
			t.Error("a source that never succeeded has a time of success")
		}
	})
}

func TestErrorsAbsenceAndPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := &fake{name: "failing", read: func(_ context.Context, n int) ([]Sample, error) {
			if n == 1 {
				return []Sample{packets("a", 1), packets("b", 1)}, nil
			}
			if n < 4 {
				return nil, errors.New("no luck")
			}
			return []Sample{packets("b", 4)}, errors.New("half the luck") // a partial result replaces all
		}}
		absent := &fake{name: "absent", read: func(context.Context, int) ([]Sample, error) { return nil, ErrAbsent }}
		mad := &fake{name: "mad", read: func(context.Context, int) ([]Sample, error) { panic("out of range") }}
		set, stop := start(t, Schedule{Source: failing, Interval: time.Second}, Schedule{Source: absent, Interval: time.Second}, Schedule{Source: mad, Interval: time.Second})
		defer stop()
		time.Sleep(2500 * time.Millisecond)
		s := set.Snapshot()
		wantValue(t, s, 1, "node_network_receive_packets_total", "n1", "a") // an error alone leaves them
		wantValue(t, s, 0, "trainyard_source_success", "failing")
		wantValue(t, s, 1, "trainyard_source_success", "absent")
		wantValue(t, s, 0, "trainyard_source_success", "mad")
		if err := s.Sources[2].Err; err == nil || !strings.Contains(err.Error(), "out of range") {
			t.Errorf("panic became %v", err)
		}
		time.Sleep(time.Second)
		s = set.Snapshot()
		wantValue(t, s, 4, "node_network_receive_packets_total", "n1", "b")
		if _, ok := value(s, "node_network_receive_packets_total", "n1", "a"); ok {
			t.Error("a partial result left an older sample standing")
		}
	})
}

// Field case: 100, 120, 5: the counter started anew at the 5, although the source knows nothing of it.
func TestStartOfACounterThatFell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		values := []float64{100, 120, 5, 9}
		boot := time.Now().Add(-time.Hour)
		counter := &fake{name: "c", read: func(_ context.Context, n int) ([]Sample, error) {
			v := values[min(n, len(values))-1]
			return []Sample{packets("plain", v), packets("boot", v).Since(boot)}, nil
		}}
		began := time.Now()
		set, stop := start(t, Schedule{Source: counter, Interval: time.Second})
		defer stop()
		for i, want := range []struct{ plain, boot time.Time }{
			{began, boot}, {began, boot}, {began.Add(2 * time.Second), began.Add(2 * time.Second)}, {began.Add(2 * time.Second), began.Add(2 * time.Second)},
		} {
			time.Sleep(100 * time.Millisecond)
			for _, s := range set.Snapshot().Samples {
				if s.Row.Name != "node_network_receive_packets_total" {
					continue
				}
				if w := map[string]time.Time{"plain": want.plain, "boot": want.boot}[s.Label("device")]; !s.Start.Equal(w) {
					t.Errorf("read %d: %s started %v, want %v", i, s.Label("device"), s.Start, w)
				}
			}
			time.Sleep(900 * time.Millisecond)
		}
	})
}

func TestDuplicatesAreDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		twice := &fake{name: "twice", read: func(context.Context, int) ([]Sample, error) { return []Sample{packets("a", 1), packets("a", 2)}, nil }}
		set, stop := start(t, Schedule{Source: twice, Interval: time.Second})
		defer stop()
		time.Sleep(100 * time.Millisecond)
		s := set.Snapshot()
		wantValue(t, s, 1, "node_network_receive_packets_total", "n1", "a")
		if s.Duplicates != 1 {
			t.Errorf("%d duplicates counted", s.Duplicates)
		}
	})
}

func TestObserversSeeSortedSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fake{name: "x", read: func(context.Context, int) ([]Sample, error) { return []Sample{packets("b", 1), packets("a", 1)}, nil }}
		set, err := NewSet(slog.New(slog.DiscardHandler), nil, Schedule{Source: src, Interval: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		var seen []*Snapshot
		set.OnPublish(func(s *Snapshot) { seen = append(seen, s) })
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		set.Run(ctx)
		if len(seen) != 4 || seen[3] != set.Snapshot() {
			t.Fatalf("%d snapshots seen", len(seen))
		}
		for i, s := range seen[0].Samples[1:] {
			if seen[0].Samples[i].Compare(s) >= 0 {
				t.Errorf("not sorted at %d", i)
			}
		}
	})
}

func TestNewSetRefuses(t *testing.T) {
	a := &fake{name: "a"}
	for what, schedules := range map[string][]Schedule{
		"a name twice": {{Source: a, Interval: 1}, {Source: a, Interval: 1}},
		"no interval":  {{Source: a}},
	} {
		if _, err := NewSet(slog.New(slog.DiscardHandler), nil, schedules...); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}

func TestNewPanicsOnMistakesOfTheProgram(t *testing.T) {
	for what, f := range map[string]func(){
		"unknown name": func() { New("trainyard_nothing", 1) },
		"wrong labels": func() { New("trainyard_switch_up", 1, "f") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			f()
		}()
	}
}
