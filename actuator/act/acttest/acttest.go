// SPDX-License-Identifier: Apache-2.0

// Package acttest holds the conformance suite that every driver passes, and a driver in memory for the tests of others.
package acttest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/plan"
)

// Subject is a driver with what the suite needs to know about it. Routes holds at least two routes with different keys, each
// with a replacement: another route for the same key. The suite leaves no route behind.
type Subject struct {
	Driver     act.Driver
	Routes     []Pair
	Impossible []plan.Route // that the driver cannot say, and must refuse with a reason

	// Seen is what the far side has in force, by a way other than the driver's own Read; nil = there is none. It may lag behind
	// the driver by at most Settle.
	Seen   func(t *testing.T) []plan.Route
	Settle time.Duration
}

// Pair is a route and another one for the same key.
type Pair struct{ Route, Other plan.Route }

// Always is a permit that is always valid.
var Always act.Permit = act.PermitFunc(func(time.Time) error { return nil })

// Run runs the suite. subject is called once for each part and must return a driver without routes.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	t.Helper()
	parts := []struct {
		name string
		run  func(*testing.T, *checker)
	}{
		{"apply, apply again, replace, withdraw, withdraw again", lifecycle},
		{"each route is kept apart from the others", independent},
		{"an invalid permit writes nothing", noPermit},
		{"the permit is asked at the last moment, not when the call began", lateRevocation},
		{"a route that the driver cannot say is refused with the reason", impossible},
		{"withdraw all needs no permit", withdrawAll},
		{"writes to one prefix are serialised", serialised},
		{"a reconcile makes the driver equal to the desired table", reconcile},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			s := subject(t)
			if len(s.Routes) < 2 {
				t.Fatal("the subject has less than two routes")
			}
			c := &checker{s}
			c.want(t)
			p.run(t, c)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if r := s.Driver.WithdrawAll(ctx); !r.OK() {
				t.Errorf("withdraw all at the end: %s: %s", r.Outcome, r.Detail)
			}
			c.want(t)
		})
	}
}

type checker struct{ Subject }

