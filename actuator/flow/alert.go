// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"maps"
	"slices"
	"time"

	"github.com/trainyard/trainyard/actuator/policy"
)

// What becomes of alerts: the episode table, and how episodes open incidents or join them.

// News says whether an alert is a transition: something that Step would not already know. Only transitions are
// journalled (contract 4); for the rest, it says what becomes of them.
func News(s State, a AlertEvent) (bool, InputOutcome) {
	e := s.Episodes[a.Fingerprint]
	switch {
	case e == nil && len(s.Episodes) >= maxEpisodes:
		return false, InputFull
	case e == nil && a.Suppressed:
		return false, InputSuppressed
	case e == nil:
		return true, ""
	case a.StartsAt.Before(e.Alert.StartsAt):
		return false, InputStale
	case a.StartsAt.After(e.Alert.StartsAt):
		return !a.Suppressed, InputSuppressed
	case a.Suppressed:
		return false, InputSuppressed
	case a.Firing == e.Firing:
		return false, InputDuplicate
	case a.Firing && a.Source != sourcePoll && e.GoneBy != sourcePoll:
		return false, InputStale // a firing that arrives after the resolved of its own episode
	}
	return true, ""
}

// sourcePoll names the poll of Alertmanager: it sees what fires at this moment, so it may also bring an episode back.
const sourcePoll = "poll"

// Missing lists the alerts that fire in the table but not in what Alertmanager shows: the episodes that ended without
// a message. Suppressed alerts are shown, so they are not missing.
func Missing(s State, shown []AlertEvent) []AlertEvent {
	seen := map[string]bool{}
	for _, a := range shown {
		seen[a.Fingerprint] = true
	}
	var gone []AlertEvent
	for _, fp := range slices.Sorted(maps.Keys(s.Episodes)) {
		if e := s.Episodes[fp]; e.Firing && !seen[fp] {
			a := e.Alert
			a.Firing, a.Source = false, sourcePoll
			gone = append(gone, a)
		}
	}
	return gone
}

// input records what became of an alert.
func (t *turn) input(o InputOutcome, why string) {
	t.s.Inputs[o]++
	t.cmds = append(t.cmds, Command{Kind: CmdInput, Input: o, Text: why})
}

func (t *turn) alert(a AlertEvent) {
	news, outcome := News(*t.s, a)
	if !news {
		t.input(outcome, "")
		return
	}
	e := t.s.Episodes[a.Fingerprint]
	known := e != nil && e.Firing
	if e == nil {
		e = &Episode{}
		t.s.Episodes[a.Fingerprint] = e
	}
	if !e.Alert.StartsAt.Equal(a.StartsAt) {
		e.Acted = false // a new episode of this fingerprint
	}
	t.s.unindex(e.Alert) // the same labels name the same target; but nobody promises that a fingerprint is unique
	t.s.index(a)
	e.Alert, e.Firing, e.SeenAt, e.ChangedAt, e.GoneBy = a, a.Firing, t.now, t.now, ""
	if t.s.CollectAt.IsZero() {
		t.s.CollectAt = t.now.Add(collectEvery)
	}
	if !a.Firing {
		e.GoneBy = a.Source
		t.resolvedAlert(e, known)
		return
	}
	t.input(t.consider(e))
}

func (t *turn) resolvedAlert(e *Episode, known bool) {
	if !known {
		t.input(InputLoneResolved, "")
		return
	}
	t.input(InputResolved, "by "+e.GoneBy)
	k, ok := t.key(e.Alert)
	target := t.s.Targets[k.String()]
	switch {
	case !ok || target == nil:
	case !t.s.firing(k):
		target.ReopenAt = time.Time{}
		t.dispatch(t.s.Incidents[target.Open], KindGone)
	case target.Open == "" && target.ReopenAt.IsZero() && !t.s.acted(k):
		target.ReopenAt = later(t.now, target.CooldownUntil) // the episode that was acted on is over, another one still fires
	}
}

// key is what an alert would be an incident about. The policy in force maps it to a goal.
func (t *turn) key(a AlertEvent) (Key, bool) {
	p, ok := t.s.Policies.Find(a.Name, a.Cluster, a.Target.Fabric)
	if !ok && len(t.s.Policies.Policies) > 0 || a.TargetError != "" || a.Target.IsZero() {
		return Key{}, false
	}
	if !ok {
		return Key{policy.RelieveLink, a.Target}, true
	}
	return Key{p.Goal, a.Target}, true
}

