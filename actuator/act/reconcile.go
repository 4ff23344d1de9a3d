// SPDX-License-Identifier: Apache-2.0

package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/actuator/plan"
)

// Withdrawals of a reconcile are paced: when a lease runs out over a whole fabric, all traffic must not be hashed anew in one
// moment. One leaf's share of a plan is well below one batch, so that an undo is not slowed down.
const (
	withdrawBatch = 16
	withdrawPause = 100 * time.Millisecond
)

// Action is one thing that a reconcile did or tried.
type Action struct {
	Key      plan.RouteKey
	Withdraw bool // else it was applied
	Result   Result
}

// Reconcile makes the driver's routes equal to desired: it reads what is there, applies what is missing or different,
// and then withdraws what is not desired (in this order, so that nothing is broken before its replacement is made).
// It is level-triggered: calling it again after any failure, or a restart, is right. It returns what it did, in order,
// without the routes that were right already; the error joins every result that is not Done, and names its route.
func Reconcile(ctx context.Context, d Driver, p Permit, desired []plan.Route) ([]Action, error) {
	if s, ok := d.(Primer); ok {
		if err := s.Prime(ctx, desired); err != nil {
			return nil, fmt.Errorf("give the desired routes to driver %s: %w", d.Name(), err)
		}
	}
	have, err := d.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the routes of driver %s: %w", d.Name(), err)
	}
	current := make(map[plan.RouteKey]plan.Route, len(have))
	for _, r := range have {
		current[r.Key()] = r
	}

	var actions []Action
	var errs []error
	did := func(a Action, verb string) {
		actions = append(actions, a)
		if !a.Result.OK() {
			errs = append(errs, fmt.Errorf("%s %s: %s: %s", verb, a.Key, a.Result.Outcome, a.Result.Detail))
		}
	}

	wanted := make(map[plan.RouteKey]bool, len(desired))
	for _, r := range sorted(desired) {
		if wanted[r.Key()] {
			// Two routes for one key would be applied in turn for ever; the table's owner made a mistake.
			errs = append(errs, fmt.Errorf("apply %s: desired twice", r.Key()))
			continue
		}
		wanted[r.Key()] = true
		if c, ok := current[r.Key()]; ok && Same(c, r) {
			continue
		}
		did(Action{Key: r.Key(), Result: d.Apply(ctx, p, r)}, "apply")
	}

	n := 0
	for _, r := range sorted(have) {
		if wanted[r.Key()] {
			continue
		}
		if n > 0 && n%withdrawBatch == 0 && !pause(ctx, withdrawPause) {
			errs = append(errs, fmt.Errorf("withdraw %s and after: %w", r.Key(), ctx.Err()))
			break
		}
		n++
		did(Action{Key: r.Key(), Withdraw: true, Result: d.Withdraw(ctx, p, r.Key())}, "withdraw")
	}
	return actions, errors.Join(errs...)
}

// Same says that two routes ask for the same thing: the order of next hops does not matter.
func Same(a, b plan.Route) bool {
	return a.Key() == b.Key() && a.Kind == b.Kind && slices.Equal(hops(a), hops(b))
}

// hops returns the next hops in the order of their addresses.
func hops(r plan.Route) []plan.NextHop {
	hs := slices.Clone(r.NextHops)
	slices.SortFunc(hs, func(a, b plan.NextHop) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Weight, b.Weight))
	})
	return hs
}

// Compare orders routes by switch and prefix.
func Compare(a, b plan.Route) int { return CompareKeys(a.Key(), b.Key()) }

// CompareKeys orders keys by switch and prefix.
func CompareKeys(a, b plan.RouteKey) int {
	return cmp.Or(cmp.Compare(a.Switch, b.Switch), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
}

func sorted(rs []plan.Route) []plan.Route {
	rs = slices.Clone(rs)
	slices.SortStableFunc(rs, Compare)
	return rs
}

// pause waits for d and says whether the context is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
