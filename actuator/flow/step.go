// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/plan"
)

// turn is one call of Step on its way through the rules: the yard, the incident that a rule is about, the event, and
// the commands so far.
type turn struct {
	s    *State
	in   *Incident
	now  time.Time
	ev   Event // as journalled; rules assert its type
	cmds []Command
}

// Step advances the yard by one event. It takes the State over. now is clamped: it never goes back.
func Step(s State, now time.Time, ev Event) (State, []Command) {
	now = now.UTC().Truncate(time.Microsecond) // what survives the journal
	if now.Before(s.Now) {
		now = s.Now
	}
	s.Now = now
	t := &turn{s: &s, now: now, ev: ev}
	switch ev := ev.(type) {
	case Alert:
		t.alert(ev.Alert)
	case Started:
		t.started(ev)
	case Tick:
		t.tick()
	case Stopped:
		t.stop(ev)
	case Resumed:
		s.Stopped, s.StoppedBy = false, ""
		t.each(KindResumed)
		t.reopenRefused()
	case Policies:
		s.Policies = ev.Set
		t.policiesChanged()
	case Drift:
		t.drift(ev)
	case Observed:
		t.to(ev.Incident, ev.Turn)
	case Proposed:
		t.to(ev.Incident, ev.Turn)
	case Judged:
		t.to(ev.Incident, ev.Turn)
	case Rechecked:
		t.to(ev.Incident, ev.Turn)
	case Stepped:
		t.to(ev.Incident, ev.Turn)
	case Read:
		t.to(ev.Incident, ev.Turn)
	case Verified:
		t.to(ev.Incident, ev.Turn)
	case Answered:
		t.dispatch(t.s.Incidents[ev.Incident], KindAnswered)
	case Changed:
		t.dispatch(t.s.Incidents[ev.Incident], KindChanged)
	case LetGo:
		t.dispatch(t.s.Incidents[ev.Incident], KindLetGo)
	case Diverged:
		t.dispatch(t.s.Incidents[ev.Incident], KindDiverged)
	default:
		panic(fmt.Sprintf("flow: no case for event %T", ev)) // decode knows exactly these
	}
	return s, t.cmds
}

// to dispatches a result to its incident, unless a newer command made it late.
func (t *turn) to(id ID, turn int) {
	if in := t.s.Incidents[id]; in != nil && in.Turn == turn {
		t.dispatch(in, t.ev.Kind())
	}
}

// dispatch looks the pair up in the table and does what it says.
func (t *turn) dispatch(in *Incident, kind Kind) {
	if in == nil {
		return
	}
	r, ok := table[pair{in.State, kind}]
	if !ok {
		panic(fmt.Sprintf("flow: no row for %s on %s", in.State, kind)) // the table is complete: a test counts
	}
	was := in.State
	outer := t.in
	t.in = in
	r.do(t)
	t.in = outer
	if in.State != was && !slices.Contains(r.next, in.State) {
		panic(fmt.Sprintf("flow: %s on %s led to %s, which its row does not name", was, kind, in.State))
	}
}

// each dispatches to every incident, oldest first, so that the order is the same in every replay.
func (t *turn) each(kind Kind) {
	for _, in := range t.s.incidents() {
		t.dispatch(in, kind)
	}
}

// incidents lists incidents oldest first.
func (s *State) incidents() []*Incident {
	return slices.SortedFunc(maps.Values(s.Incidents), func(a, b *Incident) int {
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(number(a.ID), number(b.ID)))
	})
}

// number is the yard-wide number at the end of an ID.
func number(id ID) uint64 {
	_, digits, _ := strings.Cut(strings.TrimPrefix(string(id), "inc-"), "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0 // not one of ours
	}
	return n
}

// maxTimeline bounds an incident's story; the journal has the rest.
const maxTimeline = 256

// tell adds a line to the story of the incident.
func (t *turn) say(what, why string, args ...any) {
	if len(args) > 0 {
		why = fmt.Sprintf(why, args...)
	}
	if len(t.in.Timeline) == maxTimeline {
		t.in.Timeline = slices.Delete(t.in.Timeline, 1, 2)
	}
	t.in.Timeline = append(t.in.Timeline, Entry{t.now, what, why})
}