// consider decides what a firing episode is: evidence, a new incident, or nothing for now.
func (t *turn) consider(e *Episode) (InputOutcome, string) {
	a := e.Alert
	p, ok := t.s.Policies.Find(a.Name, a.Cluster, a.Target.Fabric)
	switch {
	case a.TargetError != "" || a.Target.IsZero():
		return InputNoTarget, a.TargetError
	case !ok:
		return InputNoPolicy, a.Name
	}
	k := Key{p.Goal, a.Target}
	target := t.s.Targets[k.String()]
	if target == nil {
		target = &Target{Key: k}
		t.s.Targets[k.String()] = target
	}
	if in := t.s.Incidents[target.Open]; in != nil {
		outer := t.ev
		t.ev = Alert{a}
		t.dispatch(in, KindFiring)
		t.ev = outer
		if in.written() {
			e.Acted = true // what is done for the target is done for this episode too
		}
		return InputJoined, string(in.ID)
	}
	switch {
	case t.s.acted(k):
		return InputActedBefore, ""
	case t.now.Before(later(target.ReopenAt, target.CooldownUntil)):
		target.ReopenAt = later(target.ReopenAt, target.CooldownUntil)
		return InputWaiting, "until " + target.ReopenAt.Format(time.RFC3339)
	case t.s.open() >= maxOpen:
		target.ReopenAt = t.now.Add(p.Cooldown)
		return InputStorm, ""
	}
	t.openIncident(target, p, a)
	return InputOpened, string(target.Open)
}

func (t *turn) openIncident(target *Target, p policy.Policy, a AlertEvent) {
	t.s.Count++
	in := &Incident{ID: target.Key.id(t.s.Count), Key: target.Key, Policy: p, PolicyHash: p.Hash(), OpenedAt: t.now, Mode: t.s.Policies.Mode(p)}
	t.s.Incidents[in.ID], target.Open, target.ReopenAt = in, in.ID, time.Time{}
	outer := t.in
	t.in = in
	t.enter(Opened, t.now.Add(p.DecideDeadline))
	t.say(string(Opened), "%s on %s", a.Name, target.Key.Target)
	for _, e := range t.s.episodes(target.Key) { // those that fire already are evidence from the start
		if e.Firing {
			t.evidence(e.Alert)
		}
	}
	t.do(Command{Kind: CmdObserve, Deadline: in.Deadline})
	t.in = outer
}

// evidence adds an alert to the incident, newest state of each fingerprint.
func (t *turn) evidence(a AlertEvent) {
	i := slices.IndexFunc(t.in.Alerts, func(b AlertEvent) bool { return b.Fingerprint == a.Fingerprint })
	switch {
	case i >= 0:
		t.in.Alerts[i] = a
	case len(t.in.Alerts) < maxEvidence:
		t.in.Alerts = append(t.in.Alerts, a)
	}
}

// episodes lists the episodes of a key, in the order of their fingerprints.
func (s *State) episodes(k Key) []*Episode {
	var es []*Episode
	for _, fp := range slices.Sorted(maps.Keys(s.byTarget[k.Target])) {
		es = append(es, s.Episodes[fp])
	}
	return es
}

// index makes an alert's fingerprint known under its target.
func (s *State) index(a AlertEvent) {
	if a.Target.IsZero() || a.TargetError != "" {
		return
	}
	if s.byTarget[a.Target] == nil {
		s.byTarget[a.Target] = map[string]bool{}
	}
	s.byTarget[a.Target][a.Fingerprint] = true
}

// unindex is the inverse of index.
func (s *State) unindex(a AlertEvent) {
	if fps := s.byTarget[a.Target]; fps != nil {
		delete(fps, a.Fingerprint)
		if len(fps) == 0 {
			delete(s.byTarget, a.Target)
		}
	}
}

// firing says whether any alert of the key fires.
func (s *State) firing(k Key) bool {
	return slices.ContainsFunc(s.episodes(k), func(e *Episode) bool { return e.Firing })
}

// acted says whether any firing episode of the key was acted on before. As long as one is, the target is left alone,
// whatever else begins to fire: another fingerprint is often another name for the same thing (a twin Prometheus).
func (s *State) acted(k Key) bool {
	return slices.ContainsFunc(s.episodes(k), func(e *Episode) bool { return e.Firing && e.Acted })
}

func (t *turn) markActed(k Key) {
	for _, e := range t.s.episodes(k) {
		if e.Firing {
			e.Acted = true
		}
	}
}
