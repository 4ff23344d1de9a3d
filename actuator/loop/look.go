// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// looks are the incidents that wait for pictures of the yard. One picture serves all that wait when it is begun.
type looks struct {
	pending []flow.Command // observe, each once
	waiting map[flow.ID]*watch
	busy    bool
}

// watch is an incident that is looked after at every picture: verification, follow-up or holding.
type watch struct {
	cmd     flow.Command
	odd     string // what was odd at the last picture
	oddSeen int    // how often in a row
}

// oddPictures is how many pictures in a row must show that a job is gone or the topology is another one: a single one may
// be a scrape gap.
const oddPictures = 2

func (k *looks) want(c flow.Command) { k.pending = append(k.pending, c) }

func (k *looks) watch(c flow.Command) {
	if k.waiting == nil {
		k.waiting = map[flow.ID]*watch{}
	}
	k.waiting[c.Incident] = &watch{cmd: c}
}

// look takes a picture if anybody waits for one.
func (l *Loop) look() {
	if l.looks.busy || l.readOnly != nil || len(l.looks.pending)+len(l.looks.waiting) == 0 {
		return
	}
	l.looks.busy = true
	pending := l.looks.pending
	l.looks.pending = nil
	l.workers.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, l.cfg.Timeout)
		s, err := l.cfg.Observer.Observe(ctx)
		cancel()
		at := l.clock()
		l.then(func() {
			l.looks.busy = false
			l.observed(s, err, at, pending)
			l.watched(s, err)
			l.observePending()
		})
	})
}

// observePending looks at once if an incident is waiting for its first picture.
func (l *Loop) observePending() {
	if len(l.looks.pending) > 0 {
		l.look()
	}
}

// observed answers those that wait for one picture.
func (l *Loop) observed(s fleet.Snapshot, err error, at time.Time, pending []flow.Command) {
	if len(pending) == 0 {
		return
	}
	name := ""
	if err == nil {
		name, err = l.keep(s)
	}
	events := make([]flow.Event, 0, len(pending))
	for _, c := range pending {
		ev := flow.Observed{Incident: c.Incident, Turn: c.Turn}
		in := l.state.Incidents[c.Incident]
		switch {
		case in == nil:
			continue
		case err != nil:
			ev.Err = err.Error()
		default:
			ev.Snapshot, ev.At, ev.Problems = name, s.At, short(s.Problems)
			ev.Refused = resolve(s, in.Key.Target)
			l.observedAt[c.Incident] = at
		}
		events = append(events, ev)
	}
	_ = l.try(events...)
}

// resolve says why a target is not exactly one link of the inventory.
func resolve(s fleet.Snapshot, target ident.Port) string {
	link, ok := s.Fabric.Links[target]
	switch {
	case !ok:
		return fmt.Sprintf("%s is not a link of fabric %q as it is known now", target, s.Fabric.Name)
	case link.From != target:
		return fmt.Sprintf("%s stands for %s in the inventory", target, link.From)
	}
	return ""
}

// short keeps a list of problems readable in a record; the picture has all.
func short(problems []string) []string {
	const most = 20
	if len(problems) <= most {
		return problems
	}
	return append(slices.Clone(problems[:most]), fmt.Sprintf("and %d more", len(problems)-most))
}

// maxPictures bounds the pictures in memory; the journal has all that decisions rest on.
const maxPictures = 16

// keep makes a picture durable and remembers it.
func (l *Loop) keep(s fleet.Snapshot) (string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encode the picture: %w", err)
	}
	name, err := l.cfg.Store.PutBlob(l.ctx, text)
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember(name, s)
	return name, nil
}

func (l *Loop) remember(name string, s fleet.Snapshot) {
	if _, ok := l.pictures[name]; !ok {
		l.order = append(l.order, name)
	}
	l.pictures[name] = s
	for len(l.order) > maxPictures {
		delete(l.pictures, l.order[0])
		l.order = l.order[1:]
	}
}

