// SPDX-License-Identifier: Apache-2.0

// Package bgp is the driver that moves traffic on real switches: it announces host routes to the leaves over iBGP, with an
// embedded GoBGP speaker, and takes them back. A pin is a route with one recursive next hop, the far end of the last
// fabric link of its path: the leaf's own next-hop tracking drops it when that link goes, whether this process lives or
// not. A weighted route has direct next hops, which no switch tracks beyond the first link; it goes over a second session
// whose hold time is 3 s and over which the leaf tells its own paths, and is withdrawn as soon as one of them is gone
// (field rule 1).
//
// The package never decides which routes are wanted, never announces anything without a valid permit, not after a pause
// and not after a reconnect either, and never touches a prefix outside of its own.
package bgp

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/plan"
)

// Withdrawals of many routes are paced, so that the traffic of a whole fabric is not hashed anew in one moment.
const (
	batchSize  = 64
	batchPause = 50 * time.Millisecond

	// FRR sends a new peer its table after coalescing for one second (bgp update-group timer).
	feedWait = 3 * time.Second
)

// Driver is the BGP driver. New makes one; the first Prime starts its sessions.
type Driver struct {
	cfg    Config
	guard  *guard
	log    *slog.Logger
	leaves map[string]*leaf
	order  []string // names of leaves, as configured

	locks [64]sync.Mutex // writes to one key are serialised; striped by key
	seed  maphash.Seed

	mu      sync.Mutex
	started bool
	stopped bool
	ctx     context.Context // of all sessions
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

var (
	_ act.Driver = (*Driver)(nil)
	_ act.Primer = (*Driver)(nil)
)

type leaf struct {
	breaker  *breaker
	sessions map[plan.Kind]*session
}

// New reads the passwords and starts the embedded speakers, but no session: nothing is sent before Prime. The permit is
// asked before each connection and each message that announces a route.
func New(cfg Config, permit act.Permit, log *slog.Logger) (*Driver, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuration of the BGP driver: %w", err)
	}
	if permit == nil {
		return nil, errors.New("configuration of the BGP driver: without a permit it could never write")
	}
	d := &Driver{cfg: cfg, guard: newGuard(permit, cfg.MaxPause), log: log, leaves: map[string]*leaf{}, seed: maphash.MakeSeed()}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	kinds := []plan.Kind{plan.Pin}
	if cfg.HasWeights() {
		kinds = append(kinds, plan.Weights)
	}
	for _, l := range cfg.Leaves {
		password, err := l.password()
		if err != nil {
			d.stopSpeakers()
			return nil, err
		}
		lf := &leaf{breaker: &breaker{leaf: l.Name, reset: cfg.BreakerReset}, sessions: map[plan.Kind]*session{}}
		d.leaves[l.Name] = lf
		d.order = append(d.order, l.Name)
		for _, k := range kinds {
			sp, err := newSpeaker(&d.cfg, l, k, log)
			if err != nil {
				d.stopSpeakers()
				return nil, err
			}
			lf.sessions[k] = newSession(&d.cfg, l, k, password, d.guard, lf.breaker, sp, log)
		}
	}
	return d, nil
}

// Name implements act.Driver.
func (d *Driver) Name() string { return "bgp" }

// Prime gives the routes that sessions replay when they come up, and opens the guard if the permit is valid. The first
// call starts the sessions and waits for them up to StartWait; a leaf that does not answer is no error, its routes
// fail one by one.
func (d *Driver) Prime(ctx context.Context, desired []plan.Route) error {
	if err := d.guard.prime(); err != nil {
		return err
	}
	var errs []error
	for name, l := range d.leaves {
		for k, s := range l.sessions {
			var rs []plan.Route
			for _, r := range desired {
				if r.Switch == name && r.Kind == k && d.Can(r) == nil && len(rs) < d.cfg.MaxRoutesPerLeaf {
					rs = append(rs, r)
				}
			}
			errs = append(errs, s.prime(rs))
		}
	}
	d.start(ctx)
	return errors.Join(errs...)
}

// start runs the sessions, once, and waits for the replay.
func (d *Driver) start(ctx context.Context) {
	d.mu.Lock()
	if d.started || d.stopped {
		d.mu.Unlock()
		return
	}
	d.started = true
	for s := range d.sessions {
		d.wg.Go(func() { s.run(d.ctx) })
	}
	d.wg.Go(d.watch)
	d.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, d.cfg.StartWait)
	defer cancel()
	for s := range d.sessions {
		s.wait(ctx, func() bool { return s.up && (s.kind == plan.Weights || s.replayed) })
	}
}

// sessions calls yield for each session.
func (d *Driver) sessions(yield func(*session) bool) {
	for _, name := range d.order {
		for _, k := range []plan.Kind{plan.Pin, plan.Weights} {
			if s := d.leaves[name].sessions[k]; s != nil && !yield(s) {
				return
			}
		}
	}
}

