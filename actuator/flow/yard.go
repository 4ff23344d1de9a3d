// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"maps"
	"slices"
	"time"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
)

// Bounds of what the yard remembers. Alerts are written by whoever can write a metric label: nothing may grow for ever.
const (
	maxOpen      = 64     // incidents that are not over; more at once is a storm
	maxEpisodes  = 50_000 // fingerprints
	maxIncidents = 500    // that are over and kept for people; the journal has all
	maxEvidence  = 32     // alerts of one incident
	keepEpisode  = 24 * time.Hour
	keepIncident = 7 * 24 * time.Hour
	collectEvery = time.Hour
)

// open counts incidents that are not over.
func (s *State) open() int {
	n := 0
	for _, in := range s.Incidents {
		if !in.State.Terminal() {
			n++
		}
	}
	return n
}

// tick fires every timer that is due, in a fixed order.
func (t *turn) tick() {
	for _, in := range t.s.incidents() {
		if at := in.wake(); !at.IsZero() && !t.now.Before(at) {
			t.dispatch(in, KindDue)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.s.Targets)) {
		if g := t.s.Targets[key]; g.Open == "" && !g.ReopenAt.IsZero() && !t.now.Before(g.ReopenAt) {
			g.ReopenAt = time.Time{}
			t.reopen(g)
		}
	}
	if at := t.s.CollectAt; !at.IsZero() && !t.now.Before(at) {
		t.collect()
	}
}

// reopen looks again at a target whose alert still fires and was not acted on.
func (t *turn) reopen(g *Target) {
	for _, e := range t.s.episodes(g.Key) {
		if e.Firing && !e.Acted {
			t.input(t.consider(e))
			return
		}
	}
}

// reopenRefused looks again at every target that waits, now that a human lifted the stop.
func (t *turn) reopenRefused() {
	for _, key := range slices.Sorted(maps.Keys(t.s.Targets)) {
		if g := t.s.Targets[key]; g.Open == "" && !g.ReopenAt.IsZero() && !t.now.Before(g.CooldownUntil) {
			g.ReopenAt = t.now // at the next tick
		}
	}
}

// policiesChanged looks at the episodes that no policy wanted before. Open incidents finish under theirs; what the new
// set weakens binds when they are judged (Set.Mode).
func (t *turn) policiesChanged() {
	for _, in := range t.s.incidents() {
		if t.s.Policies.Mode(in.Policy) == policy.Watch {
			t.dispatch(in, KindWeakened)
		}
	}
	for _, fp := range slices.Sorted(maps.Keys(t.s.Episodes)) {
		e := t.s.Episodes[fp]
		if !e.Firing || e.Acted {
			continue
		}
		p, ok := t.s.Policies.Find(e.Alert.Name, e.Alert.Cluster, e.Alert.Target.Fabric)
		if ok && e.Alert.TargetError == "" && t.s.Targets[Key{p.Goal, e.Alert.Target}.String()] == nil {
			t.input(t.consider(e))
		}
	}
}

// collect forgets what is old enough.
func (t *turn) collect() {
	t.s.CollectAt = t.now.Add(collectEvery)
	for fp, e := range t.s.Episodes {
		if !e.Firing && t.now.Sub(e.ChangedAt) > keepEpisode {
			t.s.unindex(e.Alert)
			delete(t.s.Episodes, fp)
		}
	}
	var over []*Incident
	for _, in := range t.s.incidents() {
		if in.State.Terminal() && t.s.Targets[in.Key.String()].Open != in.ID {
			over = append(over, in)
		}
	}
	for i, in := range over {
		if len(over)-i > maxIncidents || t.now.Sub(in.EndedAt) > keepIncident {
			delete(t.s.Incidents, in.ID)
		}
	}
	used := map[string]bool{}
	for _, in := range t.s.Incidents {
		used[in.Key.String()] = true
	}
	for key, g := range t.s.Targets {
		if !used[key] && g.Open == "" && g.ReopenAt.IsZero() && !t.now.Before(g.CooldownUntil) && !t.s.firing(g.Key) {
			delete(t.s.Targets, key)
		}
	}
	if len(t.s.Episodes) == 0 && len(t.s.Incidents) == 0 {
		t.s.CollectAt = time.Time{}
	}
}

func (t *turn) started(ev Started) {
	t.s.Epoch = ev.Epoch
	t.tick() // a timer that came due while nobody was there fires first (contract 6)
	t.each(KindStarted)
}

func (t *turn) stop(ev Stopped) {
	t.s.Stopped, t.s.StoppedBy = true, ev.Actor
	if ev.Withdraw {
		t.cmds = append(t.cmds, Command{Kind: CmdWithdrawAll})
	}
	t.each(KindStopped)
}

// maxRepairs bounds one Drift's commands; the next read-back brings the rest.
const maxRepairs = 64

// drift repairs the difference between read-back and table: what an incident lost is its business, and what nobody
// desires is removed. While stopped, nothing is written again.
func (t *turn) drift(ev Drift) {
	owners := map[ID]bool{}
	for _, r := range ev.Missing {
		if d := t.s.Desired[r.Key().String()]; d != nil && d.State == InForce && !owners[d.Incident] {
			owners[d.Incident] = true
			t.dispatch(t.s.Incidents[d.Incident], KindLost)
		}
	}
	n := 0
	for _, k := range ev.Extra {
		if t.s.Desired[k.String()] == nil && n < maxRepairs {
			n++
			t.cmds = append(t.cmds, Command{Kind: CmdRemove, Key: &k})
		}
	}
}

// missing lists the routes of the incident that a Drift reports as lost.
func (t *turn) missing() []plan.Route {
	ev, ok := t.ev.(Drift)
	if !ok {
		return nil
	}
	var rs []plan.Route
	for _, r := range ev.Missing {
		if d := t.s.Desired[r.Key().String()]; d != nil && d.Incident == t.in.ID && d.State == InForce {
			rs = append(rs, d.Route)
		}
	}
	return rs
}
