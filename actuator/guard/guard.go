// SPDX-License-Identifier: Apache-2.0

// Package guard judges a plan before anything is written: allow, ask a human, or deny, with every check named and
// reasoned. It fails closed: an error, stale data or a missing answer denies. It is pure, so that a replay of the
// journal judges again and must come to the same verdict; the facts of the world come in as values.
package guard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
)

// Decision is the answer of a check and of a verdict.
type Decision string

// The decisions, weakest objection first.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

func (d Decision) rank() int {
	switch d {
	case Allow:
		return 0
	case Ask:
		return 1
	}
	return 2 // deny, and whatever else: an unknown decision is no permission
}

// Facts are what the world says at the moment of judging. Every field whose zero value would be a permission is
// paired with one that must be set: a fact that nobody gathered denies.
type Facts struct {
	Wall         time.Time `json:"wall"`                    // the local clock, unclamped
	StopRead     bool      `json:"stop_read"`               // the stop file was looked for and the answer was clear
	StopPresent  bool      `json:"stop_present,omitempty"`  // it is there
	StopError    string    `json:"stop_error,omitempty"`    // why the answer is not clear
	LeaseHeld    bool      `json:"lease_held"`              // by us, and not expired
	LeaseError   string    `json:"lease_error,omitempty"`   // why not
	LeaseEpoch   uint64    `json:"lease_epoch"`             // under which the facts were gathered
	ClockSane    bool      `json:"clock_sane"`              // wall clock and monotonic clock agree
	ClockError   string    `json:"clock_error,omitempty"`   // how they do not
	DriverAsked  bool      `json:"driver_asked"`            // the driver was asked whether it can say every route
	CannotSay    []string  `json:"cannot_say,omitempty"`    // routes that it cannot say, with its reasons
	DataRead     bool      `json:"data_read"`               // there is a snapshot, and the age of its data is known
	DataAge      float64   `json:"data_age_seconds"`        // of the oldest measurement that the plan rests on, as Prometheus gives it, plus the time since
	DataProblems []string  `json:"data_problems,omitempty"` // what the snapshot lacks
}

// Ledger is the part of the ledger that bears on one incident. Flow fills it from its State.
type Ledger struct {
	Readable      bool      // the ledger was replayed without damage
	Problem       string    // else why not
	Stopped       bool      // a human said stop through an interface
	StoppedBy     string    // who
	LockedBy      string    // another incident that holds the target, or one of the plan's routes
	CooldownUntil time.Time // of the target
	Concurrent    int       // reservations of the pool, this incident's own left out
	LastHour      int       // reservations of the pool in the last 60 minutes, this incident's own left out
	Acted         bool      // the episode of a firing alert was acted on before
	Firing        bool      // at least one alert of the incident fires, as far as the episode table knows
	FiringTargets int       // targets with a firing alert
	Epoch         uint64    // of the journal
	Now           time.Time // clamped: never goes back
}

// Input is everything that a verdict rests on.
type Input struct {
	Policy   policy.Policy
	Mode     policy.Mode // that binds now: policy, pool and downgrades
	Plan     *plan.Plan  // nil = nothing was chosen
	Explains bool        // the traffic model reproduces the present load (contract 14)
	Approved bool        // a human approved exactly this plan
	Facts    Facts
	Ledger   Ledger
}

// Check is the result of one named check.
type Check struct {
	Name     string   `json:"name"`
	Decision Decision `json:"decision"`
	Reason   string   `json:"reason"`
}

// Verdict is the answer. Would leaves mode out of account: what the answer would be in mode act. Watch mode reports it.
type Verdict struct {
	Decision Decision `json:"decision"`
	Would    Decision `json:"would"`
	Reason   string   `json:"reason"` // of the strongest objections, or of the permission
	Checks   []Check  `json:"checks"`
}

// OnlyObjects says that nothing but the named checks denies.
func (v Verdict) OnlyObjects(names ...string) bool {
	return !slices.ContainsFunc(v.Checks, func(c Check) bool { return c.Decision == Deny && c.Name != "mode" && !slices.Contains(names, c.Name) })
}

// check is one question. It answers with a decision and the reason for it.
type check struct {
	name string
	ask  func(Input) (Decision, string)
}

// checks are asked in this order and all of them are always asked: a refusal should name everything that stands
// against it. The order is the order of the report.
var checks = []check{
	{"stop switch", stopSwitch},
	{"ledger", ledger},
	{"lease", lease},
	{"clock", clockSane},
	{"mode", mode},
	{"window", window},
	{"episode", episode},
	{"target lock", targetLock},
	{"cooldown", cooldown},
	{"concurrency", concurrency},
	{"rate", rate},
	{"storm", storm},
	{"still firing", stillFiring},
	{"data", data},
	{"explains the present", explains},
	{"forecast", forecast},
	{"driver", driver},
	{"blast radius", blastRadius},
	{"paths left", pathsLeft},
	{"blackout", blackout},
}

// Names returns the names of all checks, in order.
func Names() []string {
	names := make([]string, len(checks))
	for i, c := range checks {
		names[i] = c.name
	}
	return names
}

// Judge asks every check and returns the strongest objection.
func Judge(in Input) Verdict { return judge(in, checks) }

func judge(in Input, checks []check) Verdict {
	v := Verdict{Decision: Allow, Would: Allow}
	for _, c := range checks {
		d, why := c.ask(in)
		v.Checks = append(v.Checks, Check{c.name, d, why})
		if d.rank() > v.Decision.rank() {
			v.Decision = d
		}
		if c.name != "mode" && d.rank() > v.Would.rank() {
			v.Would = d
		}
	}
	if len(v.Checks) == 0 { // nothing was asked: that is no permission
		v.Decision, v.Would = Deny, Deny
	}
	if in.Approved && v.Decision == Ask { // approval answers questions, never objections
		v.Decision = Allow
	}
	var reasons []string
	for _, c := range v.Checks {
		if c.Decision != Allow && c.Decision.rank() >= v.Decision.rank() {
			reasons = append(reasons, c.Name+": "+c.Reason)
		}
	}
	switch {
	case v.Decision == Allow && in.Approved:
		v.Reason = fmt.Sprintf("approved, and none of %d checks objects", len(v.Checks))
	case v.Decision == Allow:
		v.Reason = fmt.Sprintf("none of %d checks objects", len(v.Checks))
	default:
		v.Reason = strings.Join(reasons, "; ")
	}
	return v
}
