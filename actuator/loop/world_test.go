// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/journal"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/traffic"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// world is a small fake: one congested link, a driver whose routes outlive the controller, and a verification that finds
// the plan good once its route is in force.
type world struct {
	mu       sync.Mutex
	routes   map[plan.RouteKey]plan.Route
	applied  map[plan.RouteKey]int // changes, not calls
	fail     func(op string, k plan.RouteKey) act.Result
	hang     chan struct{} // if not nil, Apply waits for it or for its context
	noJob    bool
	outcome  string
	steps    int
	stopMu   sync.Mutex // the permit is asked with mu held
	stopFile StopSwitch
	stopErr  error
	observed int
}

var target = ident.Port{Fabric: "lab", Device: "l1", Name: "sp1"}

func newWorld() *world {
	return &world{routes: map[plan.RouteKey]plan.Route{}, applied: map[plan.RouteKey]int{}, outcome: flow.Better, steps: 1}
}

func (w *world) Name() string                      { return "fake" }
func (w *world) Can(plan.Route) error              { return nil }
func (w *world) Close(context.Context, bool) error { return nil }

func (w *world) Read(context.Context) ([]plan.Route, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		if r := w.fail("read", plan.RouteKey{}); r.Outcome != "" {
			return nil, fmt.Errorf("%s", r.Detail)
		}
	}
	var rs []plan.Route
	for _, r := range w.routes {
		rs = append(rs, r)
	}
	return rs, nil
}

func (w *world) Apply(ctx context.Context, p act.Permit, r plan.Route) act.Result {
	w.mu.Lock()
	hang := w.hang
	w.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return act.Result{Outcome: act.Ambiguous, Detail: "no answer"}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		if res := w.fail("apply", r.Key()); res.Outcome != "" {
			return res
		}
	}
	if have, ok := w.routes[r.Key()]; ok && act.Same(have, r) {
		return act.Result{Outcome: act.Done, Detail: "there already"}
	}
	if err := p.Valid(time.Now()); err != nil {
		return act.Refuse(err)
	}
	w.routes[r.Key()] = r
	w.applied[r.Key()]++
	return act.Result{Outcome: act.Done, Detail: "written", Changed: true}
}

func (w *world) Withdraw(_ context.Context, p act.Permit, k plan.RouteKey) act.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		if res := w.fail("withdraw", k); res.Outcome != "" {
			return res
		}
	}
	if err := p.Valid(time.Now()); err != nil {
		return act.Refuse(err)
	}
	delete(w.routes, k)
	return act.Result{Outcome: act.Done, Detail: "withdrawn", Changed: true}
}

func (w *world) WithdrawAll(context.Context) act.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.routes)
	return act.Result{Outcome: act.Done}
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.routes)
}

// changes is how often route i was changed, and changed how many routes ever were.
func (w *world) changes(i int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.applied[route(i).Key()]
}

func (w *world) changed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.applied)
}

func (w *world) Observe(context.Context) (fleet.Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.observed++
	s := fleet.Snapshot{
		At:     time.Now().Round(0),
		Fabric: topo.Fabric{Name: "lab", Links: map[ident.Port]topo.Link{target: {From: target, Up: true, ECMPGroup: "lab/l1:up"}}},
		Links:  map[ident.Port]fleet.LinkLoad{target: {BytesPerSecond: 1e6, AgeSeconds: 0.5}},
	}
	if !w.noJob {
		s.Jobs = []traffic.Job{{ID: "job-a"}}
	}
	return s, nil
}

func route(i int) plan.Route {
	return plan.Route{
		Switch: "l1", Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 3, byte(i), 2}), 32), Kind: plan.Pin,
		NextHops: []plan.NextHop{{Addr: netip.MustParseAddr("10.0.32.0")}},
	}
}

func (w *world) propose(_ context.Context, q Question) (flow.Proposal, error) {
	p := plan.Plan{Target: q.Target, Summary: "move", Forecast: plan.Forecast{
		Regime: "test", Gain: 0.4, PathsLeft: 1, BlackoutBoundS: 0.5,
		Links: []plan.LinkForecast{{Link: q.Target}}, Jobs: []plan.JobForecast{{JobID: "job-a"}},
	}}
	for i := range w.steps {
		p.Steps = append(p.Steps, plan.Step{Route: route(i), Why: "test"})
	}
	return flow.Proposal{Diagnosis: fault.Diagnosis{Cause: fault.HashCollision}, Explains: true, Candidates: []plan.Plan{{Summary: "do nothing"}, p}, Chosen: &p, Reason: "best"}, nil
}

func (w *world) verify(Trial) flow.Verification {
	w.mu.Lock()
	defer w.mu.Unlock()
	return flow.Verification{Outcome: w.outcome, Reason: "measured"}
}

func (w *world) stop() (StopSwitch, error) {
	w.stopMu.Lock()
	defer w.stopMu.Unlock()
	return w.stopFile, w.stopErr
}

func testPolicies(mode policy.Mode) policy.Set {
	p := policy.Default()
	p.Name, p.Mode = "relieve", mode
	p.Match = policy.Match{Alerts: []string{"FabricLinkCongested"}, Clusters: []string{policy.Any}, Fabrics: []string{"lab"}}
	p.Hold, p.Settle, p.VerifyDeadline, p.Cooldown = 30*time.Second, 2*time.Second, 30*time.Second, time.Minute
	return policy.Set{Policies: []policy.Policy{p}}
}

func (w *world) config(store journal.Store, mode policy.Mode) Config {
	return Config{
		Store: store, Observer: w, Propose: w.propose, Verify: w.verify, Driver: w, Policies: testPolicies(mode), StopFile: w.stop,
		Permit: NewPermit(nil, 4*time.Second), ObserveEvery: time.Second, ReconcileEvery: 2 * time.Second,
	}
}

// run starts a loop; the returned function ends it and waits.
func run(t *testing.T, cfg Config) (*Loop, func() error) {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return l, func() error { cancel(); return <-done }
}

func alertEvent(firing bool) flow.AlertEvent {
	return flow.AlertEvent{
		Fingerprint: "aaaa", StartsAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Firing: firing, Name: "FabricLinkCongested",
		Target: target, Source: "webhook",
	}
}

func only(t *testing.T, l *Loop) flow.View {
	t.Helper()
	vs := l.Views()
	if len(vs) != 1 {
		t.Fatalf("%d incidents, want 1", len(vs))
	}
	return vs[0]
}

func story(v flow.View) string {
	s := ""
	for _, e := range v.Timeline {
		s += e.At.Format("15:04:05.000") + " " + e.What + ": " + e.Why + "\n"
	}
	return s
}

func TestHappyPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		store := journal.NewMem()
		l, stop := run(t, w.config(store, policy.Act))
		if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(true)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if v := only(t, l); v.State != flow.Holding || w.count() != 1 {
			t.Fatalf("%s, %d routes:\n%s", v.State, w.count(), story(v))
		}
		if err := l.Deliver(t.Context(), []flow.AlertEvent{alertEvent(false)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Second)
		if v := only(t, l); v.State != flow.Released || w.count() != 0 {
			t.Fatalf("%s, %d routes:\n%s", v.State, w.count(), story(v))
		} else {
			t.Log("\n" + story(v))
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}
