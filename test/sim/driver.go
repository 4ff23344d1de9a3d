// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/plan"
)

// Driver is the way of the actuator into the plant: the second implementation of its driver interface. A write takes
// effect after the delay that a BGP route needs into a switch's forwarding table.
type Driver struct {
	plant   *Plant
	sent    map[plan.RouteKey]plan.Route // under the plant's lock
	writing sync.Mutex
	closed  bool // under writing
}

var _ act.Driver = (*Driver)(nil)

// Driver returns a new driver for the plant's switches. Routes that an earlier driver left behind are its own too.
func (p *Plant) Driver() *Driver {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := &Driver{plant: p, sent: map[plan.RouteKey]plan.Route{}}
	for k, r := range p.router.host {
		d.sent[k] = r
	}
	return d
}

// Name says which driver this is.
func (d *Driver) Name() string { return "plant" }

// Can says whether the plant's leaves can hold r.
func (d *Driver) Can(r plan.Route) error {
	var leaf int
	if n, _ := fmt.Sscanf(r.Switch, "l%d", &leaf); n != 1 || leaf < 1 || leaf > leaves || r.Switch != leafName(leaf) {
		return fmt.Errorf("say %s: %q is no leaf of plant %s", r, r.Switch, d.plant.cfg.Fabric)
	}
	to, ok := d.plant.fabric.nics[r.Prefix.Addr()]
	switch {
	case !ok || r.Prefix.Bits() != 32:
		return fmt.Errorf("say %s: %s is not the address of a NIC", r, r.Prefix)
	case to.leaf == leaf:
		return fmt.Errorf("say %s: %s hangs on %s itself", r, to.addr, r.Switch)
	case r.Kind != plan.Pin && r.Kind != plan.Weights:
		return fmt.Errorf("say %s: the kind %q is unknown", r, r.Kind)
	case r.Kind == plan.Pin && len(r.NextHops) != 1:
		return fmt.Errorf("say %s: a pin has one next hop, not %d", r, len(r.NextHops))
	case len(r.NextHops) == 0 || len(r.NextHops) > spines:
		return fmt.Errorf("say %s: %d next hops, want 1 to %d", r, len(r.NextHops), spines)
	}
	seen := map[int]bool{}
	for _, h := range r.NextHops {
		j, err := spineBehind(leaf, to.leaf, r.Kind, h.Addr)
		if err != nil {
			return fmt.Errorf("say %s: %w", r, err)
		}
		if r.Kind == plan.Weights && (h.Weight < 1 || h.Weight > 100) {
			return fmt.Errorf("say %s: weight %d is not in 1..100", r, h.Weight)
		}
		if r.Kind == plan.Pin && h.Weight != 0 {
			return fmt.Errorf("say %s: a pin has no weight", r)
		}
		if seen[j] {
			return fmt.Errorf("say %s: two next hops over %s", r, spineName(j))
		}
		seen[j] = true
	}
	return nil
}

// Read returns the routes that this driver has sent, in order.
func (d *Driver) Read(ctx context.Context) ([]plan.Route, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read routes of plant %s: %w", d.plant.cfg.Fabric, err)
	}
	return locked(d.plant, func() []plan.Route {
		var rs []plan.Route
		for _, r := range d.sent {
			r.NextHops = slices.Clone(r.NextHops)
			rs = append(rs, r)
		}
		slices.SortFunc(rs, act.Compare)
		return rs
	}), nil
}

// Apply makes r the route for its key.
func (d *Driver) Apply(ctx context.Context, p act.Permit, r plan.Route) act.Result {
	if err := d.Can(r); err != nil {
		return act.Result{Outcome: act.Permanent, Detail: err.Error()}
	}
	r.NextHops = slices.Clone(r.NextHops)
	return d.write(ctx, p, r.Key(), func(have plan.Route, ok bool) bool { return ok && act.Same(have, r) }, func() { d.sent[r.Key()] = r }, func() { d.plant.router.host[r.Key()] = r })
}

// Withdraw removes the route with key k.
func (d *Driver) Withdraw(ctx context.Context, p act.Permit, k plan.RouteKey) act.Result {
	return d.write(ctx, p, k, func(_ plan.Route, ok bool) bool { return !ok }, func() { delete(d.sent, k) }, func() { delete(d.plant.router.host, k) })
}

// write is the one way to a switch: already so? permit? then tell it, and let the forwarding table follow. Writes wait for
// each other, and the permit is asked when all waiting is over.
func (d *Driver) write(ctx context.Context, p act.Permit, k plan.RouteKey, already func(plan.Route, bool) bool, told, installed func()) act.Result {
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return act.Result{Outcome: act.Cancelled, Detail: fmt.Sprintf("write %s: %v", k, err)}
	}
	if d.closed {
		return act.Result{Outcome: act.Permanent, Detail: fmt.Sprintf("write %s: the driver is closed", k)}
	}
	if locked(d.plant, func() bool { have, ok := d.sent[k]; return already(have, ok) }) {
		return act.Result{Outcome: act.Done, Detail: "already so"}
	}
	if p == nil {
		return act.Refuse(errors.New("none was given"))
	}
	if err := p.Valid(time.Now()); err != nil {
		return act.Refuse(err)
	}
	d.plant.mu.Lock()
	defer d.plant.mu.Unlock()
	told()
	d.plant.writes++
	d.plant.router.later(d.plant.now.Add(installDelay), installed)
	return act.Result{Outcome: act.Done, Detail: "told " + k.Switch, Changed: true}
}

// WithdrawAll removes every route.
func (d *Driver) WithdrawAll(ctx context.Context) act.Result {
	have, err := d.Read(ctx)
	if err != nil {
		return act.Result{Outcome: act.Cancelled, Detail: err.Error()}
	}
	out := act.Result{Outcome: act.Done, Detail: fmt.Sprintf("%d routes withdrawn", len(have)), Changed: len(have) > 0}
	for _, r := range have {
		if res := d.Withdraw(ctx, act.PermitFunc(func(time.Time) error { return nil }), r.Key()); !res.OK() {
			return res
		}
	}
	return out
}

// Close ends the driver; with keep the plant's switches hold the routes until another driver takes them over. The plant
// has no restart timer: it lives no longer than the demo.
func (d *Driver) Close(ctx context.Context, keep bool) error {
	var err error
	if !keep {
		if r := d.WithdrawAll(ctx); !r.OK() {
			err = fmt.Errorf("withdraw routes of plant %s: %s", d.plant.cfg.Fabric, r.Detail)
		}
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	d.closed = true
	return err
}

// Routes are the host routes in the forwarding tables of the plant's switches.
func (p *Plant) Routes() []plan.Route {
	return locked(p, func() []plan.Route {
		var rs []plan.Route
		for _, r := range p.router.host {
			rs = append(rs, r)
		}
		slices.SortFunc(rs, act.Compare)
		return rs
	})
}

// Writes is how often a driver told a switch something.
func (p *Plant) Writes() int { return locked(p, func() int { return p.writes }) }
