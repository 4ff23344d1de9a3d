// SPDX-License-Identifier: Apache-2.0

// Package verify says whether the effect of a plan came: better, no change, harm or inconclusive, or that it is
// too early to say. It compares two pictures of the yard with the forecast; it reads no clock and undoes nothing.
package verify

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/plan"
)

// Outcome is the answer. Harm and inconclusive are to be undone.
type Outcome string

// The four outcomes, and Wait.
const (
	Better       Outcome = "better"
	NoChange     Outcome = "no change"
	Harm         Outcome = "harm"
	Inconclusive Outcome = "inconclusive"
	Wait         Outcome = ""
)

// Undo says that the plan must be taken back.
func (o Outcome) Undo() bool { return o == Harm || o == Inconclusive }

// Limits of a verification.
type Limits struct {
	MinIterations    float64       `json:"min_iterations" yaml:"min_iterations"`         // of each affected job after the change ...
	MinTime          time.Duration `json:"min_time" yaml:"min_time"`                     // ... or this long after it
	Window           time.Duration `json:"window" yaml:"window"`                         // that the figures of a picture are averaged over
	Deadline         time.Duration `json:"deadline" yaml:"deadline"`                     // after the change; then inconclusive
	MaxAge           time.Duration `json:"max_age" yaml:"max_age"`                       // of the samples of a link in the plan
	GainShare        float64       `json:"gain_share" yaml:"gain_share"`                 // of the forecast gain that must come
	OfferedShare     float64       `json:"offered_share" yaml:"offered_share"`           // of the traffic before that the job must still offer
	PhaseChange      float64       `json:"phase_change" yaml:"phase_change"`             // change of bytes per step from which the job does something else
	MaxOtherSlowdown float64       `json:"max_other_slowdown" yaml:"max_other_slowdown"` // of any job
}

// Default are the limits for a production profile: 15 s scrapes, rates over a minute.
func Default() Limits {
	return Limits{
		MinIterations: 5, MinTime: 30 * time.Second, Window: time.Minute, Deadline: 5 * time.Minute, MaxAge: time.Minute,
		GainShare: 0.5, OfferedShare: 0.8, PhaseChange: 0.25, MaxOtherSlowdown: 0.05,
	}
}

// Validate says what is wrong with the limits.
func (l Limits) Validate() error {
	var errs []error
	for _, x := range []struct {
		name string
		ok   bool
	}{
		{"min_iterations must be at least 1", l.MinIterations >= 1},
		{"min_time must be positive", l.MinTime > 0},
		{"window must not be negative", l.Window >= 0},
		{"deadline must be longer than window", l.Deadline > l.Window},
		{"max_age must be positive", l.MaxAge > 0},
		{"gain_share must be between 0 and 1", l.GainShare > 0 && l.GainShare <= 1},
		{"offered_share must be between 0 and 1", l.OfferedShare > 0 && l.OfferedShare <= 1},
		{"phase_change must be positive", l.PhaseChange > 0},
		{"max_other_slowdown must not be negative", l.MaxOtherSlowdown >= 0},
	} {
		if !x.ok {
			errs = append(errs, errors.New(x.name))
		}
	}
	return errors.Join(errs...)
}

// JobResult is what came of one job, beside what was forecast.
type JobResult struct {
	JobID    string    `json:"job_id"`
	Affected bool      `json:"affected"`
	Before   float64   `json:"before_seconds"` // per step
	After    float64   `json:"after_seconds"`
	Forecast plan.Band `json:"forecast_seconds"`
	InBand   bool      `json:"in_band"` // within the forecast band, widened by 5 % on both sides
}

// Verdict is the outcome with its reason and figures.
type Verdict struct {
	Outcome       Outcome     `json:"outcome"`
	Reason        string      `json:"reason"`        // for people, always set; for Wait what it waits for
	MeasuredGain  float64     `json:"measured_gain"` // median over the affected jobs of 1 - after/before
	ForecastGain  float64     `json:"forecast_gain"`
	ForecastError float64     `json:"forecast_error"` // median over the affected jobs of |measured - forecast| / forecast step time
	Iterations    float64     `json:"iterations"`     // since the change, the least of the affected jobs
	Jobs          []JobResult `json:"jobs,omitempty"`
}

// patience is how many times MinIterations it takes to say that a change did not help or did harm.
const patience = 4

