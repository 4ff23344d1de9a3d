// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/plan"
)

// Withdraw implements act.Driver. A route of a leaf whose session is down is forgotten, so that it does not come back with
// the session; what the leaf still holds of it goes at the next End-of-RIB or when the restart time is over.
func (d *Driver) Withdraw(ctx context.Context, p act.Permit, k plan.RouteKey) act.Result {
	defer d.lock(k)()
	l, ok := d.leaves[k.Switch]
	if !ok {
		return act.Result{Outcome: act.Permanent, Detail: fmt.Sprintf("switch %s is not a leaf of this driver", k.Switch)}
	}
	var there []*session
	for _, s := range l.sessions {
		if s.has(k.Prefix) {
			there = append(there, s)
		}
	}
	if len(there) == 0 {
		return act.Result{Outcome: act.Done, Detail: "not there"}
	}
	res := act.Result{Outcome: act.Done, Detail: "withdrew " + k.String(), Changed: true}
	for _, s := range there {
		if no, ok := s.take(ctx, p, k.Prefix); !ok {
			return no
		}
		if r := d.gone(ctx, s, []netip.Prefix{k.Prefix}); !r.OK() {
			res = r
		}
	}
	return res
}

// take asks for the permit and takes a route back from the speaker. ok is false if the result is final.
func (s *session) take(ctx context.Context, p act.Permit, prefix netip.Prefix) (res act.Result, ok bool) {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	if res, ok := permitted(ctx, p); !ok {
		return res, false
	}
	if err := s.removeLocked(prefix); err != nil {
		return act.Result{Outcome: act.Ambiguous, Detail: err.Error(), Changed: true}, false
	}
	return act.Result{}, true
}

