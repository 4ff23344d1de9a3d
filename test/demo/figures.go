// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/trainyard/trainyard/actuator/policy"
)

// The demo fails unless these hold (step time, job-a).
const (
	maxAfterOverBefore = 1.10 // behind the route a step takes at most this much of an uncongested one
	minDuringOverAfter = 1.5  // and congestion was at least this much worse
)

// span is what was measured between two moments.
type span struct {
	From, To  time.Time
	Step      float64 // mean step time of job-a, seconds
	Steps     int
	StepB     float64 // of job-b, NaN before it runs
	Stream    float64 // payload bytes a second of job-a's stream
	WorstStep float64
}

// MarshalJSON leaves out what was not measured.
func (s span) MarshalJSON() ([]byte, error) {
	out := map[string]any{"from": s.From, "to": s.To, "steps": s.Steps}
	for name, v := range map[string]float64{"step_seconds": s.Step, "step_b_seconds": s.StepB, "stream_bytes_per_second": s.Stream, "worst_step_seconds": s.WorstStep} {
		if !math.IsNaN(v) {
			out[name] = v
		}
	}
	return json.Marshal(out)
}

// result is what one run showed.
type result struct {
	Mode                              policy.Mode
	Before, During, After             span
	Congested, Alert, Route, Verified time.Time // zero if it did not come to that
	Outcome                           string
	Forecast                          *forecast
	Longest                           time.Duration
	Retransmits, Resets               float64 // while both jobs ran
	Writes                            int
	Routes                            []string
	Incident                          string
	Story                             string // what `trainyard explain` says
}

// forecast is the actuator's prediction for job-a's step time, in seconds.
type forecast struct{ P10, P50, P90 float64 }

// spanOf measures from a series of looks; steps must lie wholly inside.
func spanOf(looks []look, from, to time.Time) span {
	s := span{From: from, To: to, Step: math.NaN(), StepB: math.NaN(), Stream: math.NaN()}
	if len(looks) == 0 {
		return s
	}
	end := looks[len(looks)-1]
	s.Step, s.WorstStep, s.Steps = meanStep(end.Steps[jobA], from, to)
	s.StepB, _, _ = meanStep(end.Steps[jobB], from, to)
	var a, b look
	for _, l := range looks {
		if l.At.Before(from) || l.At.After(to) {
			continue
		}
		if a.At.IsZero() {
			a = l
		}
		b = l
	}
	if d := b.At.Sub(a.At).Seconds(); d > 0 {
		s.Stream = (b.StreamBytes - a.StreamBytes) / d
	}
	return s
}

func meanStep(steps []step, from, to time.Time) (mean, worst float64, n int) {
	sum := 0.0
	for _, s := range steps {
		if s.At.After(to) || s.At.Add(-seconds(s.Seconds)).Before(from) {
			continue
		}
		sum, worst, n = sum+s.Seconds, max(worst, s.Seconds), n+1
	}
	if n == 0 {
		return math.NaN(), math.NaN(), 0
	}
	return sum / float64(n), worst, n
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// check returns what the two runs fail to show.
func check(watch, act result) []error {
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	want(watch.Writes == 0 && len(watch.Routes) == 0, "watch mode wrote %d routes, %d stand: it may write none", watch.Writes, len(watch.Routes))
	want(watch.After.Step >= minDuringOverAfter*watch.Before.Step, "watch mode: at the end a step takes %.3f s, uncongested %.3f s: the congestion did not last", watch.After.Step, watch.Before.Step)
	want(!watch.Alert.IsZero(), "watch mode: no alert came")
	want(!act.Route.IsZero() && act.Writes > 0, "act mode wrote no route")
	want(!act.Verified.IsZero(), "act mode: not verified (the incident ended as %q)", act.Outcome)
	want(act.After.Step <= maxAfterOverBefore*act.Before.Step, "act mode: a step takes %.3f s after, %.3f s uncongested: more than %.2f times", act.After.Step, act.Before.Step, maxAfterOverBefore)
	want(act.During.Step >= minDuringOverAfter*act.After.Step, "act mode: a step takes %.3f s congested, %.3f s after: less than %.1f times better", act.During.Step, act.After.Step, minDuringOverAfter)
	want(act.Resets == 0 && watch.Resets == 0, "%.0f connections were reset", act.Resets+watch.Resets)
	return errs
}
