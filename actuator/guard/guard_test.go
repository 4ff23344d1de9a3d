// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) // a Monday

// good is an input that nothing objects to. Each case spoils it in one way.
func good() Input {
	p := policy.Default()
	p.Name, p.Mode = "p", policy.Act
	r := plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix("10.3.7.2/32"), Kind: plan.Pin}
	return Input{
		Policy: p, Mode: policy.Act, Explains: true,
		Plan: &plan.Plan{Steps: []plan.Step{{Route: r}}, Forecast: plan.Forecast{
			Regime: "max-min", Gain: 0.3, PathsLeft: 1, BlackoutBoundS: 0.5, Jobs: []plan.JobForecast{{JobID: "a"}},
		}},
		Facts:  Facts{Wall: now, StopRead: true, LeaseHeld: true, LeaseEpoch: 7, ClockSane: true, DriverAsked: true, DataRead: true, DataAge: 1},
		Ledger: Ledger{Readable: true, Firing: true, FiringTargets: 1, Epoch: 7, Now: now},
	}
}

// cases name the check that must object, and what it must say. They are the reason why each check cannot be removed or
// weakened: TestMutants takes each check away, and turns its boundaries, and wants one of these to fail.
var cases = []struct {
	name, check string
	want        Decision
	spoil       func(*Input)
}{
	{"nobody looked for the stop file", "stop switch", Deny, func(in *Input) { in.Facts.StopRead = false }},
	{"stop file unreadable", "stop switch", Deny, func(in *Input) { in.Facts.StopError = "permission denied" }},
	{"stop file", "stop switch", Deny, func(in *Input) { in.Facts.StopPresent = true }},
	{"stopped by a human", "stop switch", Deny, func(in *Input) { in.Ledger.Stopped = true }},
	{"ledger damaged", "ledger", Deny, func(in *Input) { in.Ledger.Readable = false }},
	{"no lease", "lease", Deny, func(in *Input) { in.Facts.LeaseHeld = false }},
	{"lease error", "lease", Deny, func(in *Input) { in.Facts.LeaseError = "ran out" }},
	{"older epoch", "lease", Deny, func(in *Input) { in.Facts.LeaseEpoch = 6 }},
	{"no epoch at all", "lease", Deny, func(in *Input) { in.Facts.LeaseEpoch, in.Ledger.Epoch = 0, 0 }},
	{"clocks not compared", "clock", Deny, func(in *Input) { in.Facts.ClockSane = false }},
	{"clocks apart", "clock", Deny, func(in *Input) { in.Facts.ClockError = "apart" }},
	{"clock went back", "clock", Deny, func(in *Input) { in.Facts.Wall = now.Add(-2*time.Second - time.Millisecond) }},
	{"clock a little back", "", Allow, func(in *Input) { in.Facts.Wall = now.Add(-2 * time.Second) }},
	{"watch", "mode", Deny, func(in *Input) { in.Mode = policy.Watch }},
	{"advise", "mode", Ask, func(in *Input) { in.Mode = policy.Advise }},
	{"advise, approved", "", Allow, func(in *Input) { in.Mode, in.Approved = policy.Advise, true }},
	{"watch, approved", "mode", Deny, func(in *Input) { in.Mode, in.Approved = policy.Watch, true }},
	{"no mode", "mode", Deny, func(in *Input) { in.Mode = "" }},
	{"outside of the windows", "window", Deny, func(in *Input) {
		in.Policy.Windows = []policy.Window{{Days: []string{"mon"}, From: "10:00", To: "12:00"}}
	}},
	{"inside a window", "", Allow, func(in *Input) {
		in.Policy.Windows = []policy.Window{{Days: []string{"mon"}, From: "12:00", To: "13:00"}}
	}},
	{"acted on before", "episode", Deny, func(in *Input) { in.Ledger.Acted = true }},
	{"locked", "target lock", Deny, func(in *Input) { in.Ledger.LockedBy = "inc-x-1" }},
	{"cooldown", "cooldown", Deny, func(in *Input) { in.Ledger.CooldownUntil = now.Add(time.Nanosecond) }},
	{"cooldown over", "", Allow, func(in *Input) { in.Ledger.CooldownUntil = now }},
	{"concurrency", "concurrency", Deny, func(in *Input) { in.Ledger.Concurrent = in.Policy.Budgets.MaxConcurrent }},
	{"concurrency left", "", Allow, func(in *Input) { in.Ledger.Concurrent = in.Policy.Budgets.MaxConcurrent - 1 }},
	{"no concurrency at all", "concurrency", Deny, func(in *Input) { in.Policy.Budgets.MaxConcurrent = 0 }},
	{"rate", "rate", Deny, func(in *Input) { in.Ledger.LastHour = in.Policy.Budgets.PerHour }},
	{"rate left", "", Allow, func(in *Input) { in.Ledger.LastHour = in.Policy.Budgets.PerHour - 1 }},
	{"storm", "storm", Deny, func(in *Input) { in.Ledger.FiringTargets = in.Policy.Budgets.Storm + 1 }},
	{"almost a storm", "", Allow, func(in *Input) { in.Ledger.FiringTargets = in.Policy.Budgets.Storm }},
	{"the alert is gone", "still firing", Deny, func(in *Input) { in.Ledger.Firing = false }},
	{"no data", "data", Deny, func(in *Input) { in.Facts.DataRead = false }},
	{"incomplete data", "data", Deny, func(in *Input) { in.Facts.DataProblems = []string{"switch s2: no answer"} }},
	{"stale data", "data", Deny, func(in *Input) { in.Facts.DataAge = in.Policy.MaxDataAge.Seconds() + 0.001 }},
	{"data just in time", "", Allow, func(in *Input) { in.Facts.DataAge = in.Policy.MaxDataAge.Seconds() }},
	{"no age", "data", Deny, func(in *Input) { in.Facts.DataAge = math.NaN() }},
	{"age below zero", "data", Deny, func(in *Input) { in.Facts.DataAge = -1 }},
	{"unexplained", "explains the present", Deny, func(in *Input) { in.Explains = false }},
	{"no plan", "forecast", Deny, func(in *Input) { in.Plan = nil }},
	{"empty plan", "forecast", Deny, func(in *Input) { in.Plan.Steps = nil }},
	{"not simulated", "forecast", Deny, func(in *Input) { in.Plan.Forecast.Regime = "" }},
	{"no job in the forecast", "forecast", Deny, func(in *Input) { in.Plan.Forecast.Jobs = nil }},
	{"no gain", "forecast", Deny, func(in *Input) { in.Plan.Forecast.Gain = 0 }},
	{"gain unknown", "forecast", Deny, func(in *Input) { in.Plan.Forecast.Gain = math.NaN() }},
	{"driver cannot say it", "driver", Deny, func(in *Input) { in.Facts.CannotSay = []string{"weights"} }},
	{"driver not asked", "driver", Deny, func(in *Input) { in.Facts.DriverAsked = false }},
	{"too many routes", "blast radius", Deny, func(in *Input) { in.Plan.Steps = slices.Repeat(in.Plan.Steps, in.Policy.Budgets.MaxRoutes+1) }},
	{"as many routes as allowed", "", Allow, func(in *Input) { in.Plan.Steps = slices.Repeat(in.Plan.Steps, in.Policy.Budgets.MaxRoutes) }},
	{"too many switches", "blast radius", Deny, func(in *Input) {
		for _, s := range []string{"l2", "l3"} {
			step := in.Plan.Steps[0]
			step.Route.Switch = s
			in.Plan.Steps = append(in.Plan.Steps, step)
		}
	}},
	{"no path left", "paths left", Deny, func(in *Input) { in.Plan.Forecast.PathsLeft = 0 }},
	{"more paths wanted", "paths left", Deny, func(in *Input) { in.Policy.Budgets.MinPathsLeft = 2 }},
	{"blackout at the goal", "blackout", Ask, func(in *Input) { in.Plan.Forecast.BlackoutBoundS = 1 }},
	{"blackout below the goal", "", Allow, func(in *Input) { in.Plan.Forecast.BlackoutBoundS = 0.999 }},
	{"blackout above the goal, approved", "", Allow, func(in *Input) { in.Plan.Forecast.BlackoutBoundS, in.Approved = 2.999, true }},
	{"blackout at the hard stop, approved", "", Allow, func(in *Input) { in.Plan.Forecast.BlackoutBoundS, in.Approved = 3, true }},
	{"blackout over the hard stop, approved", "blackout", Deny, func(in *Input) { in.Plan.Forecast.BlackoutBoundS, in.Approved = 3.001, true }},
	{"blackout not bounded", "blackout", Deny, func(in *Input) { in.Plan.Forecast.BlackoutBoundS = 0 }},
	{"blackout unknown", "blackout", Deny, func(in *Input) { in.Plan.Forecast.BlackoutBoundS = math.NaN() }},
}

