// SPDX-License-Identifier: Apache-2.0

// Package policy says what trainyard may do, for which alerts, and how much of it: the noun behind the policy file.
// It maps (alert name, Prometheus identity, fabric) to a goal and never reads an alert's own idea of an action. It
// decides nothing and knows no time.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// Goal is what an incident is for. Policies may only name goals that exist.
type Goal string

// RelieveLink moves traffic away from one directed link.
const RelieveLink Goal = "relieve-link"

// Mode says how far the machine may go by itself.
type Mode string

// The modes, weakest first. A policy that names none is in Watch.
const (
	Watch  Mode = "watch"  // say what would be done
	Advise Mode = "advise" // ask a human
	Act    Mode = "act"    // do it
)

// rank orders modes; an unknown mode ranks below watch, so that a typo can never act.
func (m Mode) rank() int { return slices.Index([]Mode{Watch, Advise, Act}, m) }

// Weaker returns the more careful of two modes.
func Weaker(a, b Mode) Mode {
	if a.rank() < b.rank() {
		return a
	}
	return b
}

// Any is the only spelling of "all" in a selector: an empty selector matches nothing.
const Any = "*"

// Match selects alerts. All three lists must match, and an empty list matches nothing.
type Match struct {
	Alerts   []string `json:"alerts" yaml:"alerts"`     // alert names
	Clusters []string `json:"clusters" yaml:"clusters"` // values of the label cluster: the identity of the Prometheus that fired
	Fabrics  []string `json:"fabrics" yaml:"fabrics"`   // values of the label fabric
}

func has(list []string, s string) bool {
	return slices.Contains(list, Any) || s != "" && slices.Contains(list, s)
}

// Matches says whether an alert falls under the selector. "*" is not allowed for alert names.
func (m Match) Matches(alert, cluster, fabric string) bool {
	return alert != "" && slices.Contains(m.Alerts, alert) && has(m.Clusters, cluster) && has(m.Fabrics, fabric)
}

// Budgets bound what may be done at once and in an hour. Zero forbids: there is no "unlimited".
type Budgets struct {
	MaxConcurrent int `json:"max_concurrent"` // incidents of the pool that hold a reservation at once
	PerHour       int `json:"per_hour"`       // reservations of the pool in any 60 minutes
	MaxSwitches   int `json:"max_switches"`   // switches that one plan may write to
	MaxRoutes     int `json:"max_routes"`     // routes of one plan
	MinPathsLeft  int `json:"min_paths_left"` // live paths of each moved prefix once the pin is dropped (field rule 6)
	Storm         int `json:"storm"`          // more firing targets than this at once is taken for a fault of monitoring
}

// Window is a weekly maintenance window, half open: [From, To) on each of Days, in UTC. A To at or before From ends on
// the next day.
type Window struct {
	Days []string `json:"days" yaml:"days"` // mon tue wed thu fri sat sun
	From string   `json:"from" yaml:"from"` // "22:00"
	To   string   `json:"to" yaml:"to"`
}

// Policy is one line of the file: what to do for which alerts, within which bounds.
type Policy struct {
	Name    string  `json:"name"`
	Match   Match   `json:"match"`
	Goal    Goal    `json:"goal"`
	Mode    Mode    `json:"mode"`
	Pool    string  `json:"pool"`
	Budgets Budgets `json:"budgets"`

	Cooldown        time.Duration `json:"cooldown"`         // of a target after it was acted on
	ApprovalTimeout time.Duration `json:"approval_timeout"` // an unanswered question expires
	Hold            time.Duration `json:"hold"`             // how long the alert must be gone before routes are released
	HoldMax         time.Duration `json:"hold_max"`         // routes are released after this long in any case
	DecideDeadline  time.Duration `json:"decide_deadline"`  // from opening to the verdict, questions to humans not counted
	StepDeadline    time.Duration `json:"step_deadline"`    // of one write, retries counted
	Settle          time.Duration `json:"settle"`           // after the last step, before the first measurement counts
	VerifyDeadline  time.Duration `json:"verify_deadline"`  // after the last step; not verified by then = inconclusive = undone
	MaxDataAge      time.Duration `json:"max_data_age"`     // of the measurements a decision rests on, as Prometheus gives it
	Windows         []Window      `json:"windows,omitempty"`
}

// Set is a whole policy file after defaults: policies in order and the ceiling of each pool.
type Set struct {
	Policies []Policy        `json:"policies"`
	Pools    map[string]Mode `json:"pools,omitempty"`
}

// Find returns the first policy that an alert falls under.
func (s Set) Find(alert, cluster, fabric string) (Policy, bool) {
	for _, p := range s.Policies {
		if p.Match.Matches(alert, cluster, fabric) {
			return p, true
		}
	}
	return Policy{}, false
}

// Mode is the mode that binds now for a policy that an incident was judged under: the weakest of the policy's own,
// of the policy of that name in this set, and of its pool's ceiling. A policy that is gone from the set is in Watch.
func (s Set) Mode(p Policy) Mode {
	i := slices.IndexFunc(s.Policies, func(q Policy) bool { return q.Name == p.Name })
	if i < 0 {
		return Watch
	}
	m := Weaker(p.Mode, s.Policies[i].Mode)
	for _, pool := range []string{p.Pool, s.Policies[i].Pool} {
		if ceiling, ok := s.Pools[pool]; ok {
			m = Weaker(m, ceiling)
		}
	}
	return m
}

// Hash names the content of a policy: an incident finishes under the hash it was judged with (contract 5).
func (p Policy) Hash() string { return hash(p) }

// Hash names the content of the whole set.
func (s Set) Hash() string { return hash(s) }

func hash(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // plain structs of strings and numbers: cannot happen
		panic("marshal policy: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
