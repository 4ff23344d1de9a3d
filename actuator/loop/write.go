// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/plan"
)

// writes is the queue to the driver: one operation at a time, in the order in which flow commanded them, so that a
// route is never written and withdrawn at once.
type writes struct {
	queue []*operation
	busy  *operation
	done  bool
}

// operation is one call to the driver.
type operation struct {
	incident flow.ID
	turn     int
	name     string
	permit   *once
	timeout  time.Duration
	do       func(ctx context.Context, p act.Permit) func() // what it returns runs in the loop's goroutine
	cancel   context.CancelFunc
}

// abandonAfter is how long a driver may go on after its context ended before nobody waits for it any more.
const abandonAfter = time.Second

func (w *writes) close() { w.done = true }

// write queues what a command says.
func (l *Loop) write(c flow.Command) {
	if c.Kind == flow.CmdWithdrawAll {
		l.withdrawAll()
		return
	}
	if l.cfg.Driver == nil {
		l.answerWithoutDriver(c)
		return
	}
	op := &operation{incident: c.Incident, turn: c.Turn, name: string(c.Kind), permit: &once{run: l.cfg.Permit}, timeout: l.untilDeadline(c.Deadline)}
	switch c.Kind {
	case flow.CmdStep:
		l.supersede(c.Incident)
		op.permit.stop = l.stopped
		// A switch cannot fence an old leader: the write must be over before the lease can be.
		op.timeout = min(op.timeout, max(l.cfg.Permit.left()*3/4, time.Millisecond))
		op.do = func(ctx context.Context, p act.Permit) func() {
			return l.stepDone(c, false, l.cfg.Driver.Apply(ctx, p, *c.Route))
		}
	case flow.CmdUndo:
		l.supersede(c.Incident)
		op.do = func(ctx context.Context, p act.Permit) func() {
			if c.Route != nil {
				return l.stepDone(c, true, l.cfg.Driver.Apply(ctx, p, *c.Route))
			}
			return l.stepDone(c, true, l.cfg.Driver.Withdraw(ctx, p, *c.Key))
		}
	case flow.CmdRead:
		op.do = func(ctx context.Context, _ act.Permit) func() {
			have, err := l.cfg.Driver.Read(ctx)
			ev := flow.Read{Incident: c.Incident, Turn: c.Turn, Step: c.Step}
			if err != nil {
				ev.Err = err.Error()
			}
			ev.Present = slices.ContainsFunc(have, func(r plan.Route) bool { return act.Same(r, *c.Route) })
			return func() { _ = l.try(ev) }
		}
	case flow.CmdPut:
		op.permit.stop = l.stopped
		op.do = func(ctx context.Context, p act.Permit) func() {
			return l.repaired(c, l.cfg.Driver.Apply(ctx, p, *c.Route))
		}
	case flow.CmdRemove:
		op.do = func(ctx context.Context, p act.Permit) func() {
			return l.repaired(c, l.cfg.Driver.Withdraw(ctx, p, *c.Key))
		}
	}
	l.enqueue(op)
}

// stopped is the stop switch as a write asks it: the file, read at that moment. The word of a human through an
// interface takes incidents out of acting in flow, which supersedes their writes.
func (l *Loop) stopped() error {
	s, err := l.cfg.StopFile()
	switch {
	case err != nil:
		return fmt.Errorf("stop switch: %w", err)
	case s.Present:
		return fmt.Errorf("stop switch: the stop file is there")
	}
	return nil
}

// supersede ends the write of an incident that a newer command replaces.
func (l *Loop) supersede(id flow.ID) {
	for _, op := range append(slices.Clone(l.writes.queue), l.writes.busy) {
		if op != nil && op.incident == id && op.name != string(flow.CmdPut) {
			op.permit.revoked.Store(true)
			if op.cancel != nil {
				op.cancel()
			}
		}
	}
}

func (l *Loop) enqueue(op *operation) {
	l.writes.queue = append(l.writes.queue, op)
	l.next()
}

