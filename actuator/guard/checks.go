// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/policy"
)

// Blackout bounds of one step against the NCCL timeout (field rule 8): the goal, above which a human is asked, and the
// hard stop, above which nobody is.
const (
	blackoutGoalSeconds = 1.0
	blackoutStopSeconds = 3.0
)

// maxClockBack is how far the local clock may be behind the newest journalled time: journalled time never goes back, so
// a larger step means that deadlines and cooldowns are no longer what they say.
const maxClockBack = 2 * time.Second

func stopSwitch(in Input) (Decision, string) {
	switch f := in.Facts; {
	case f.StopError != "":
		return Deny, "the stop file cannot be read: " + f.StopError
	case !f.StopRead:
		return Deny, "nobody looked for the stop file"
	case f.StopPresent:
		return Deny, "the stop file is there"
	case in.Ledger.Stopped:
		return Deny, "stopped by " + in.Ledger.StoppedBy
	}
	return Allow, "no stop"
}

func ledger(in Input) (Decision, string) {
	if !in.Ledger.Readable {
		return Deny, "the ledger cannot be trusted: " + in.Ledger.Problem
	}
	return Allow, "replayed without damage"
}

func lease(in Input) (Decision, string) {
	switch f := in.Facts; {
	case f.LeaseError != "":
		return Deny, f.LeaseError
	case !f.LeaseHeld:
		return Deny, "no lease"
	case f.LeaseEpoch == 0 || f.LeaseEpoch != in.Ledger.Epoch:
		return Deny, fmt.Sprintf("facts of epoch %d, the journal is at %d", f.LeaseEpoch, in.Ledger.Epoch)
	}
	return Allow, fmt.Sprintf("held, epoch %d", in.Ledger.Epoch)
}

func clockSane(in Input) (Decision, string) {
	switch f := in.Facts; {
	case f.ClockError != "":
		return Deny, f.ClockError
	case !f.ClockSane:
		return Deny, "nobody compared the clocks"
	case in.Ledger.Now.Sub(f.Wall) > maxClockBack:
		return Deny, fmt.Sprintf("the clock is %v behind the newest record", in.Ledger.Now.Sub(f.Wall).Round(time.Millisecond))
	}
	return Allow, "wall and monotonic clock agree"
}

func mode(in Input) (Decision, string) {
	switch in.Mode {
	case policy.Act:
		return Allow, "act"
	case policy.Advise:
		return Ask, "mode advise: a human decides"
	case policy.Watch:
		return Deny, "mode watch: nothing is written"
	}
	return Deny, fmt.Sprintf("mode %q is not a mode", in.Mode)
}

func window(in Input) (Decision, string) {
	if !in.Policy.Open(in.Ledger.Now) {
		return Deny, "outside of the maintenance windows"
	}
	if len(in.Policy.Windows) == 0 {
		return Allow, "the policy has no windows"
	}
	return Allow, "inside a maintenance window"
}

func episode(in Input) (Decision, string) {
	if in.Ledger.Acted {
		return Deny, "this episode was acted on before"
	}
	return Allow, "not acted on before"
}

func targetLock(in Input) (Decision, string) {
	if in.Ledger.LockedBy != "" {
		return Deny, "held by " + in.Ledger.LockedBy
	}
	return Allow, "free"
}

func cooldown(in Input) (Decision, string) {
	if in.Ledger.Now.Before(in.Ledger.CooldownUntil) {
		return Deny, "until " + in.Ledger.CooldownUntil.UTC().Format(time.RFC3339)
	}
	return Allow, "none"
}

func concurrency(in Input) (Decision, string) {
	return below(in.Ledger.Concurrent, in.Policy.Budgets.MaxConcurrent, "actions at once in pool "+in.Policy.Pool)
}

func rate(in Input) (Decision, string) {
	return below(in.Ledger.LastHour, in.Policy.Budgets.PerHour, "actions in the last hour in pool "+in.Policy.Pool)
}

func below(n, most int, what string) (Decision, string) {
	if n >= most {
		return Deny, fmt.Sprintf("%d of %d %s", n, most, what)
	}
	return Allow, fmt.Sprintf("%d of %d %s", n, most, what)
}