// watch notices that this process stood still, or has had no permit for too long.
func (d *Driver) watch() {
	t := time.NewTicker(250 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-d.ctx.Done():
			return
		case now := <-t.C:
			orphan, closed := d.guard.tick(now)
			if orphan > d.cfg.OrphanAfter {
				if r := d.WithdrawAll(d.ctx); r.Changed {
					d.log.Warn("withdrew all routes: nobody has had a permit for them", "for", orphan.Round(time.Second), "outcome", r.Outcome, "detail", r.Detail)
				}
			}
			if closed != nil {
				for s := range d.sessions {
					s.cut(closed)
				}
			}
		}
	}
}

// Can implements act.Driver.
func (d *Driver) Can(r plan.Route) error {
	l, ok := d.leaves[r.Switch]
	if !ok {
		return fmt.Errorf("switch %s is not a leaf of this driver", r.Switch)
	}
	if !r.Prefix.IsValid() || !r.Prefix.Addr().Is4() || r.Prefix.Bits() != 32 {
		return fmt.Errorf("prefix %s is not an IPv4 host route (/32)", r.Prefix)
	}
	if !slices.ContainsFunc(d.cfg.Prefixes, func(p netip.Prefix) bool { return p.Contains(r.Prefix.Addr()) }) {
		return fmt.Errorf("prefix %s is not one of our own", r.Prefix)
	}
	s, ok := l.sessions[r.Kind]
	if !ok {
		if r.Kind == plan.Weights {
			return fmt.Errorf("leaf %s has no session for weights: without a live feed a weighted route would outlive its path", r.Switch)
		}
		return fmt.Errorf("a route of kind %q cannot be said in BGP", r.Kind)
	}
	for _, h := range r.NextHops {
		if !h.Addr.Is4() || h.Addr.IsUnspecified() || h.Addr.IsMulticast() || h.Addr == r.Prefix.Addr() {
			return fmt.Errorf("next hop %q of %s cannot be one", addr(h.Addr), r.Prefix)
		}
	}
	if r.Kind == plan.Pin {
		return s.canPin(r)
	}
	if len(r.NextHops) < 2 || len(r.NextHops) > d.cfg.MaxNextHops {
		return fmt.Errorf("weights over %d next hops, want 2 to %d", len(r.NextHops), d.cfg.MaxNextHops)
	}
	hs := sortedHops(r.NextHops)
	for i, h := range hs {
		if h.Weight < 1 || h.Weight > 100 {
			return fmt.Errorf("weight %d of next hop %s, want 1 to 100", h.Weight, h.Addr)
		}
		if i > 0 && hs[i-1].Addr == h.Addr {
			return fmt.Errorf("next hop %s is given twice", h.Addr)
		}
	}
	return nil
}

func (s *session) canPin(r plan.Route) error {
	if len(r.NextHops) != 1 {
		return fmt.Errorf("a pin with %d next hops, want 1", len(r.NextHops))
	}
	h := r.NextHops[0]
	if h.Weight != 0 {
		return fmt.Errorf("a pin with weight %d: recursive next hops lose their weights", h.Weight)
	}
	if slices.Contains(s.leaf.Uplinks, h.Addr) {
		return fmt.Errorf("pin to %s, a neighbour of %s: the route would outlive the far link of its path; want the far end of that link", h.Addr, r.Switch)
	}
	return nil
}

// Read implements act.Driver: what was written to the sessions that are up. It is what the leaf was told. Whether
// the leaf put it in its forwarding table, BGP does not say: the verification of the plan sees it in the link loads.
func (d *Driver) Read(context.Context) ([]plan.Route, error) {
	var out []plan.Route
	seen := map[plan.RouteKey]bool{}
	for s := range d.sessions {
		s.mu.Lock()
		if s.up {
			for p := range s.out {
				// While a pin takes the place of weights, or the other way round, both are out for a moment.
				if r, ok := s.out.route(s.leaf.Name, s.kind, p); ok && !seen[r.Key()] {
					seen[r.Key()] = true
					out = append(out, r)
				}
			}
		}
		s.mu.Unlock()
	}
	slices.SortFunc(out, act.Compare)
	return out, nil
}