// next begins the next operation if none is in flight.
func (l *Loop) next() {
	w := &l.writes
	if w.busy != nil || len(w.queue) == 0 || w.done {
		return
	}
	op := w.queue[0]
	w.queue = w.queue[1:]
	w.busy = op
	ctx, cancel := context.WithTimeout(l.ctx, op.timeout)
	op.cancel = cancel
	answer := make(chan func(), 1)
	l.workers.Go(func() { answer <- op.do(ctx, op.permit) })
	l.workers.Go(func() {
		defer cancel()
		var f func()
		select {
		case f = <-answer:
		case <-ctx.Done():
			t := time.NewTimer(abandonAfter)
			defer t.Stop()
			select {
			case f = <-answer:
			case <-t.C: // the driver does not come back; if it still does, its permit is gone
				op.permit.revoked.Store(true)
				f = l.abandoned(op)
			}
		}
		l.then(func() {
			w.busy = nil
			if f != nil {
				f()
			}
			l.next()
		})
	})
}

// abandoned answers for a driver that does not: whatever it was writing is unclear.
func (l *Loop) abandoned(op *operation) func() {
	l.log.Error("the driver does not answer", "operation", op.name, "incident", op.incident)
	switch flow.CommandKind(op.name) {
	case flow.CmdStep, flow.CmdUndo:
		in := l.stepOf(op.incident)
		return func() {
			_ = l.try(flow.Stepped{Incident: op.incident, Turn: op.turn, Step: in, Undo: op.name == string(flow.CmdUndo), Outcome: flow.Ambiguous, Detail: "the driver does not answer"})
		}
	case flow.CmdRead:
		in := l.stepOf(op.incident)
		return func() {
			_ = l.try(flow.Read{Incident: op.incident, Turn: op.turn, Step: in, Err: "the driver does not answer"})
		}
	}
	return nil
}

func (l *Loop) stepOf(id flow.ID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if in := l.state.Incidents[id]; in != nil {
		return in.Step
	}
	return 0
}

func (l *Loop) stepDone(c flow.Command, undo bool, r act.Result) func() {
	return func() {
		l.outcome(string(c.Kind), r.Outcome)
		_ = l.try(flow.Stepped{Incident: c.Incident, Turn: c.Turn, Step: c.Step, Undo: undo, Outcome: flow.Outcome(r.Outcome), Detail: r.Detail})
	}
}

// repaired only counts: whether it helped is seen at the next read-back.
func (l *Loop) repaired(c flow.Command, r act.Result) func() {
	return func() {
		l.outcome(string(c.Kind), r.Outcome)
		if !r.OK() {
			l.log.Warn("repair of a route", "command", c.Kind, "outcome", r.Outcome, "detail", r.Detail)
		}
	}
}

func (l *Loop) outcome(kind string, o act.Outcome) {
	if f := l.cfg.Hooks.Outcome; f != nil {
		f(kind, o)
	}
}

// answerWithoutDriver refuses what nobody can do.
func (l *Loop) answerWithoutDriver(c flow.Command) {
	var ev flow.Event
	switch c.Kind {
	case flow.CmdStep:
		ev = flow.Stepped{Incident: c.Incident, Turn: c.Turn, Step: c.Step, Outcome: flow.Cancelled, Detail: "no driver is configured"}
	case flow.CmdUndo:
		ev = flow.Stepped{Incident: c.Incident, Turn: c.Turn, Step: c.Step, Undo: true, Outcome: flow.Permanent, Detail: "no driver is configured"}
	case flow.CmdRead:
		ev = flow.Read{Incident: c.Incident, Turn: c.Turn, Step: c.Step, Err: "no driver is configured"}
	default:
		return
	}
	l.workers.Go(func() { l.deliver(ev) })
}

// withdrawAll goes before everything else: what is in flight is ended, what is queued to be written is dropped by its
// permit, and the driver is told at once. It needs no permit (act.Driver), and works on a read-only journal, too.
func (l *Loop) withdrawAll() {
	if l.cfg.Driver == nil {
		return
	}
	for _, op := range append(slices.Clone(l.writes.queue), l.writes.busy) {
		if op != nil && op.permit.stop != nil {
			op.permit.revoked.Store(true)
			if op.cancel != nil {
				op.cancel()
			}
		}
	}
	l.workers.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), l.cfg.Timeout)
		defer cancel()
		r := l.cfg.Driver.WithdrawAll(ctx)
		l.log.Warn("every route was withdrawn", "outcome", r.Outcome, "detail", r.Detail)
	})
}

