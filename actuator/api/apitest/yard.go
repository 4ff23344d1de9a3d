// SPDX-License-Identifier: Apache-2.0

// Package apitest is a yard without a loop for tests of the API and of its clients: a few incidents written by hand,
// one for each way in which a story can go, and a record of what was asked of it.
package apitest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Start is when the first of the stories begins.
var Start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// Yard holds incidents and remembers what was asked of it.
type Yard struct {
	mu      sync.Mutex
	views   []flow.View
	said    []string
	stopped string

	NotReady error // answer of Ready
	Broken   error // answer of everything that would change something
}

// New is a yard with the given incidents, oldest first.
func New(views ...flow.View) *Yard { return &Yard{views: views} }

// Said lists what was asked of the yard, in words.
func (y *Yard) Said() []string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.Clone(y.said)
}

func (y *Yard) say(format string, args ...any) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.Broken != nil {
		return y.Broken
	}
	y.said = append(y.said, fmt.Sprintf(format, args...))
	return nil
}

// Incidents gives all of them.
func (y *Yard) Incidents() []flow.View { return slices.Clone(y.views) }

// Incident finds one.
func (y *Yard) Incident(id flow.ID) (flow.View, bool) {
	i := slices.IndexFunc(y.views, func(v flow.View) bool { return v.ID == id })
	if i < 0 {
		return flow.View{}, false
	}
	return y.views[i], true
}

// Answer remembers an approval or a denial.
func (y *Yard) Answer(_ context.Context, id flow.ID, approve bool, actor string) error {
	word := "denies"
	if approve {
		word = "approves"
	}
	return y.say("%s %s %s", actor, word, id)
}

// Release remembers that an incident was let go.
func (y *Yard) Release(_ context.Context, id flow.ID, actor string) error {
	return y.say("%s releases %s", actor, id)
}

// Stop remembers a stop.
func (y *Yard) Stop(_ context.Context, withdraw bool, actor string) error {
	if err := y.say("%s stops, withdraw %v", actor, withdraw); err != nil {
		return err
	}
	y.stopped = actor
	return nil
}

// Resume remembers the end of a stop.
func (y *Yard) Resume(_ context.Context, actor string) error {
	y.stopped = ""
	return y.say("%s resumes", actor)
}

// Stopped says who stopped.
func (y *Yard) Stopped() (string, bool) { return y.stopped, y.stopped != "" }

// Ready is NotReady.
func (y *Yard) Ready() error { return y.NotReady }

// ErrJournal is a reason for Broken.
var ErrJournal = errors.New("append to journal: no space left on device")

func port(s string) ident.Port {
	p, err := ident.ParsePort(s)
	if err != nil {
		panic(err)
	}
	return p
}

func at(seconds float64) time.Time { return Start.Add(time.Duration(seconds * float64(time.Second))) }
func ptr(t time.Time) *time.Time   { return &t }

var (
	hot  = port("lab/l1:sp1")
	pin  = plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix("10.3.7.2/32"), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: netip.MustParseAddr("10.0.32.0")}}}
	stay = plan.Plan{
		Target: hot, Summary: "do nothing",
		Forecast: plan.Forecast{
			Regime: "max-min fair shares, rings in lock-step, 1 placement explains the present", Assignments: 1,
			Links: []plan.LinkForecast{{Link: hot, Now: 0.92, Model: 0.91, After: plan.Band{P10: 0.92, P50: 0.92, P90: 0.92}}},
			Jobs:  []plan.JobForecast{{JobID: "job-a", StepSeconds: 1.09, After: plan.Band{P10: 1.09, P50: 1.09, P90: 1.09}, BaselineStep: 0.57}},
		},
	}
	move = plan.Plan{
		Target: hot, Summary: "pin 10.3.7.2/32 at l1 through s2",
		Steps: []plan.Step{{Route: pin, Why: "job-b n4 -> n7 leaves lab/l1:sp1"}},
		Forecast: plan.Forecast{
			Regime: stay.Forecast.Regime, Assignments: 1, Gain: 0.48, PathsLeft: 2, BlackoutBoundS: 0.3,
			Links: []plan.LinkForecast{
				{Link: hot, Now: 0.92, Model: 0.91, After: plan.Band{P10: 0.88, P50: 0.88, P90: 0.88}},
				{Link: port("lab/l1:sp2"), Now: 0, Model: 0, After: plan.Band{P10: 0.87, P50: 0.87, P90: 0.87}},
			},
			Jobs: []plan.JobForecast{{JobID: "job-a", StepSeconds: 1.09, After: plan.Band{P10: 0.55, P50: 0.57, P90: 0.6}, BaselineStep: 0.57}},
		},
	}
)

func congested(seconds float64) flow.AlertEvent {
	return flow.AlertEvent{
		Fingerprint: "8d4f3c2b1a09e7f6", StartsAt: at(seconds), Firing: true, Name: "FabricLinkCongested", Cluster: "lab", Target: hot,
		Summary: "lab/l1:sp1 is congested and job-a suffers", Source: "webhook",
	}
}

func base(n int, seconds float64, state flow.IncidentState) flow.View {
	return flow.View{
		ID: flow.ID(fmt.Sprintf("inc-mzxw6ytb-%d", n)), Goal: policy.RelieveLink, Target: hot.String(), State: state, Over: state.Terminal(),
		Policy: "lab links", PolicyHash: "9f86d081884c7d65", OpenedAt: at(seconds), ObservedAt: ptr(at(seconds + 0.2)),
		Alerts: []flow.AlertEvent{congested(seconds)}, MatrixSource: "ring from ranks", Explains: true,
		Timeline: []flow.Entry{{At: at(seconds), What: "opened", Why: "FabricLinkCongested"}, {At: at(seconds + 0.2), What: "observed", Why: "at 2026-11-30T12:00:00.2Z"}},
	}
}

