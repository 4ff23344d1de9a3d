// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// carryOut begins what flow commands. Everything slow happens in other goroutines; the results come back as events.
// It runs in the loop's goroutine with the lock held.
func (l *Loop) carryOut(cmds []flow.Command) {
	for _, c := range cmds {
		in := l.state.Incidents[c.Incident]
		switch c.Kind {
		case flow.CmdObserve:
			l.looks.want(c)
		case flow.CmdPropose:
			l.propose(c, in)
		case flow.CmdJudge:
			l.facts(in, func(f guard.Facts) flow.Event { return flow.Judged{Incident: c.Incident, Turn: c.Turn, Facts: f} })
		case flow.CmdRecheck:
			l.facts(in, func(f guard.Facts) flow.Event { return flow.Rechecked{Incident: c.Incident, Turn: c.Turn, Facts: f} })
		case flow.CmdVerify, flow.CmdFollowUp, flow.CmdHold:
			l.looks.watch(c)
		case flow.CmdStep, flow.CmdUndo, flow.CmdRead, flow.CmdPut, flow.CmdRemove, flow.CmdWithdrawAll:
			l.write(c)
		case flow.CmdTell:
			l.notify(c)
		case flow.CmdInput:
			l.input(c.Input, 1)
		default:
			l.log.Error("flow commands what nobody can do", "command", c.Kind)
		}
	}
	l.observePending()
}

func (l *Loop) input(o flow.InputOutcome, n int) {
	if f := l.cfg.Hooks.Input; f != nil {
		f(o, n)
	}
}

func (l *Loop) notify(c flow.Command) {
	l.log.Warn("for a human", "incident", c.Incident, "text", c.Text)
	v, ok := flow.ViewOf(l.state, c.Incident)
	if f := l.cfg.Notify; f != nil && ok {
		l.workers.Go(func() { f(c.Text, v) })
	}
}

// propose thinks in a goroutine of its own.
func (l *Loop) propose(c flow.Command, in *flow.Incident) {
	id, target, pol, snapshot := c.Incident, in.Key.Target, in.Policy, c.Text
	var current []plan.Route
	for _, d := range l.state.Desired {
		current = append(current, d.Route)
	}
	slices.SortFunc(current, act.Compare)
	timeout := l.untilDeadline(c.Deadline)
	l.workers.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, timeout)
		defer cancel()
		answer := flow.Proposed{Incident: id, Turn: c.Turn}
		s, err := l.picture(ctx, snapshot)
		if err == nil {
			var p flow.Proposal
			p, err = l.think(ctx, Question{Incident: id, Snapshot: s, Target: target, Policy: pol, Current: current, Seed: seed(id, snapshot)})
			if err == nil {
				answer.Proposal, err = l.fit(ctx, withTarget(p, target))
			}
		}
		if err != nil {
			answer.Err = err.Error()
		}
		if err := readable(answer); err != nil { // e.g. a name that the next start could not read
			answer.Proposal, answer.Err = nil, err.Error()
		}
		l.deliver(answer)
	})
}

// think is Propose, with a fault of the thinking turned into an error: a picture that nobody foresaw must not end the
// program, since the next start would look at the same yard.
func (l *Loop) think(ctx context.Context, q Question) (p flow.Proposal, err error) {
	defer func() {
		if f := recover(); f != nil {
			err = fmt.Errorf("a fault of the thinking: %v", f)
			l.log.Error("a fault of the thinking", "incident", q.Incident, "fault", f, "stack", string(debug.Stack()))
		}
	}()
	return l.cfg.Propose(ctx, q)
}

// withTarget fills in what a plan is about: a plan that does nothing may leave it out.
func withTarget(p flow.Proposal, target ident.Port) flow.Proposal {
	p.Candidates = slices.Clone(p.Candidates)
	for i := range p.Candidates {
		if p.Candidates[i].Target.IsZero() {
			p.Candidates[i].Target = target
		}
	}
	if p.Chosen != nil && p.Chosen.Target.IsZero() {
		c := *p.Chosen
		c.Target = target
		p.Chosen = &c
	}
	return p
}

// readable says whether a record of the event could be read back. What cannot be read must never be written: the next
// start would have to take it for damage.
func readable(ev flow.Event) error {
	text, err := flow.EncodeEvent(ev)
	if err == nil {
		_, err = flow.DecodeEvent(ev.Kind(), text)
	}
	if err != nil {
		return fmt.Errorf("the answer cannot be journalled: %w", err)
	}
	return nil
}

// seed makes chance the same for the same incident and picture, so that a replayed decision can be thought again.
func seed(id flow.ID, snapshot string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(id) + snapshot))
	return h.Sum64()
}