// fails says whether a case goes otherwise than it should under the given checks.
func fails(i int, checks []check) string {
	c := cases[i]
	in := good()
	c.spoil(&in)
	v := judge(in, checks)
	if v.Decision != c.want {
		return string(v.Decision) + ": " + v.Reason
	}
	if c.check != "" && !strings.Contains(v.Reason, c.check+": ") {
		return "the reason does not name the check: " + v.Reason
	}
	return ""
}

func TestJudge(t *testing.T) {
	if v := Judge(good()); v.Decision != Allow || v.Would != Allow || len(v.Checks) != len(checks) {
		t.Fatalf("%s: %s", v.Decision, v.Reason)
	}
	for i, c := range cases {
		if why := fails(i, checks); why != "" {
			t.Errorf("%s: want %s by %q, got %s", c.name, c.want, c.check, why)
		}
	}
}

func TestNothingKnownIsDenied(t *testing.T) {
	v := Judge(Input{})
	if v.Decision != Deny || v.Would != Deny {
		t.Errorf("%s %s", v.Decision, v.Would)
	}
	for _, c := range v.Checks {
		// These alone may be content with nothing: there is no other incident, no cooldown and no window to object to.
		content := slices.Contains([]string{"window", "episode", "target lock", "cooldown", "storm"}, c.Name)
		if (c.Decision == Allow) != content {
			t.Errorf("%s: %s: %s", c.Name, c.Decision, c.Reason)
		}
	}
	if v := judge(good(), nil); v.Decision != Deny {
		t.Error("no checks at all allow")
	}
}