// Check compares before and after. started is when the last step of the plan was in force; now is the evaluation
// time that the answer is for. The figures of after are means over the window that ends at after.At.
func Check(before, after Picture, forecast plan.Forecast, now, started time.Time, l Limits) Verdict {
	v := Verdict{ForecastGain: forecast.Gain}
	end := func(o Outcome, format string, args ...any) Verdict {
		v.Outcome, v.Reason = o, fmt.Sprintf(format, args...)
		return v
	}
	elapsed := after.At.Sub(started)
	affected, slower, clean := v.collect(before, after, forecast, started, l)
	if len(affected) == 0 {
		return end(Inconclusive, "the forecast names no job that the plan is for: nothing to compare")
	}
	for _, id := range affected {
		if why := lost(id, before, after); why != "" {
			return end(Inconclusive, "%s", why)
		}
	}
	if why := stale(after, forecast, l); why != "" {
		return end(Inconclusive, "%s", why)
	}
	// The window still holds figures from before the change: it can only hide a gain, not make one up. So better
	// may be said early; everything else waits until the window is clean.
	enough := v.Iterations >= l.MinIterations || elapsed >= l.MinTime && v.Iterations >= 1
	// What a job offers is a rate over the window. Where a congestion was still growing when the first picture was taken,
	// a window that reaches back shows less, and that says nothing about the change: then it only keeps from better.
	offers := ""
	for _, id := range affected {
		if offers = less(id, before, after, l); offers != "" {
			break
		}
	}
	if offers != "" && elapsed >= l.Window {
		return end(Inconclusive, "%s", offers)
	}
	for _, id := range affected {
		if why := stands(id, before, after, started, l); why != "" {
			return end(Inconclusive, "%s", why)
		}
		if why := changed(id, before, after, l); enough && why != "" {
			return end(Inconclusive, "%s", why)
		}
	}
	came := v.MeasuredGain >= l.GainShare*forecast.Gain && v.MeasuredGain > 0
	// A flow that moved leaves a full queue behind and finds its pace again: what is not better yet may become it.
	patient := enough && (v.Iterations >= patience*l.MinIterations || elapsed >= l.MinTime)
	switch {
	case enough && came && slower == "" && offers == "":
		return end(Better, "step time fell by %s, forecast %s (at least half of it wanted): %s", percent(v.MeasuredGain), percent(forecast.Gain), v.figures())
	case patient && clean && slower != "":
		return end(Harm, "%s (limit %s); the affected jobs: %s", slower, percent(l.MaxOtherSlowdown), v.figures())
	case patient && clean && offers == "":
		return end(NoChange, "step time changed by %s, forecast a gain of %s: %s", percent(-v.MeasuredGain), percent(forecast.Gain), v.figures())
	case now.Sub(started) >= l.Deadline:
		return end(Inconclusive, "not enough seen within %s: %.0f iterations since the change, %.0f wanted", l.Deadline, v.Iterations, l.MinIterations)
	case !enough:
		return end(Wait, "waits for iterations: %.1f since the change, %.0f wanted (or %s)", v.Iterations, l.MinIterations, l.MinTime)
	case offers != "":
		return end(Wait, "waits until the window of %s holds nothing from before the change (%s so far): %s", l.Window, elapsed.Round(100*time.Millisecond), offers)
	case !patient:
		return end(Wait, "not better yet; waits for more iterations: %.1f since the change, %.0f wanted before that is final (or %s)", v.Iterations, patience*l.MinIterations, l.MinTime)
	default:
		return end(Wait, "waits until the window of %s holds nothing from before the change (%s so far)", l.Window, elapsed.Round(100*time.Millisecond))
	}
}

// collect fills in the figures of all jobs of the forecast. It returns the affected jobs, in words the worst job
// that got slower than allowed ("" when there is none), and whether the figures hold nothing from before the change.
func (v *Verdict) collect(before, after Picture, forecast plan.Forecast, started time.Time, l Limits) (affected []string, slower string, clean bool) {
	v.Iterations, clean = math.Inf(1), true
	var gains, errs []float64
	worst := l.MaxOtherSlowdown
	for _, f := range forecast.Jobs {
		if f.Affected {
			affected = append(affected, f.JobID)
		}
		b, okB := before.Jobs[f.JobID]
		a, okA := after.Jobs[f.JobID]
		if !okB || !okA || b.StepSeconds <= 0 || a.StepSeconds <= 0 {
			if f.Affected {
				v.Iterations = 0
			}
			continue // another job may end whenever it likes
		}
		const slack = 0.05
		is := sinceStart(before, after, f.JobID, started, l.Window)
		if f.Affected {
			clean = clean && is.clean
		} else if !is.clean {
			continue // a job of long steps, met by chance: it has not done one yet that says anything
		}
		r := JobResult{JobID: f.JobID, Affected: f.Affected, Before: b.StepSeconds, After: is.seconds, Forecast: f.After}
		r.InBand = is.seconds >= (1-slack)*f.After.P10 && is.seconds <= (1+slack)*f.After.P90
		v.Jobs = append(v.Jobs, r)
		if f.Affected {
			gains = append(gains, 1-is.seconds/b.StepSeconds)
			errs = append(errs, math.Abs(is.seconds-f.After.P50)/f.After.P50)
			v.Iterations = min(v.Iterations, is.steps)
		}
		if s := is.seconds/b.StepSeconds - 1; s > worst {
			worst = s
			slower = fmt.Sprintf("%s became %s slower, from %s to %s a step", f.JobID, percent(s), seconds(b.StepSeconds), seconds(is.seconds))
		}
	}
	if math.IsInf(v.Iterations, 1) {
		v.Iterations = 0
	}
	v.Iterations = max(0, v.Iterations)
	v.MeasuredGain, v.ForecastError = median(gains), median(errs)
	return affected, slower, clean
}

