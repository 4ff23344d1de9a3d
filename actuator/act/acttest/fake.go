// SPDX-License-Identifier: Apache-2.0

package acttest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/plan"
)

// Fake is a driver in memory. Its fields may be set before use; Fail may change at any time under no lock of its own,
// so set it between calls.
type Fake struct {
	Switches []string                                    // that it can write to; empty = all
	Kinds    []plan.Kind                                 // that it can say; empty = all
	Fail     func(op string, k plan.RouteKey) act.Result // "apply", "withdraw" or "read"; a result with an Outcome is returned instead of writing

	mu     sync.Mutex
	routes map[plan.RouteKey]plan.Route
	writes []string
	closed bool
}

var _ act.Driver = (*Fake)(nil)

// Name implements act.Driver.
func (f *Fake) Name() string { return "fake" }

// Can implements act.Driver.
func (f *Fake) Can(r plan.Route) error {
	switch {
	case len(f.Switches) > 0 && !slices.Contains(f.Switches, r.Switch):
		return fmt.Errorf("switch %s is not known", r.Switch)
	case len(f.Kinds) > 0 && !slices.Contains(f.Kinds, r.Kind):
		return fmt.Errorf("a route of kind %q cannot be said", r.Kind)
	case !r.Prefix.IsValid() || len(r.NextHops) == 0:
		return fmt.Errorf("route %s has no prefix or no next hop", r)
	}
	return nil
}

// Read implements act.Driver.
func (f *Fake) Read(context.Context) ([]plan.Route, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.fail("read", plan.RouteKey{}); r.Outcome != "" {
		return nil, fmt.Errorf("read the routes: %s", r.Detail)
	}
	var out []plan.Route
	for _, r := range f.routes {
		out = append(out, r)
	}
	slices.SortFunc(out, act.Compare)
	return out, nil
}

// Apply implements act.Driver.
func (f *Fake) Apply(ctx context.Context, p act.Permit, r plan.Route) act.Result {
	if err := f.Can(r); err != nil {
		return act.Result{Outcome: act.Permanent, Detail: err.Error()}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if now, ok := f.routes[r.Key()]; ok && act.Same(now, r) {
		return act.Result{Outcome: act.Done, Detail: "already so"}
	}
	if res := f.before(ctx, p, "apply", r.Key()); res.Outcome != "" {
		return res
	}
	if f.routes == nil {
		f.routes = map[plan.RouteKey]plan.Route{}
	}
	f.routes[r.Key()] = r
	f.writes = append(f.writes, "apply "+r.String())
	return act.Result{Outcome: act.Done, Detail: "applied", Changed: true}
}

// Withdraw implements act.Driver.
func (f *Fake) Withdraw(ctx context.Context, p act.Permit, k plan.RouteKey) act.Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.routes[k]; !ok {
		return act.Result{Outcome: act.Done, Detail: "not there"}
	}
	if res := f.before(ctx, p, "withdraw", k); res.Outcome != "" {
		return res
	}
	delete(f.routes, k)
	f.writes = append(f.writes, "withdraw "+k.String())
	return act.Result{Outcome: act.Done, Detail: "withdrawn", Changed: true}
}

// before makes the checks that come immediately before a write; a result with an Outcome says not to write.
func (f *Fake) before(ctx context.Context, p act.Permit, op string, k plan.RouteKey) act.Result {
	if f.closed {
		return act.Result{Outcome: act.Permanent, Detail: "the driver is closed"}
	}
	if err := ctx.Err(); err != nil {
		return act.Result{Outcome: act.Cancelled, Detail: err.Error()}
	}
	if p == nil {
		return act.Refuse(fmt.Errorf("none given"))
	}
	if err := p.Valid(time.Now()); err != nil {
		return act.Refuse(err)
	}
	return f.fail(op, k)
}

func (f *Fake) fail(op string, k plan.RouteKey) act.Result {
	if f.Fail == nil {
		return act.Result{}
	}
	return f.Fail(op, k)
}

// WithdrawAll implements act.Driver.
func (f *Fake) WithdrawAll(context.Context) act.Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.routes)
	clear(f.routes)
	if n > 0 {
		f.writes = append(f.writes, "withdraw all")
	}
	return act.Result{Outcome: act.Done, Detail: fmt.Sprintf("withdrew %d routes", n), Changed: n > 0}
}

// Close implements act.Driver.
func (f *Fake) Close(ctx context.Context, keep bool) error {
	if !keep {
		f.WithdrawAll(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

// Writes returns what was written so far, in order.
func (f *Fake) Writes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.writes)
}

// Lose drops a route behind the driver's back, as a switch does when its path goes.
func (f *Fake) Lose(k plan.RouteKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.routes, k)
}
