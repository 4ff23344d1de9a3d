// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/flow"
)

// Loop runs one yard.
type Loop struct {
	cfg   Config
	log   *slog.Logger
	clock func() time.Time

	requests chan request    // from other goroutines: run in the loop's own
	results  chan flow.Event // of commands carried out
	finished chan func()     // same, for what is no event
	running  chan struct{}   // closed when Run begins
	over     chan struct{}   // closed when Run ends
	workers  sync.WaitGroup  // every goroutine that Run started
	ctx      context.Context // of everything that is carried out
	cancel   context.CancelFunc

	mu       sync.Mutex // guards what follows for readers; only the loop's goroutine writes
	state    flow.State
	seq      uint64
	epoch    uint64
	readOnly error
	status   Status

	// Only the loop's goroutine touches these.
	diverged   map[flow.ID]string // from replay
	unsaved    int                // records since the checkpoint
	ended      map[flow.ID]bool   // incidents whose end was told
	broken     error              // an append failed and the journal was not read again yet
	writes     writes             // to the driver, one after the other
	looks      looks              // pictures that are waited for
	pictures   map[string]fleet.Snapshot
	order      []string // of pictures, oldest first
	fileStop   StopSwitch
	stopErr    string
	observedAt map[flow.ID]time.Time // when the picture behind a plan came, by the local clock with its monotonic part
}

type request struct {
	do   func() error
	done chan error
}