// picture finds a picture in memory or in the journal. It may be called from any goroutine.
func (l *Loop) picture(ctx context.Context, name string) (fleet.Snapshot, error) {
	l.mu.Lock()
	s, ok := l.pictures[name]
	l.mu.Unlock()
	if ok {
		return s, nil
	}
	text, err := l.cfg.Store.Blob(ctx, name)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("decode the picture: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember(name, s)
	return s, nil
}

// watched answers those that are looked after. It runs in the loop's goroutine; comparing is cheap.
func (l *Loop) watched(s fleet.Snapshot, err error) {
	now := l.clock()
	var events []flow.Event
	for id, w := range l.looks.waiting {
		in := l.state.Incidents[id]
		if in == nil || in.Turn != w.cmd.Turn { // decided meanwhile
			delete(l.looks.waiting, id)
			continue
		}
		ev := l.watchedOne(in, w, s, err, now)
		if ev != nil {
			events = append(events, ev)
		}
	}
	slices.SortFunc(events, func(a, b flow.Event) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, ev := range events {
		_ = l.try(ev)
	}
}

func (l *Loop) watchedOne(in *flow.Incident, w *watch, after fleet.Snapshot, err error, now time.Time) flow.Event {
	last := !now.Add(l.cfg.ObserveEvery).Before(w.cmd.Deadline)
	before, berr := l.picture(l.ctx, w.cmd.Text)
	if err = errors.Join(err, berr); err != nil {
		if w.cmd.Kind != flow.CmdHold && last {
			return flow.Verified{Incident: in.ID, Turn: w.cmd.Turn, Result: flow.Verification{Outcome: flow.Inconclusive, Reason: "no picture: " + err.Error()}}
		}
		return nil
	}
	if w.cmd.Kind != flow.CmdFollowUp {
		if why := l.changed(in, w, before, after); why != "" {
			return flow.Changed{Incident: in.ID, Why: why}
		}
	}
	started := in.SettledAt
	switch w.cmd.Kind {
	case flow.CmdHold:
		return nil
	case flow.CmdFollowUp:
		started = in.Since
	}
	if now.Before(started.Add(in.Policy.Settle)) {
		return nil
	}
	t := Trial{Incident: in.ID, Target: in.Key.Target, Policy: in.Policy, Chosen: *in.Proposal.Chosen, Before: before, After: after, Started: started, Now: now, Last: last}
	check := l.cfg.Verify
	if w.cmd.Kind == flow.CmdFollowUp {
		check = l.cfg.FollowUp
	}
	v := l.compareWith(check, t)
	if v.Outcome == "" {
		return nil // flow's deadline ends the wait
	}
	if f := l.cfg.Hooks.Verified; f != nil && w.cmd.Kind == flow.CmdVerify {
		f(in.Proposal.Chosen.Forecast, v)
	}
	ev := flow.Verified{Incident: in.ID, Turn: w.cmd.Turn, Result: v}
	if err := readable(ev); err != nil { // e.g. a figure that is no number: nothing can be concluded from such a comparison
		ev.Result = flow.Verification{Outcome: flow.Inconclusive, Reason: err.Error()}
	}
	return ev
}

// compareWith is Verify or FollowUp, with a fault turned into an answer.
func (l *Loop) compareWith(check func(Trial) flow.Verification, t Trial) (v flow.Verification) {
	defer func() {
		if f := recover(); f != nil {
			v = flow.Verification{Outcome: flow.Inconclusive, Reason: fmt.Sprintf("a fault of the verification: %v", f)}
			l.log.Error("a fault of the verification", "incident", t.Incident, "fault", f, "stack", string(debug.Stack()))
		}
	}()
	return check(t)
}

// changed says whether the world that a plan was made for is gone, once two pictures in a row say so.
func (l *Loop) changed(in *flow.Incident, w *watch, before, after fleet.Snapshot) string {
	odd := otherWorld(in.Proposal.Chosen, before, after)
	if odd == "" || odd != w.odd {
		w.odd, w.oddSeen = odd, 0
	}
	if odd == "" {
		return ""
	}
	if w.oddSeen++; w.oddSeen < oddPictures {
		return ""
	}
	return odd
}

// otherWorld compares what a plan rests on: its jobs run, and the links of its ECMP groups are up or down as before.
func otherWorld(p *plan.Plan, before, after fleet.Snapshot) string {
	running := map[string]bool{}
	for _, j := range after.Jobs {
		running[j.ID] = true
	}
	for _, j := range p.Forecast.Jobs {
		if !running[j.JobID] {
			return "job " + j.JobID + " ended"
		}
	}
	groups := map[string]bool{}
	for _, f := range p.Forecast.Links {
		if g := before.Fabric.Links[f.Link].ECMPGroup; g != "" {
			groups[g] = true
		}
	}
	for name, was := range before.Fabric.Links {
		if !groups[was.ECMPGroup] {
			continue
		}
		if is, ok := after.Fabric.Links[name]; !ok || is.Up != was.Up || is.To != was.To {
			return fmt.Sprintf("the topology changed: link %s", name)
		}
	}
	for name, is := range after.Fabric.Links {
		if _, ok := before.Fabric.Links[name]; !ok && groups[is.ECMPGroup] {
			return fmt.Sprintf("the topology changed: link %s is new", name)
		}
	}
	return ""
}