// prime tells a driver that replays routes by itself which ones are in force, before its sessions start (contract 2).
func (l *Loop) prime() {
	if l.cfg.Driver == nil {
		return
	}
	op := &operation{name: "prime", permit: &once{run: l.cfg.Permit}, timeout: l.cfg.Timeout}
	op.do = func(ctx context.Context, p act.Permit) func() {
		l.mu.Lock()
		want, _ := flow.Routes(l.state)
		l.mu.Unlock()
		var err error
		if d, ok := l.cfg.Driver.(act.Primer); ok {
			err = d.Prime(ctx, want)
		} else if l.stopped() == nil {
			for _, r := range want {
				if res := l.cfg.Driver.Apply(ctx, p, r); !res.OK() {
					err = fmt.Errorf("%s: %s: %s", r, res.Outcome, res.Detail)
				}
			}
		}
		return func() {
			if err != nil {
				l.log.Error("tell the driver which routes are in force", "err", err)
			}
			l.readRoutes()
		}
	}
	l.writes.queue = append(l.writes.queue, op)
}

// primeAgain tells the driver what its sessions may replay, e.g. after it closed itself because the process stood still
// for a while that was shorter than the lease.
func (l *Loop) primeAgain(ctx context.Context) error {
	d, ok := l.cfg.Driver.(act.Primer)
	if !ok {
		return nil
	}
	var rs []plan.Route
	l.mu.Lock()
	for _, r := range l.state.Desired {
		if in := l.state.Incidents[r.Incident]; r.State != flow.Removing && in != nil {
			rs = append(rs, r.Route)
		}
	}
	l.mu.Unlock()
	slices.SortFunc(rs, act.Compare)
	return d.Prime(ctx, rs)
}

// readRoutes compares what is in force with the desired-state table.
func (l *Loop) readRoutes() {
	if l.cfg.Driver == nil || l.readOnly != nil || l.broken != nil {
		return
	}
	for _, op := range append(slices.Clone(l.writes.queue), l.writes.busy) {
		if op != nil && op.name == "read back" {
			return // one is enough
		}
	}
	l.enqueue(&operation{name: "read back", permit: &once{run: l.cfg.Permit}, timeout: l.cfg.Timeout, do: func(ctx context.Context, _ act.Permit) func() {
		if err := l.primeAgain(ctx); err != nil {
			return func() { l.log.Warn("tell the driver which routes are desired", "err", err) }
		}
		have, err := l.cfg.Driver.Read(ctx)
		return func() { l.compare(have, err) }
	}})
}

// maxDrift bounds the lists of one record; the next read-back brings the rest.
const maxDrift = 100

func (l *Loop) compare(have []plan.Route, err error) {
	if err != nil {
		l.log.Error("read routes back", "driver", l.cfg.Driver.Name(), "err", err)
		return
	}
	want, leave := flow.Routes(l.state)
	var drift flow.Drift
	for _, r := range want {
		if !slices.ContainsFunc(have, func(h plan.Route) bool { return act.Same(h, r) }) && len(drift.Missing) < maxDrift {
			drift.Missing = append(drift.Missing, r)
		}
	}
	wanted := map[plan.RouteKey]bool{}
	for _, r := range want {
		wanted[r.Key()] = true
	}
	for _, r := range have {
		if k := r.Key(); !wanted[k] && !leave[k] && len(drift.Extra) < maxDrift {
			drift.Extra = append(drift.Extra, k)
		}
	}
	l.mu.Lock()
	l.status.Installed, l.status.ReadBack = len(have), l.clock().Round(0)
	l.mu.Unlock()
	if f := l.cfg.Hooks.Routes; f != nil {
		f(len(l.state.Desired), len(have))
	}
	if drift.Missing != nil || drift.Extra != nil {
		l.log.Warn("routes in force are not the desired ones", "missing", len(drift.Missing), "extra", len(drift.Extra))
		_ = l.try(drift)
	}
}