// Bounds of a proposal in the journal: the whole is in the blob.
const (
	maxProposal = 48 << 10
	keepLinks   = 24
)

// fit stores the whole proposal as a blob, and cuts the copy for the record until a record can hold it.
func (l *Loop) fit(ctx context.Context, p flow.Proposal) (*flow.Proposal, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode the proposal: %w", err)
	}
	if p.Blob, err = l.cfg.Store.PutBlob(ctx, text); err != nil {
		return nil, err
	}
	if len(text) < maxProposal {
		return &p, nil
	}
	p.Candidates = slices.Clone(p.Candidates)
	for i := range p.Candidates {
		p.Candidates[i] = cut(p.Candidates[i])
	}
	for {
		if text, err = json.Marshal(p); err != nil {
			return nil, fmt.Errorf("encode the proposal: %w", err)
		}
		if len(text) < maxProposal {
			return &p, nil
		}
		switch {
		case len(p.Candidates) > 1:
			p.Candidates = p.Candidates[:len(p.Candidates)/2]
		case p.Chosen != nil && len(p.Chosen.Forecast.Links) > keepLinks:
			c := cut(*p.Chosen)
			p.Chosen = &c
		default:
			return nil, fmt.Errorf("the proposal has %d bytes, at most %d fit", len(text), maxProposal)
		}
	}
}

// cut keeps the fullest links of a forecast.
func cut(p plan.Plan) plan.Plan {
	if len(p.Forecast.Links) > keepLinks {
		p.Forecast.Links = slices.Clone(p.Forecast.Links)
		slices.SortStableFunc(p.Forecast.Links, func(a, b plan.LinkForecast) int {
			switch {
			case a.After.P50 > b.After.P50:
				return -1
			case a.After.P50 < b.After.P50:
				return 1
			}
			return a.Link.Compare(b.Link)
		})
		p.Forecast.Links = p.Forecast.Links[:keepLinks]
	}
	return p
}

// facts gathers what guard must know of the world, at this moment, and judges.
func (l *Loop) facts(in *flow.Incident, as func(guard.Facts) flow.Event) {
	f := guard.Facts{Wall: l.clock().Round(0).UTC(), LeaseEpoch: l.epoch}
	if s, err := l.cfg.StopFile(); err != nil {
		f.StopError = err.Error()
	} else {
		f.StopRead, f.StopPresent = true, s.Present
	}
	if err := l.cfg.Permit.Valid(l.clock()); err != nil {
		f.LeaseError = err.Error()
	} else {
		f.LeaseHeld = true
	}
	if d := l.cfg.Permit.drift(); d > maxClockDrift {
		f.ClockError = fmt.Sprintf("wall and monotonic clock went %v apart", d.Round(time.Millisecond))
	} else {
		f.ClockSane = true
	}
	chosen := in.Proposal.Chosen
	if l.cfg.Driver == nil {
		f.CannotSay = []string{"anything: no driver is configured"}
	} else {
		f.DriverAsked = true
		for _, s := range chosen.Steps {
			if err := l.cfg.Driver.Can(s.Route); err != nil {
				f.CannotSay = append(f.CannotSay, fmt.Sprintf("%s: %v", s.Route, err))
			}
		}
	}
	if s, ok := l.pictures[in.Snapshot]; ok {
		if age, ok := dataAge(s, in.Key.Target, chosen); ok {
			since, known := l.observedAt[in.ID]
			f.DataRead, f.DataAge = known, age+elapsed(since, l.clock()).Seconds()
		}
		f.DataProblems = s.Problems
	}
	ev := as(f)
	l.workers.Go(func() { l.deliver(ev) })
}

// maxClockDrift is how far the two clocks may go apart within one renewal of the lease. NTP slews by less than 1 ms a
// second; a step or a suspended machine is seconds.
const maxClockDrift = time.Second

// dataAge is the age of the oldest measurement that a plan rests on; ok is false if a link of it was not measured.
func dataAge(s fleet.Snapshot, target ident.Port, p *plan.Plan) (seconds float64, ok bool) {
	links := []ident.Port{target}
	for _, f := range p.Forecast.Links {
		links = append(links, f.Link)
	}
	for _, name := range links {
		load, measured := s.Links[name]
		if !measured || math.IsNaN(load.AgeSeconds) {
			return 0, false
		}
		seconds = max(seconds, load.AgeSeconds)
	}
	return seconds, true
}

// untilDeadline is the time that one piece of work may take.
func (l *Loop) untilDeadline(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return l.cfg.Timeout
	}
	return min(max(deadline.Sub(l.clock()), time.Millisecond), l.cfg.Timeout)
}