func storm(in Input) (Decision, string) {
	if n, most := in.Ledger.FiringTargets, in.Policy.Budgets.Storm; n > most {
		return Deny, fmt.Sprintf("%d targets fire at once, more than %d: taken for a fault of monitoring", n, most)
	}
	return Allow, fmt.Sprintf("%d targets fire", in.Ledger.FiringTargets)
}

func stillFiring(in Input) (Decision, string) {
	if !in.Ledger.Firing {
		return Deny, "no alert of the incident fires any more"
	}
	return Allow, "yes"
}

func data(in Input) (Decision, string) {
	switch f := in.Facts; {
	case len(f.DataProblems) > 0:
		return Deny, "incomplete: " + strings.Join(f.DataProblems, ", ")
	case !f.DataRead:
		return Deny, "no snapshot, or its age is unknown"
	case math.IsNaN(f.DataAge) || f.DataAge < 0:
		return Deny, fmt.Sprintf("an age of %v s is not an age", f.DataAge)
	case f.DataAge > in.Policy.MaxDataAge.Seconds():
		return Deny, fmt.Sprintf("%.1f s old, at most %.1f s", f.DataAge, in.Policy.MaxDataAge.Seconds())
	}
	return Allow, fmt.Sprintf("complete, %.1f s old", in.Facts.DataAge)
}

func explains(in Input) (Decision, string) {
	if !in.Explains {
		return Deny, "the traffic model does not explain the present"
	}
	return Allow, "yes"
}

func forecast(in Input) (Decision, string) {
	switch p := in.Plan; {
	case p == nil || p.DoesNothing():
		return Deny, "no plan"
	case p.Forecast.Regime == "" || len(p.Forecast.Jobs) == 0 || math.IsNaN(p.Forecast.Gain):
		return Deny, "the plan was not simulated"
	case p.Forecast.Gain <= 0:
		return Deny, fmt.Sprintf("gain of %.1f %%: doing nothing is as good", 100*p.Forecast.Gain)
	}
	return Allow, fmt.Sprintf("gain of %.1f %% (%s)", 100*in.Plan.Forecast.Gain, in.Plan.Forecast.Regime)
}

func driver(in Input) (Decision, string) {
	switch f := in.Facts; {
	case len(f.CannotSay) > 0:
		return Deny, "cannot say " + strings.Join(f.CannotSay, "; ")
	case !f.DriverAsked:
		return Deny, "the driver was not asked"
	}
	return Allow, "can say every route"
}

func blastRadius(in Input) (Decision, string) {
	if in.Plan == nil {
		return Deny, "no plan"
	}
	switches := map[string]bool{}
	for _, s := range in.Plan.Steps {
		switches[s.Route.Switch] = true
	}
	b, n := in.Policy.Budgets, len(in.Plan.Steps)
	if len(switches) > b.MaxSwitches || n > b.MaxRoutes {
		return Deny, fmt.Sprintf("%d switches and %d routes, at most %d and %d", len(switches), n, b.MaxSwitches, b.MaxRoutes)
	}
	return Allow, fmt.Sprintf("%d of %d switches, %d of %d routes", len(switches), b.MaxSwitches, n, b.MaxRoutes)
}

func pathsLeft(in Input) (Decision, string) {
	if in.Plan == nil {
		return Deny, "no plan"
	}
	if n, k := in.Plan.Forecast.PathsLeft, in.Policy.Budgets.MinPathsLeft; n < k {
		return Deny, fmt.Sprintf("%d once the pin is dropped, want %d", n, k)
	}
	return Allow, fmt.Sprintf("%d once the pin is dropped", in.Plan.Forecast.PathsLeft)
}

func blackout(in Input) (Decision, string) {
	if in.Plan == nil {
		return Deny, "no plan"
	}
	switch b := in.Plan.Forecast.BlackoutBoundS; {
	case math.IsNaN(b) || b <= 0:
		return Deny, "the interruption is not bounded"
	case b > blackoutStopSeconds:
		return Deny, fmt.Sprintf("up to %.1f s, hard stop at %.1f s", b, blackoutStopSeconds)
	case b >= blackoutGoalSeconds:
		return Ask, fmt.Sprintf("up to %.1f s, goal below %.1f s", b, blackoutGoalSeconds)
	default:
		return Allow, fmt.Sprintf("at most %.2f s", b)
	}
}