// In mode watch the verdict says what it would be in mode act.
func TestWould(t *testing.T) {
	in := good()
	in.Mode = policy.Watch
	if v := Judge(in); v.Decision != Deny || v.Would != Allow {
		t.Errorf("%s, would %s", v.Decision, v.Would)
	}
	in.Facts.DataAge = 1e6
	if v := Judge(in); v.Would != Deny {
		t.Errorf("would %s", v.Would)
	}
	in = good()
	in.Mode, in.Plan.Forecast.BlackoutBoundS = policy.Watch, 2
	if v := Judge(in); v.Would != Ask {
		t.Errorf("would %s", v.Would)
	}
}

// An objection is never answered by an approval, and an unknown decision is an objection.
func TestUnknownDecisionDenies(t *testing.T) {
	in := good()
	in.Approved = true
	odd := append(slices.Clone(checks), check{"odd", func(Input) (Decision, string) { return "perhaps", "?" }})
	if v := judge(in, odd); v.Decision == Allow || v.Decision == Ask {
		t.Error(v.Decision)
	}
}

// Each check that is removed, or that asks where it should deny, breaks a case. (Boundaries that are turned by one are
// in the cases as pairs.)
func TestMutants(t *testing.T) {
	killed := func(mutant []check) bool {
		for i := range cases {
			if fails(i, mutant) != "" {
				return true
			}
		}
		return false
	}
	if killed(checks) {
		t.Fatal("the checks as they are fail already")
	}
	for i, c := range checks {
		removed := slices.Delete(slices.Clone(checks), i, i+1)
		if !killed(removed) {
			t.Errorf("%s: removed, and no case notices", c.name)
		}
		for name, weaken := range map[string]func(Decision) Decision{
			"always allows":          func(Decision) Decision { return Allow },
			"asks instead of denies": func(d Decision) Decision { return map[Decision]Decision{Allow: Allow, Ask: Ask, Deny: Ask}[d] },
		} {
			weak := slices.Clone(checks)
			weak[i].ask = func(in Input) (Decision, string) {
				d, why := c.ask(in)
				return weaken(d), why
			}
			if !killed(weak) {
				t.Errorf("%s: %s, and no case notices", c.name, name)
			}
		}
		// Each single objection of a check is needed, too: a mutant that is blind to one case of its own is noticed by it.
		for k, cs := range cases {
			if cs.check != c.name {
				continue
			}
			blind := slices.Clone(checks)
			spoiled := good()
			cs.spoil(&spoiled)
			_, reason := c.ask(spoiled)
			blind[i].ask = func(in Input) (Decision, string) {
				if d, why := c.ask(in); why != reason {
					return d, why
				}
				return Allow, "blind"
			}
			if fails(k, blind) == "" && cs.name != "empty plan" && cs.name != "no plan" {
				t.Errorf("%s: blind to %q, and the case does not notice", c.name, cs.name)
			}
		}
	}
}