// New checks the configuration; Run starts.
func New(cfg Config) (*Loop, error) {
	var errs []error
	for _, need := range []struct {
		name string
		ok   bool
	}{{"Store", cfg.Store != nil}, {"Observer", cfg.Observer != nil}, {"Propose", cfg.Propose != nil}, {"Verify", cfg.Verify != nil}} {
		if !need.ok {
			errs = append(errs, fmt.Errorf("loop: %s is missing", need.name))
		}
	}
	if err := cfg.Policies.Validate(); err != nil {
		errs = append(errs, err)
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	setDefault(&cfg.ObserveEvery, 5*time.Second)
	setDefault(&cfg.ReconcileEvery, 5*time.Second)
	setDefault(&cfg.Timeout, 10*time.Second)
	setDefault(&cfg.Grace, 30*time.Second)
	setDefault(&cfg.CheckpointEach, 2000)
	if cfg.FollowUp == nil {
		cfg.FollowUp = cfg.Verify
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Permit == nil {
		cfg.Permit = NewPermit(cfg.Clock, 10*time.Second)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.StopFile == nil {
		cfg.StopFile = func() (StopSwitch, error) { return StopSwitch{}, nil }
	}
	return &Loop{
		cfg: cfg, log: cfg.Logger, clock: cfg.Clock, state: flow.New(),
		requests: make(chan request), results: make(chan flow.Event), finished: make(chan func()),
		running: make(chan struct{}), over: make(chan struct{}),
		pictures: map[string]fleet.Snapshot{}, observedAt: map[flow.ID]time.Time{}, diverged: map[flow.ID]string{},
	}, nil
}

func setDefault[T comparable](to *T, v T) {
	var zero T
	if *to == zero {
		*to = v
	}
}

// Run replays, takes the lease, and goes on until ctx ends. Routes are kept at the end, for the next run to take over;
// Stop with withdraw takes them back first. After a lost lease it lets the routes go and returns ErrLapsed.
func (l *Loop) Run(ctx context.Context) (err error) {
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		l.cancel()
		l.workers.Wait()
		l.mu.Lock()
		l.status.Running = false
		l.mu.Unlock()
		close(l.over)
	}()
	if err := l.start(); err != nil {
		close(l.running)
		return err
	}
	l.mu.Lock()
	l.status.Running = true
	l.mu.Unlock()
	close(l.running)

	lapsed := make(chan error, 1)
	if l.readOnly == nil {
		l.workers.Go(func() { lapsed <- l.keepLease() })
	}
	beat := time.NewTicker(max(l.cfg.Permit.ttl/4, 10*time.Millisecond))
	look := time.NewTicker(l.cfg.ObserveEvery)
	read := time.NewTicker(l.cfg.ReconcileEvery)
	wake := time.NewTimer(time.Hour)
	for _, t := range []interface{ Stop() }{beat, look, read} {
		defer t.Stop()
	}
	defer wake.Stop()
	for {
		l.setWake(wake)
		select {
		case <-ctx.Done():
			return l.finish(true)
		case r := <-l.requests:
			r.done <- r.do()
		case ev := <-l.results:
			_ = l.try(ev)
		case f := <-l.finished:
			f()
		case <-wake.C:
			_ = l.try(flow.Tick{})
		case err := <-lapsed:
			l.log.Error("the lease is lost: nothing is written any more", "err", err)
			return errors.Join(err, l.finish(false))
		case <-beat.C:
			l.heartbeat()
		case <-look.C:
			l.look()
		case <-read.C:
			l.readRoutes()
		}
	}
}

// setWake sets the timer for flow's next deadline.
func (l *Loop) setWake(t *time.Timer) {
	at := flow.NextWake(l.state)
	if at.IsZero() || l.readOnly != nil {
		t.Reset(time.Hour)
		return
	}
	t.Reset(max(at.Sub(l.clock()), 0) + time.Microsecond) // flow's time has microseconds: not a moment too early
}

// keepLease prolongs the lease as long as it is ours; it returns why it no longer is. It has a goroutine of its own: a
// disk that takes long to sync is no reason to lose the lease, a process that stood still is.
func (l *Loop) keepLease() error {
	t := time.NewTicker(max(l.cfg.Permit.ttl/4, 10*time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return nil
		case <-t.C:
		}
		if err := l.cfg.Permit.renew(); err != nil {
			return err
		}
		if l.cfg.Lease != nil {
			if err := l.cfg.Lease.Renew(l.clock()); err != nil {
				l.log.Error("renew the lease", "err", err) // the permit runs by itself; a lock that is gone is found by the journal
			}
		}
	}
}

// heartbeat does what must be done now and then: the journal is read again after a failure, the stop file is looked for,
// the state is saved.
func (l *Loop) heartbeat() {
	if l.readOnly != nil {
		return
	}
	if l.broken != nil {
		l.reload()
	}
	l.lookForStop()
	if l.unsaved >= l.cfg.CheckpointEach && l.broken == nil { // here, so that nobody who delivers waits for it
		l.mu.Lock()
		err := l.checkpoint()
		l.mu.Unlock()
		if err != nil {
			l.log.Error("checkpoint", "err", err)
		}
	}
}

// lookForStop makes the stop file's coming and going known to the incidents. It blocks each write by itself, too.
func (l *Loop) lookForStop() {
	s, err := l.cfg.StopFile()
	if err != nil {
		if l.stopErr != err.Error() {
			l.stopErr = err.Error()
			l.log.Error("the stop file cannot be read: nothing new is written", "err", err)
		}
		return
	}
	l.stopErr = ""
	was := l.fileStop
	switch {
	case s.Present && (!was.Present || s.Withdraw && !was.Withdraw):
		l.log.Warn("stop file found", "withdraw", s.Withdraw)
		if l.try(flow.Stopped{Withdraw: s.Withdraw, Actor: stopFileActor}) != nil {
			return
		}
	case !s.Present && was.Present && l.state.StoppedBy == stopFileActor:
		if l.try(flow.Resumed{Actor: stopFileActor}) != nil {
			return
		}
	}
	l.fileStop = s
}

const stopFileActor = "the stop file"

// finish ends the run: the write in flight may end, the state is saved, and the driver is told what becomes of routes.
func (l *Loop) finish(keep bool) error {
	var errs []error
	l.writes.close()
	l.cancel()
	l.workers.Wait()
	if keep && l.readOnly == nil && l.broken == nil && l.unsaved > 0 {
		errs = append(errs, l.checkpoint())
	}
	if l.cfg.Driver != nil {
		ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Timeout)
		defer cancel()
		if err := l.cfg.Driver.Close(ctx, keep || l.readOnly != nil); err != nil {
			errs = append(errs, fmt.Errorf("close the driver: %w", err))
		}
	}
	l.cfg.Permit.revoke(errors.New("the run is over"))
	if l.cfg.Lease != nil {
		errs = append(errs, l.cfg.Lease.Release())
	}
	return errors.Join(errs...)
}

// call runs f in the loop's goroutine.
func (l *Loop) call(ctx context.Context, f func() error) error {
	select {
	case <-l.running:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotRunning, ctx.Err())
	}
	r := request{f, make(chan error, 1)}
	select {
	case l.requests <- r:
	case <-l.over:
		return ErrNotRunning
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-l.over:
		return ErrNotRunning
	}
}

// deliver gives a result to the loop's goroutine, or to nobody once the run is over.
func (l *Loop) deliver(ev flow.Event) {
	select {
	case l.results <- ev:
	case <-l.ctx.Done():
	}
}

// then runs f in the loop's goroutine, or not at all once the run is over.
func (l *Loop) then(f func()) {
	select {
	case l.finished <- f:
	case <-l.ctx.Done():
	}
}
