// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/journal"
	"github.com/trainyard/trainyard/actuator/policy"
)

// crashing is a store that goes down before or after one of its appends, and stays down.
type crashing struct {
	*journal.MemStore
	mu    sync.Mutex
	at    int // append that crashes, from 1; 0 = never
	after bool
	n     int
	down  bool
}

var errDown = errors.New("the machine went down")

func (c *crashing) Append(ctx context.Context, seq, epoch uint64, rs []journal.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return errDown
	}
	if c.n++; c.n == c.at {
		c.down = true
		if c.after {
			_ = c.MemStore.Append(ctx, seq, epoch, rs)
		}
		return errDown
	}
	return c.MemStore.Append(ctx, seq, epoch, rs)
}

func (c *crashing) Checkpoint(ctx context.Context, seq, epoch uint64, fv uint32, now time.Time, state []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return errDown
	}
	return c.MemStore.Checkpoint(ctx, seq, epoch, fv, now, state)
}

func (c *crashing) isDown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down
}

func (c *crashing) repair() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down, c.at = false, 0
}

// deliverUntilAnswered is Alertmanager: it sends again until it is answered.
func deliverUntilAnswered(ctx context.Context, l *Loop, a flow.AlertEvent) {
	for l.Deliver(ctx, []flow.AlertEvent{a}) != nil && ctx.Err() == nil {
		time.Sleep(time.Second)
	}
}

// The machine goes down before and after each record of one incident, and comes up again: the incident goes on to its
// end, no route is changed twice, and what is in force is what the journal says.
func TestCrashAtEachRecord(t *testing.T) {
	lifetime := func(t *testing.T, at int, after bool) (records int, hit bool) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.steps = 2
			store := &crashing{MemStore: journal.NewMem(), at: at, after: after}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 2 { // the run that crashes, if it does, and the one after it
				l, stop := run(t, w.config(store, policy.Act))
				alertCtx, end := context.WithCancel(ctx)
				done := make(chan struct{})
				go func() {
					defer close(done)
					deliverUntilAnswered(alertCtx, l, alertEvent(true))
					time.Sleep(20 * time.Second)
					deliverUntilAnswered(alertCtx, l, alertEvent(false))
				}()
				for range 90 {
					time.Sleep(time.Second)
					if store.isDown() {
						break
					}
				}
				end()
				<-done
				err := stop()
				if err != nil && !store.isDown() {
					t.Error(err)
				}
				hit = hit || store.isDown()
				if !store.isDown() {
					v := only(t, l)
					if !v.Over || w.count() != 0 {
						t.Errorf("%s, %d routes:\n%s", v.State, w.count(), story(v))
					}
					break
				}
				store.repair()
			}
			for k, n := range w.applied {
				if n > 1 {
					t.Errorf("%s was written %d times", k, n)
				}
			}
			records = store.n
		})
		return records, hit
	}
	total, _ := lifetime(t, 0, false)
	for _, after := range []bool{false, true} {
		hits := 0
		for at := 1; at <= total; at++ {
			t.Run(fmt.Sprintf("record %d, durable %v", at, after), func(t *testing.T) {
				if _, hit := lifetime(t, at, after); hit {
					hits++
				}
			})
		}
		t.Logf("crash points hit: %d, appends of the uncrashed run: %d (record durable: %v)", hits, total, after)
		if hits != total {
			t.Errorf("%d crash points hit, %d appends", hits, total)
		}
	}
}

// A full disk: alerts are answered with an error, nothing is acted on; with room again everything goes on by itself.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		store := journal.NewMem()
		var mu sync.Mutex
		full := false
		store.Fail = func([]journal.Record) error {
			mu.Lock()
			defer mu.Unlock()
			if full {
				return errors.New("no space left on device")
			}
			return nil
		}
		l, stop := run(t, w.config(store, policy.Act))
		synctest.Wait()
		mu.Lock()
		full = true
		mu.Unlock()
		if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(true)}); !errors.Is(err, ErrJournal) {
			t.Errorf("deliver on a full disk: %v", err)
		}
		time.Sleep(30 * time.Second)
		if w.count() != 0 || l.Status().ReadOnly == "" {
			t.Errorf("%d routes, status %+v", w.count(), l.Status())
		}
		mu.Lock()
		full = false
		mu.Unlock()
		deliverUntilAnswered(t.Context(), l, alertEvent(true))
		time.Sleep(5 * time.Second)
		if v := only(t, l); v.State != flow.Holding || w.count() != 1 {
			t.Errorf("%s, %d routes:\n%s", v.State, w.count(), story(v))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