// lost says why a job cannot be compared any more, "" when it can.
func lost(id string, before, after Picture) string {
	b, ok := before.Jobs[id]
	if !ok || b.StepSeconds <= 0 {
		return fmt.Sprintf("%s was not measured before the change", id)
	}
	a, ok := after.Jobs[id]
	switch {
	case !ok && len(after.Problems) > 0:
		return fmt.Sprintf("%s is no longer reported, and data is missing (%s)", id, after.Problems[0])
	case !ok:
		return fmt.Sprintf("%s ended or is no longer reported", id)
	case a.StepsTotal < b.StepsTotal:
		return fmt.Sprintf("%s was restarted: it has done %.0f steps, %.0f before the change", id, a.StepsTotal, b.StepsTotal)
	case a.BytesPerSecond <= 0 && b.BytesPerSecond > 0 && len(a.Missing) > 0:
		return fmt.Sprintf("%s is reported in part: %s", id, strings.Join(a.Missing, "; "))
	}
	return ""
}

// less says that a job offers less traffic than before, so that a gain may be its own doing; "" when it does not.
func less(id string, before, after Picture, l Limits) string {
	b, a := before.Jobs[id], after.Jobs[id]
	if b.BytesPerSecond <= 0 || a.BytesPerSecond >= l.OfferedShare*b.BytesPerSecond {
		return ""
	}
	return fmt.Sprintf("%s offers %s of the traffic that it offered before, at least %s wanted", id, percent(a.BytesPerSecond/b.BytesPerSecond), percent(l.OfferedShare))
}

// stands says that a job has finished no step for much longer than one took before, "" when it has. It ended while
// its last report is still there, or it is stuck: in both cases the plan is taken back.
func stands(id string, before, after Picture, started time.Time, l Limits) string {
	const (
		steps = 5 // as long as these took before
		least = 3 * time.Second
	)
	elapsed, was := after.At.Sub(started), before.Jobs[id].StepSeconds
	if elapsed < least || elapsed.Seconds() < steps*was || sinceStart(before, after, id, started, l.Window).steps >= 1 {
		return ""
	}
	return fmt.Sprintf("%s has not finished a step in the %s since the change, one took %s before: it ended or stands still", id, elapsed.Round(100*time.Millisecond), seconds(was))
}

// changed says that a job does something else than before, "" when it does not. Over a few steps the two rates that
// it divides say little, so it is asked only when enough were seen.
func changed(id string, before, after Picture, l Limits) string {
	was, is := before.Jobs[id].BytesPerStep(), after.Jobs[id].BytesPerStep()
	if was > 0 && is > 0 && math.Abs(is/was-1) > l.PhaseChange {
		return fmt.Sprintf("%s moves %s of the bytes per step that it moved before: it does something else now", id, percent(is/was))
	}
	return ""
}

// stale says which link of the forecast has old data, "" when none has. A link that was not measured before either
// is not asked for.
func stale(after Picture, forecast plan.Forecast, l Limits) string {
	for _, f := range forecast.Links {
		if age, ok := after.Age[f.Link]; ok && age > l.MaxAge.Seconds() {
			return fmt.Sprintf("the load of link %s is %.0f s old, at most %.0f s wanted", f.Link, age, l.MaxAge.Seconds())
		}
	}
	return ""
}

// figures spells the affected jobs: measured before and after, and what was forecast.
func (v Verdict) figures() string {
	var parts []string
	for _, j := range v.Jobs {
		if j.Affected {
			parts = append(parts, fmt.Sprintf("%s from %s to %s (forecast %s)", j.JobID, seconds(j.Before), seconds(j.After), seconds(j.Forecast.P50)))
		}
	}
	return strings.Join(parts, ", ")
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

func seconds(v float64) string {
	if math.Abs(v) < 1 {
		return fmt.Sprintf("%.0f ms", 1e3*v)
	}
	return fmt.Sprintf("%.2f s", v)
}