func collision() *fault.Diagnosis {
	return &fault.Diagnosis{
		Cause: fault.HashCollision, Culprit: hot.String(), Reason: "two rings share lab/l1:sp1 while lab/l1:sp2 idles",
		Evidence: []fault.Evidence{
			{What: "use of lab/l1:sp1", Value: 0.916, Limit: 0.8}, {What: "over the mean of its peers", Value: 12, Limit: 1.3, Unit: "x"},
			{What: "step time over baseline", Value: 1.91, Limit: 1.15, Unit: "x"},
		},
	}
}

func verdict(d, would guard.Decision, mode string) *guard.Verdict {
	return &guard.Verdict{Decision: d, Would: would, Reason: mode, Checks: []guard.Check{
		{Name: "stop switch", Decision: guard.Allow, Reason: "no stop"}, {Name: "mode", Decision: d, Reason: mode},
		{Name: "data", Decision: guard.Allow, Reason: "complete, 0.5 s old"},
	}}
}

// Healed is an incident that was acted on, verified and now holds.
func Healed() flow.View {
	v := base(1, 0, flow.Holding)
	v.Mode, v.Reason, v.Diagnosis, v.Candidates, v.Chosen = policy.Act, "better: the step of job-a is 1.91 times faster", collision(), []plan.Plan{stay, move}, &move
	v.Choice, v.Verdict = "the largest gain with the fewest routes", verdict(guard.Allow, guard.Allow, "act")
	v.Steps = []flow.StepView{{Step: pin.String(), Why: move.Steps[0].Why, StepRecord: flow.StepRecord{
		Issued: at(1), Outcome: flow.Done, Detail: "acknowledged by l1", At: at(1.1), Attempts: 1,
	}}}
	v.Routes = []flow.Desired{{Route: pin, Incident: v.ID, State: flow.InForce, Since: at(1.1)}}
	v.Verification = &flow.Verification{Outcome: flow.Better, Reason: "99 % of the forecast gain, offered traffic 191 % of before", At: at(4), Figures: []flow.Figure{
		{What: "step of job-a", Before: 1.09, Forecast: 0.57, After: 0.572, Unit: "s"}, {What: "use of lab/l1:sp1", Before: 0.92, Forecast: 0.88, After: 0.87},
	}}
	v.Deadline = ptr(at(86400))
	v.Timeline = append(v.Timeline, flow.Entry{At: at(0.4), What: "decided", Why: "hash collision"}, flow.Entry{At: at(1.1), What: "done", Why: pin.String()}, flow.Entry{At: at(4), What: "verified", Why: "better"})
	return v
}

// OnlyPath is an incident for which nothing was better than doing nothing.
func OnlyPath() flow.View {
	v := base(2, 600, flow.Refused)
	v.Mode, v.Reason = policy.Act, "nothing better than doing nothing: the only path"
	v.EndedAt = ptr(at(600.5))
	v.Diagnosis = &fault.Diagnosis{Cause: fault.LostCapacity, Reason: "lab/l1:sp2 is down"}
	v.Candidates, v.Choice = []plan.Plan{stay}, "lab/l1:sp1 is the only path"
	v.Timeline = append(v.Timeline, flow.Entry{At: at(600.5), What: "refused", Why: v.Reason})
	return v
}

// NoPicture is an incident that nobody could look at: Prometheus was down, and the alert tries to paint the screen.
func NoPicture() flow.View {
	v := base(3, 1200, flow.Refused)
	v.Mode, v.MatrixSource, v.Explains, v.ObservedAt = "", "", false, nil
	v.Reason = "no picture of the yard: observe by Prometheus http://127.0.0.1:9090: ask its time: dial tcp 127.0.0.1:9090: connect: connection refused"
	v.EndedAt = ptr(at(1203))
	v.Alerts[0].Summary = "\x1b[31mred\x1b[0m and\ttab"
	v.Timeline = append(v.Timeline[:1], flow.Entry{At: at(1203), What: "refused", Why: v.Reason})
	return v
}

// Watched is an incident of watch mode with its follow-up; stayed says whether the congestion did.
func Watched(n int, stayed bool) flow.View {
	v := base(n, 1800+60*float64(n), flow.Watched)
	v.Mode, v.Diagnosis, v.Candidates, v.Chosen = policy.Watch, collision(), []plan.Plan{stay, move}, &move
	v.Choice, v.Verdict = "the largest gain with the fewest routes", verdict(guard.Deny, guard.Allow, "mode watch: nothing is written")
	v.FollowUp = &flow.Verification{Outcome: flow.NoChange, Reason: "the step of job-a is still 1.90 times its baseline", At: v.OpenedAt.Add(10 * time.Second)}
	if !stayed {
		v.FollowUp = &flow.Verification{Outcome: flow.Better, Reason: "the congestion went away", At: v.OpenedAt.Add(10 * time.Second)}
	}
	v.EndedAt = ptr(v.OpenedAt.Add(10 * time.Second))
	v.Reason = "would act; followed up: " + v.FollowUp.Reason
	return v
}

// Asking is an incident that waits for a human.
func Asking() flow.View {
	v := base(6, 3000, flow.Asked)
	v.Mode, v.Diagnosis, v.Candidates, v.Chosen = policy.Advise, collision(), []plan.Plan{stay, move}, &move
	v.Reason, v.Verdict, v.Deadline = "waiting for a human", verdict(guard.Ask, guard.Allow, "mode advise: a human decides"), ptr(at(4800))
	return v
}

// All is one of each.
func All() []flow.View {
	return []flow.View{Healed(), OnlyPath(), NoPicture(), Watched(4, true), Watched(5, false), Asking()}
}