// want compares the driver's routes, and those of the far side, with the given ones.
func (c *checker) want(t *testing.T, routes ...plan.Route) {
	t.Helper()
	got, err := c.Driver.Read(t.Context())
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	diff(t, "read", got, routes)
	if c.Seen == nil {
		return
	}
	deadline := time.Now().Add(c.Settle)
	for {
		seen := c.Seen(t)
		if difference(seen, routes) == "" {
			return
		}
		if time.Now().After(deadline) {
			diff(t, "far side", seen, routes)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func diff(t *testing.T, what string, got, want []plan.Route) {
	t.Helper()
	if d := difference(got, want); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func difference(got, want []plan.Route) string {
	got, want = slices.Clone(got), slices.Clone(want)
	slices.SortFunc(got, act.Compare)
	slices.SortFunc(want, act.Compare)
	opts := []cmp.Option{
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
		cmpopts.SortSlices(func(a, b plan.NextHop) bool { return a.Addr.Less(b.Addr) }), cmpopts.EquateEmpty(),
	}
	return cmp.Diff(want, got, opts...)
}

func expect(t *testing.T, what string, r act.Result, o act.Outcome, changed bool) {
	t.Helper()
	if r.Outcome != o || r.Changed != changed {
		t.Errorf("%s: %s, changed %v (%s); want %s, changed %v", what, r.Outcome, r.Changed, r.Detail, o, changed)
	}
	if r.Detail == "" {
		t.Errorf("%s: %s without a word why", what, r.Outcome)
	}
}

func lifecycle(t *testing.T, c *checker) {
	for _, p := range c.Routes {
		expect(t, "apply", c.Driver.Apply(t.Context(), Always, p.Route), act.Done, true)
		c.want(t, p.Route)
		expect(t, "apply again", c.Driver.Apply(t.Context(), Always, p.Route), act.Done, false)
		c.want(t, p.Route)
		expect(t, "replace", c.Driver.Apply(t.Context(), Always, p.Other), act.Done, true)
		c.want(t, p.Other)
		expect(t, "withdraw", c.Driver.Withdraw(t.Context(), Always, p.Route.Key()), act.Done, true)
		c.want(t)
		expect(t, "withdraw again", c.Driver.Withdraw(t.Context(), Always, p.Route.Key()), act.Done, false)
	}
}

func independent(t *testing.T, c *checker) {
	var all []plan.Route
	for _, p := range c.Routes {
		expect(t, "apply", c.Driver.Apply(t.Context(), Always, p.Route), act.Done, true)
		all = append(all, p.Route)
		c.want(t, all...)
	}
	for len(all) > 0 {
		expect(t, "withdraw", c.Driver.Withdraw(t.Context(), Always, all[0].Key()), act.Done, true)
		all = all[1:]
		c.want(t, all...)
	}
}

var errLease = errors.New("the lease ran out")

func noPermit(t *testing.T, c *checker) {
	r := c.Routes[0]
	no := act.PermitFunc(func(time.Time) error { return errLease })
	newer := act.PermitFunc(func(time.Time) error { return fmt.Errorf("epoch 3: %w", act.ErrSuperseded) })
	expect(t, "apply without permit", c.Driver.Apply(t.Context(), no, r.Route), act.Cancelled, false)
	expect(t, "apply with a nil permit", c.Driver.Apply(t.Context(), nil, r.Route), act.Cancelled, false)
	expect(t, "apply, superseded", c.Driver.Apply(t.Context(), newer, r.Route), act.Superseded, false)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	expect(t, "apply with a context that ended", c.Driver.Apply(ended, Always, r.Route), act.Cancelled, false)
	c.want(t)
	expect(t, "apply", c.Driver.Apply(t.Context(), Always, r.Route), act.Done, true)
	expect(t, "replace without permit", c.Driver.Apply(t.Context(), no, r.Other), act.Cancelled, false)
	expect(t, "withdraw without permit", c.Driver.Withdraw(t.Context(), no, r.Route.Key()), act.Cancelled, false)
	c.want(t, r.Route)
}

// lateRevocation takes the permit away while the driver waits for the write before: what was true when the call began
// must not count.
func lateRevocation(t *testing.T, c *checker) {
	r := c.Routes[0]
	inside, release := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	revoked := false
	slow := act.PermitFunc(func(time.Time) error {
		close(inside)
		<-release
		return nil
	})
	later := act.PermitFunc(func(time.Time) error {
		mu.Lock()
		defer mu.Unlock()
		if revoked {
			return errLease
		}
		return nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { expect(t, "first apply", c.Driver.Apply(t.Context(), slow, r.Route), act.Done, true) })
	<-inside
	wg.Go(func() { expect(t, "second apply", c.Driver.Apply(t.Context(), later, r.Other), act.Cancelled, false) })
	mu.Lock()
	revoked = true
	mu.Unlock()
	close(release)
	wg.Wait()
	c.want(t, r.Route)
}

func impossible(t *testing.T, c *checker) {
	for _, r := range c.Impossible {
		if err := c.Driver.Can(r); err == nil {
			t.Errorf("the driver says that it can say %s", r)
		}
		expect(t, "apply "+r.String(), c.Driver.Apply(t.Context(), Always, r), act.Permanent, false)
	}
	for _, p := range c.Routes {
		if err := c.Driver.Can(p.Route); err != nil {
			t.Errorf("the driver cannot say %s: %v", p.Route, err)
		}
	}
	c.want(t)
}

func withdrawAll(t *testing.T, c *checker) {
	for _, p := range c.Routes {
		expect(t, "apply", c.Driver.Apply(t.Context(), Always, p.Route), act.Done, true)
	}
	expect(t, "withdraw all", c.Driver.WithdrawAll(t.Context()), act.Done, true)
	c.want(t)
	expect(t, "withdraw all again", c.Driver.WithdrawAll(t.Context()), act.Done, false)
}

func serialised(t *testing.T, c *checker) {
	r := c.Routes[0]
	inside, release, second := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		c.Driver.Apply(t.Context(), act.PermitFunc(func(time.Time) error { close(inside); <-release; return nil }), r.Route)
	})
	<-inside
	wg.Go(func() {
		c.Driver.Apply(t.Context(), act.PermitFunc(func(time.Time) error { close(second); return nil }), r.Other)
	})
	select {
	case <-second:
		t.Error("a second write to the same prefix came as far as its permit while the first was under way")
	case <-time.After(50 * time.Millisecond): // a driver that does not serialise is there at once
	}
	close(release)
	wg.Wait()
	c.want(t, r.Other)

	// Many at once: the result is one of them, whole.
	for i := range 8 {
		w := r.Route
		if i%2 == 1 {
			w = r.Other
		}
		wg.Go(func() { c.Driver.Apply(t.Context(), Always, w) })
	}
	wg.Wait()
	got, err := c.Driver.Read(t.Context())
	if err != nil || len(got) != 1 || !act.Same(got[0], r.Route) && !act.Same(got[0], r.Other) {
		t.Errorf("after many writes at once: %v, %v; want one of %s and %s", got, err, r.Route, r.Other)
	}
}

func reconcile(t *testing.T, c *checker) {
	a, b := c.Routes[0], c.Routes[1]
	step := func(what string, n int, desired ...plan.Route) {
		t.Helper()
		did, err := act.Reconcile(t.Context(), c.Driver, Always, desired)
		if err != nil || len(did) != n {
			t.Errorf("%s: did %v, %v; want %d actions", what, did, err, n)
		}
		c.want(t, desired...)
	}
	step("first", 2, a.Route, b.Route)
	step("again", 0, a.Route, b.Route)
	step("replace one and drop one", 2, a.Other)
	step("drop all", 1)
}