// enter moves the incident to a state with a deadline; zero means none.
func (t *turn) enter(s IncidentState, deadline time.Time) {
	t.in.State, t.in.Since, t.in.Deadline, t.in.RetryAt, t.in.Attempt = s, t.now, deadline, time.Time{}, 0
}

// do emits a command about the incident that awaits an answer, which makes every older answer late.
func (t *turn) do(c Command) {
	t.in.Turn++
	c.Incident, c.Turn = t.in.ID, t.in.Turn
	t.cmds = append(t.cmds, c)
}

// tellHuman emits a message.
func (t *turn) tellHuman(format string, args ...any) {
	t.cmds = append(t.cmds, Command{Kind: CmdTell, Incident: t.in.ID, Text: fmt.Sprintf(format, args...)})
}

// end brings the incident to a named end: it gives back reservation and lock, and looks after what follows for the
// target.
func (t *turn) end(s IncidentState, why string, args ...any) {
	if len(args) > 0 {
		why = fmt.Sprintf(why, args...)
	}
	in := t.in
	t.enter(s, time.Time{})
	in.Turn++ // whatever is still on its way is late
	in.EndedAt, in.Reason = t.now, why
	t.say(string(s), "%s", why)
	delete(t.s.Reservations, in.ID)
	target := t.s.Targets[in.Key.String()]
	if s == Handed { // the lock stays until the human is done
		t.tellHuman("%s is yours: %s", in.ID, why)
		return
	}
	target.Open = ""
	if in.written() {
		target.CooldownUntil = later(target.CooldownUntil, t.now.Add(in.Policy.Cooldown))
		target.Refusals = 0
		target.ReopenAt = target.CooldownUntil // an episode that is new by then is looked at
		return
	}
	switch s {
	case Refused, Expired:
		// Looked at again later, if it still fires: the world may have changed. Longer and longer, up to an hour.
		target.ReopenAt = t.now.Add(min(min(in.Policy.Cooldown, minReopen)<<min(target.Refusals, 6), maxReopen))
		target.Refusals++
	case Resolved:
		target.Refusals = 0
	case Watched:
		t.markActed(in.Key) // one report an episode
	}
}

// minReopen and maxReopen bound the pause after which a refused and still firing alert is looked at again.
const (
	minReopen = time.Minute
	maxReopen = time.Hour
)

// written says that at least one write was issued.
func (in *Incident) written() bool {
	return slices.ContainsFunc(in.Steps, func(s StepRecord) bool { return !s.Issued.IsZero() && s.Outcome != Cancelled })
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ignore is the rule of the pairs that mean nothing.
func (t *turn) ignore() {}

// note is the rule of the pairs that are only told.
func (t *turn) note() { t.say(string(t.ev.Kind()), "") }

// NextWake is when the next timer comes due; zero means never.
func NextWake(s State) time.Time {
	var next time.Time
	add := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, in := range s.Incidents {
		add(in.wake())
	}
	for _, g := range s.Targets {
		if g.Open == "" {
			add(g.ReopenAt)
		}
	}
	add(s.CollectAt)
	return next
}

// wake is when the incident's next timer comes due.
func (in *Incident) wake() time.Time {
	if in.State.Terminal() {
		return time.Time{}
	}
	if in.RetryAt.IsZero() || !in.Deadline.IsZero() && in.Deadline.Before(in.RetryAt) {
		return in.Deadline
	}
	return in.RetryAt
}

func (in *Incident) late(now time.Time) bool {
	return !in.Deadline.IsZero() && !now.Before(in.Deadline)
}

// Routes is the part of the desired-state table that a read-back is compared with: want must be in force, and nothing
// is to be done about leave (on their way, or left to a human).
func Routes(s State) (want []plan.Route, leave map[plan.RouteKey]bool) {
	leave = map[plan.RouteKey]bool{}
	for _, key := range slices.Sorted(maps.Keys(s.Desired)) {
		d := s.Desired[key]
		in := s.Incidents[d.Incident]
		if d.State == InForce && in != nil && !in.State.Terminal() {
			want = append(want, d.Route)
		} else {
			leave[d.Route.Key()] = true
		}
	}
	return want, leave
}
