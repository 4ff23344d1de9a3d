// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/actuator/guard"
)

// rateWindow is the hour of "actions per hour": it slides, so there is no burst after idle time.
const rateWindow = time.Hour

// ledger is what the ledger says about the incident.
func (t *turn) ledger() guard.Ledger {
	in, s := t.in, t.s
	l := guard.Ledger{
		Readable: s.Problem == "", Problem: s.Problem, Stopped: s.Stopped, StoppedBy: s.StoppedBy,
		Acted: s.acted(in.Key), Firing: s.firing(in.Key), Epoch: s.Epoch, Now: t.now,
	}
	if target := s.Targets[in.Key.String()]; target == nil {
		l.Readable, l.Problem = false, "the target of the incident is not in it"
	} else {
		l.CooldownUntil = target.CooldownUntil
		if target.Open != in.ID {
			l.LockedBy = string(target.Open)
		}
	}
	for id, r := range s.Reservations {
		if r.Pool == in.Policy.Pool && id != in.ID {
			l.Concurrent++
		}
	}
	for _, a := range s.Attempts {
		if a.Pool == in.Policy.Pool && a.Incident != in.ID && t.now.Sub(a.At) < rateWindow {
			l.LastHour++
		}
	}
	if in.Proposal != nil && in.Proposal.Chosen != nil {
		for _, step := range in.Proposal.Chosen.Steps {
			if d := s.Desired[step.Route.Key().String()]; d != nil && d.Incident != in.ID {
				l.LockedBy = string(d.Incident) + " (" + step.Route.Key().String() + ")"
			}
		}
	}
	targets := map[string]bool{}
	for _, e := range s.Episodes {
		if e.Firing && !e.Alert.Target.IsZero() {
			targets[e.Alert.Target.String()] = true
		}
	}
	l.FiringTargets = len(targets)
	return l
}

// reserve takes a slot of the budgets. It is called by the rule that allows, so the same record decides and reserves.
func (t *turn) reserve() {
	in := t.in
	t.s.Reservations[in.ID] = &Reservation{in.Policy.Pool, t.now}
	t.s.Attempts = slices.DeleteFunc(t.s.Attempts, func(a Attempt) bool { return t.now.Sub(a.At) >= rateWindow || a.Incident == in.ID })
	t.s.Attempts = append(t.s.Attempts, Attempt{in.ID, in.Policy.Pool, t.now})
}

// cancelAttempt gives back the whole reservation of an incident that wrote nothing: blocked work keeps no slot.
func (t *turn) cancelAttempt() {
	if t.in.written() {
		return
	}
	delete(t.s.Reservations, t.in.ID)
	t.s.Attempts = slices.DeleteFunc(t.s.Attempts, func(a Attempt) bool { return a.Incident == t.in.ID })
}