// Apply implements act.Driver.
func (d *Driver) Apply(ctx context.Context, p act.Permit, r plan.Route) act.Result {
	if err := d.Can(r); err != nil {
		return act.Result{Outcome: act.Permanent, Detail: err.Error()}
	}
	defer d.lock(r.Key())()
	l := d.leaves[r.Switch]
	s := l.sessions[r.Kind]
	s.mu.Lock()
	up, why := s.up, s.why
	now, there := s.out.route(s.leaf.Name, s.kind, r.Prefix)
	direct := r.Kind == plan.Pin && l.direct(r.NextHops[0].Addr)
	s.mu.Unlock()
	other := l.other(r.Kind)
	switch {
	case !up:
		return act.Result{Outcome: act.Transient, Detail: fmt.Sprintf("the %s is down: %v", s.name(), why)}
	case there && act.Same(now, r) && !other.has(r.Prefix):
		return act.Result{Outcome: act.Done, Detail: "already so"}
	case direct:
		return act.Result{Outcome: act.Permanent, Detail: fmt.Sprintf("pin to %s, which leaf %s uses as a neighbour: the route would outlive the far link of its path", r.NextHops[0].Addr, r.Switch)}
	}
	if r.Kind == plan.Weights && s.caps().addPath&bgp.BGP_ADD_PATH_RECEIVE == 0 {
		return act.Result{Outcome: act.Permanent, Detail: fmt.Sprintf("leaf %s does not take several paths of one prefix (add-path)", r.Switch)}
	}
	if err := l.breaker.check(time.Now()); err != nil {
		return act.Result{Outcome: act.Transient, Detail: err.Error()}
	}
	if r.Kind == plan.Weights {
		s.awaitFeed(ctx, r)
	}
	if res, ok := d.give(ctx, p, s, l, r); !ok {
		return res
	}
	if res := d.confirm(ctx, s, fmt.Sprintf("announced %s", r), func() bool {
		now, there := s.out.route(s.leaf.Name, s.kind, r.Prefix)
		return there && act.Same(now, r)
	}); !res.OK() {
		return res
	}
	// Make before break: the route of the other kind goes when this one is there.
	if other.has(r.Prefix) {
		if err := other.remove(r.Prefix); err != nil {
			return act.Result{Outcome: act.Ambiguous, Detail: fmt.Sprintf("announced %s; withdraw the %s that it replaces: %v", r, other.kind, err), Changed: true}
		}
		return d.confirm(ctx, other, fmt.Sprintf("announced %s and withdrew the %s it replaces", r, other.kind), func() bool { return len(other.out[r.Prefix]) == 0 })
	}
	return act.Result{Outcome: act.Done, Detail: "announced " + r.String(), Changed: true}
}

// awaitFeed gives a session that has just come up the time to hear of the leaf's paths. What counts is checked again.
func (s *session) awaitFeed(ctx context.Context, r plan.Route) {
	s.mu.Lock()
	left := feedWait - time.Since(s.since)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	s.wait(ctx, func() bool { return !s.up || s.liveAllLocked(r) == nil })
}

// give makes the last checks and hands the route to the speaker. ok is false if the result is final: nothing was written.
func (d *Driver) give(ctx context.Context, p act.Permit, s *session, l *leaf, r plan.Route) (res act.Result, ok bool) {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	if _, held := s.held[r.Prefix]; !held && l.count(s) >= d.cfg.MaxRoutesPerLeaf {
		return act.Result{Outcome: act.Transient, Detail: fmt.Sprintf("leaf %s has %d routes of ours, the most that it may have", r.Switch, d.cfg.MaxRoutesPerLeaf)}, false
	}
	if r.Kind == plan.Weights {
		if err := s.liveAll(r); err != nil {
			return act.Result{Outcome: act.Transient, Detail: err.Error()}, false
		}
	}
	if res, ok := permitted(ctx, p); !ok {
		return res, false
	}
	if err := d.guard.check(); err != nil {
		return act.Refuse(err), false
	}
	if err := s.setLocked(r); err != nil {
		return act.Result{Outcome: act.Transient, Detail: err.Error()}, false
	}
	return act.Result{}, true
}

// permitted asks context and permit immediately before a write.
func permitted(ctx context.Context, p act.Permit) (act.Result, bool) {
	if err := ctx.Err(); err != nil {
		return act.Result{Outcome: act.Cancelled, Detail: err.Error()}, false
	}
	if p == nil {
		return act.Refuse(errors.New("none given")), false
	}
	if err := p.Valid(time.Now()); err != nil {
		return act.Refuse(err), false
	}
	return act.Result{}, true
}

// confirm waits until the connection shows what was given to the speaker and the leaf's TCP has acknowledged it. If that
// does not come in time, nobody knows: the caller reads back.
func (d *Driver) confirm(ctx context.Context, s *session, what string, shown func() bool) act.Result {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.WriteTimeout)
	defer cancel()
	var lost error
	s.wait(ctx, func() bool {
		if !s.up {
			lost = fmt.Errorf("the %s ended: %w", s.name(), s.why)
		}
		return lost != nil || shown()
	})
	if lost == nil && ctx.Err() == nil {
		lost = s.acknowledged(ctx)
	}
	if lost == nil {
		lost = ctx.Err()
	}
	if lost != nil {
		return act.Result{Outcome: act.Ambiguous, Detail: fmt.Sprintf("%s, but the leaf has not acknowledged it: %v", what, lost), Changed: true}
	}
	return act.Result{Outcome: act.Done, Detail: what, Changed: true}
}

// acknowledged waits until the leaf's TCP has everything.
func (s *session) acknowledged(ctx context.Context) error {
	for {
		s.mu.Lock()
		c := s.conn
		s.mu.Unlock()
		if c == nil {
			return errors.New("the connection ended")
		}
		n, err := unacknowledged(c)
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// lock serialises the writes to one key; the result unlocks.
func (d *Driver) lock(k plan.RouteKey) func() {
	m := &d.locks[maphash.Comparable(d.seed, k)%uint64(len(d.locks))]
	m.Lock()
	return m.Unlock
}