// WithdrawAll implements act.Driver. It withdraws in batches, all leaves at the same time.
func (d *Driver) WithdrawAll(ctx context.Context) act.Result {
	var mu sync.Mutex
	var n int
	var errs []error
	var wg sync.WaitGroup
	for s := range d.sessions {
		wg.Go(func() {
			c, err := d.withdrawAll(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			n += c
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return act.Result{Outcome: act.Ambiguous, Detail: err.Error(), Changed: n > 0}
	}
	return act.Result{Outcome: act.Done, Detail: fmt.Sprintf("withdrew %d routes", n), Changed: n > 0}
}

func (d *Driver) withdrawAll(ctx context.Context, s *session) (int, error) {
	n := 0
	for {
		s.heldMu.Lock()
		batch := make([]netip.Prefix, 0, batchSize)
		for p := range s.held {
			if len(batch) == batchSize {
				break
			}
			batch = append(batch, p)
		}
		err := s.removeLocked(batch...)
		s.heldMu.Unlock()
		if err != nil {
			return n, fmt.Errorf("withdraw %d routes of the %s: %w", len(batch), s.name(), err)
		}
		if len(batch) == 0 {
			return n, nil
		}
		n += len(batch)
		if res := d.gone(ctx, s, batch); !res.OK() {
			return n, errors.New(res.Detail)
		}
		if len(batch) == batchSize {
			select {
			case <-ctx.Done():
				return n, ctx.Err()
			case <-time.After(batchPause):
			}
		}
	}
}

// gone confirms that the leaf was told that the prefixes are withdrawn.
func (d *Driver) gone(ctx context.Context, s *session, ps []netip.Prefix) act.Result {
	s.mu.Lock()
	up, wasUp, left := s.up, s.wasUp, s.cfg.RestartTime-time.Since(s.since)
	s.mu.Unlock()
	if up {
		return d.confirm(ctx, s, fmt.Sprintf("withdrew %d routes of the %s", len(ps), s.name()), func() bool {
			for _, p := range ps {
				if len(s.out[p]) > 0 {
					return false
				}
			}
			return true
		})
	}
	if s.kind == plan.Pin && (!wasUp || left > 0) {
		return act.Result{Outcome: act.Ambiguous, Changed: true, Detail: fmt.Sprintf(
			"the %s is down: the leaf may hold %d routes until it is back, or for %s at most", s.name(), len(ps), max(left, 0).Round(time.Second))}
	}
	return act.Result{Outcome: act.Done, Changed: true, Detail: fmt.Sprintf("forgot %d routes; the %s is down and the leaf holds none", len(ps), s.name())}
}

// Close implements act.Driver. The driver cannot be used afterwards.
func (d *Driver) Close(ctx context.Context, keep bool) error {
	d.mu.Lock()
	if d.stopped {
		d.mu.Unlock()
		return nil
	}
	d.stopped = true
	d.mu.Unlock()

	var err error
	if !keep {
		if res := d.WithdrawAll(ctx); !res.OK() {
			err = fmt.Errorf("close the BGP driver: %s: %s", res.Outcome, res.Detail)
		}
		// The speakers say goodbye with a NOTIFICATION (Cease): this is no restart, and what could not be withdrawn goes now.
		for s := range d.sessions {
			s.farewell(ctx)
		}
	}
	for s := range d.sessions {
		s.update(func() { s.keep = true })
	}
	d.cancel()
	d.wg.Wait()
	d.stopSpeakers()
	return err
}

// farewell lets the speaker end an established session by the protocol.
func (s *session) farewell(ctx context.Context) {
	s.mu.Lock()
	up := s.up
	s.mu.Unlock()
	if !up {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s.setCutting(errors.New("closed by ourselves"))
	s.guard.close(errors.New("the driver is closed"))
	s.speaker.disconnect()
	s.wait(ctx, func() bool { return !s.up })
}

func (d *Driver) stopSpeakers() {
	var wg sync.WaitGroup
	for s := range d.sessions {
		wg.Go(s.speaker.stop)
	}
	wg.Wait()
}

// has says whether the session announces p, or would when it is up.
func (s *session) has(p netip.Prefix) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	out := len(s.out[p]) > 0
	s.mu.Unlock()
	return out || s.holds(p)
}

func (s *session) remove(p netip.Prefix) error {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	return s.removeLocked(p)
}

// other is the leaf's session for the other kind of route; nil if there is none.
func (l *leaf) other(k plan.Kind) *session {
	if k == plan.Pin {
		return l.sessions[plan.Weights]
	}
	return l.sessions[plan.Pin]
}

// direct says whether the leaf uses hop as the next hop of a path of its own, as its feed tells.
func (l *leaf) direct(hop netip.Addr) bool {
	s := l.sessions[plan.Weights]
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.feed.direct(hop)
}

// count is the number of routes that the leaf has of both kinds. The heldMu of mine is held by the caller.
func (l *leaf) count(mine *session) int {
	n := len(mine.held)
	if o := l.other(mine.kind); o != nil {
		// Only the size is wanted, and taking the second lock in both orders could deadlock.
		o.mu.Lock()
		n += len(o.out)
		o.mu.Unlock()
	}
	return n
}

// State is what people want to know of a session.
type State struct {
	Leaf    string
	Kind    plan.Kind
	Up      bool
	Since   time.Time
	Reason  string // why it is down, or why the leaf gets no new routes
	Routes  int    // announced
	Breaker bool   // no new routes
}

// Sessions returns the state of each session.
func (d *Driver) Sessions() []State {
	var out []State
	for s := range d.sessions {
		s.mu.Lock()
		st := State{Leaf: s.leaf.Name, Kind: s.kind, Up: s.up, Since: s.since, Routes: len(s.out)}
		if !s.up && s.why != nil {
			st.Reason = s.why.Error()
		}
		s.mu.Unlock()
		if err := s.breaker.check(time.Now()); err != nil {
			st.Breaker = true
			if st.Reason == "" {
				st.Reason = err.Error()
			}
		}
		out = append(out, st)
	}
	return out
}

// ResetBreaker allows new routes on a leaf again after a flap: a human has looked.
func (d *Driver) ResetBreaker(name string) error {
	l, ok := d.leaves[name]
	if !ok {
		return fmt.Errorf("reset the breaker of %s: it is not a leaf of this driver", name)
	}
	l.breaker.close()
	return nil
}
