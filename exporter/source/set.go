// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Schedule says how often a source is read. Zero durations get defaults from NewSet.
type Schedule struct {
	Source   Source
	Interval time.Duration // from the start of one read to the start of the next; must be given
	Timeout  time.Duration // deadline of a read; default: Interval, at most 10 s
	MaxAge   time.Duration // samples of a source that fails disappear when they are this old; default: 5 Intervals, at least 5 s
}

// Set reads sources side by side, each on its own interval and under its own deadline, and publishes what they gave as
// one immutable Snapshot. A read that outlives its deadline is abandoned and marked; its source is not read again
// until that read has returned, and the other sources do not notice.
type Set struct {
	log       *slog.Logger
	constant  []Sample
	schedules []Schedule
	observers []func(*Snapshot)
	current   atomic.Pointer[Snapshot]
}

// NewSet makes a set. The constant samples stand in every snapshot. It refuses two sources of one name, and a schedule
// without an interval.
func NewSet(log *slog.Logger, constant []Sample, schedules ...Schedule) (*Set, error) {
	names := map[string]bool{}
	s := &Set{log: log, constant: constant}
	for _, sch := range schedules {
		name := sch.Source.Name()
		switch {
		case names[name]:
			return nil, fmt.Errorf("source %s: the name stands twice", name)
		case sch.Interval <= 0:
			return nil, fmt.Errorf("source %s: interval is %v, must be positive", name, sch.Interval)
		}
		names[name] = true
		sch.Timeout = cmp.Or(sch.Timeout, min(sch.Interval, 10*time.Second))
		sch.MaxAge = cmp.Or(sch.MaxAge, max(5*sch.Interval, 5*time.Second))
		s.schedules = append(s.schedules, sch)
	}
	s.current.Store(&Snapshot{})
	return s, nil
}

// OnPublish registers a function that is called with each snapshot, from one goroutine, before Snapshot returns it.
// Call it before Run.
func (s *Set) OnPublish(f func(*Snapshot)) { s.observers = append(s.observers, f) }

// Snapshot returns the newest snapshot; it is empty until the first source has been read.
func (s *Set) Snapshot() *Snapshot { return s.current.Load() }

// settle is how long the publisher waits for further results after the first one, so that sources with the same
// interval are published together.
const settle = 20 * time.Millisecond

// Run reads and publishes until ctx ends. It does not wait for a read that does not heed ctx.
func (s *Set) Run(ctx context.Context) {
	results := make(chan result)
	var readers sync.WaitGroup
	for i := range s.schedules {
		readers.Go(func() { s.follow(ctx, i, results) })
	}
	defer readers.Wait()

	states := make([]state, len(s.schedules))
	var pause time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-results:
			s.apply(&states[r.index], r)
		}
		for window := time.After(max(settle, pause)); window != nil; {
			select {
			case <-ctx.Done():
				return
			case r := <-results:
				s.apply(&states[r.index], r)
			case <-window:
				window = nil
			}
		}
		began := time.Now()
		s.publish(states)
		// A set that is large to publish is published less often: at most a tenth of one core goes into it.
		pause = 10 * time.Since(began)
	}
}

// result is the end of a read, or news of one that did not end.
type result struct {
	index   int
	started time.Time
	ended   time.Time
	samples []Sample
	err     error
	stuck   bool
}

// errStuck is the error of a read that was abandoned.
var errStuck = errors.New("the read did not return in time and was abandoned")

// follow reads one source again and again.
func (s *Set) follow(ctx context.Context, index int, results chan<- result) {
	sch := s.schedules[index]
	send := func(r result) bool {
		select {
		case results <- r:
			return true
		case <-ctx.Done():
			return false
		}
	}
	ticker := time.NewTicker(sch.Interval)
	defer ticker.Stop()
	for {
		started := time.Now()
		done := make(chan result, 1) // an abandoned read must not hang on sending
		readCtx, cancel := context.WithTimeout(ctx, sch.Timeout)
		go func() {
			samples, err := read(readCtx, sch.Source)
			done <- result{index: index, started: started, ended: time.Now(), samples: samples, err: err}
		}()
		// A source that heeds its deadline returns just after it and can say more than we could.
		abandon := time.NewTimer(sch.Timeout + sch.Timeout/4)
		var r result
		select {
		case r = <-done:
		case <-abandon.C:
			r = result{index: index, started: started, ended: time.Now(), err: errStuck, stuck: true}
		case <-ctx.Done():
			cancel()
			return
		}
		abandon.Stop()
		cancel()
		if !send(r) {
			return
		}
		for r.stuck { // what it returns at last is out of date: dropped
			select {
			case <-ctx.Done():
				return
			case <-done:
				r.stuck = false
			case <-ticker.C:
				r.ended = time.Now()
				if !send(r) {
					return
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// read calls the source and makes a panic an error: what one source meets in a broken file or a malformed answer
// must not end the others.
func read(ctx context.Context, src Source) (samples []Sample, err error) {
	defer func() {
		if p := recover(); p != nil {
			samples, err = nil, fmt.Errorf("read %s: panic: %v\n%s", src.Name(), p, debug.Stack())
		}
	}()
	return src.Read(ctx)
}
