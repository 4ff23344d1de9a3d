// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/fleet/fleettest/story"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/verify"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// TestStories: commands
//
//	forecast JOB NOW->AFTER [other]      step seconds; "other" = a job that the plan is not for
//	before JOB step=D [rate=B] [...]     and after; rate is bytes/s offered, steps=N seconds=S are counters
//	gone JOB | missing TEXT | age SECONDS
//	check AFTER                          the picture is taken that long after the change
func TestStories(t *testing.T) {
	story.Run(t, "testdata/*.txt", func(*testing.T) func(*testing.T, []string) string {
		s := &scene{limits: verify.Default()}
		s.limits.Window = 4 * time.Second
		s.limits.Deadline = time.Minute
		s.before, s.after = picture(), picture()
		return func(t *testing.T, commands []string) string {
			out := ""
			for _, c := range commands {
				out = s.do(t, strings.Fields(c))
			}
			return out
		}
	})
}

var started = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func picture() verify.Picture {
	return verify.Picture{Jobs: map[string]verify.Job{}, Use: map[ident.Port]float64{}, Age: map[ident.Port]float64{}}
}

type scene struct {
	limits        verify.Limits
	before, after verify.Picture
	forecast      plan.Forecast
}

func (s *scene) do(t *testing.T, w []string) string {
	t.Helper()
	dur := func(v string) time.Duration {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatalf("%v: %v", w, err)
		}
		return d
	}
	switch w[0] {
	case "forecast":
		now, then, _ := strings.Cut(w[2], "->")
		after := dur(then).Seconds()
		j := plan.JobForecast{JobID: w[1], StepSeconds: dur(now).Seconds(), After: plan.Band{P10: after, P50: after, P90: after}, Affected: len(w) == 3}
		s.forecast.Jobs = append(s.forecast.Jobs, j)
		if j.Affected {
			s.forecast.Gain = 1 - after/j.StepSeconds
		}
		s.forecast.Links = []plan.LinkForecast{{Link: ident.Port{Fabric: "lab", Device: "l1", Name: "sp1"}}}
	case "before", "after":
		p := &s.before
		if w[0] == "after" {
			p = &s.after
		}
		j := verify.Job{BytesPerSecond: 1e6}
		for _, o := range w[2:] {
			k, v, _ := strings.Cut(o, "=")
			switch k {
			case "step":
				j.StepSeconds = dur(v).Seconds()
				j.StepsPerSecond = 1 / j.StepSeconds
			case "rate":
				j.BytesPerSecond, _ = strconv.ParseFloat(v, 64)
			case "steps":
				j.StepsTotal, _ = strconv.ParseFloat(v, 64)
			case "seconds":
				j.StepSecondsTotal, _ = strconv.ParseFloat(v, 64)
			case "partly":
				j.Missing = []string{"compute time of rank 3 on n8"}
			default:
				t.Fatalf("%v: what is %q?", w, k)
			}
		}
		p.Jobs[w[1]] = j
	case "gone":
		delete(s.after.Jobs, w[1])
	case "missing":
		s.after.Problems = append(s.after.Problems, strings.Join(w[1:], " "))
	case "age":
		s.after.Age[ident.Port{Fabric: "lab", Device: "l1", Name: "sp1"}] = dur(w[1]).Seconds()
	case "check":
		s.before.At = started.Add(-time.Second)
		s.after.At = started.Add(dur(w[1]))
		v := verify.Check(s.before, s.after, s.forecast, s.after.At, started, s.limits)
		o := string(v.Outcome)
		if v.Outcome == verify.Wait {
			o = "wait"
		}
		if v.Outcome.Undo() {
			o += " (undo)"
		}
		return fmt.Sprintf("%s: %s\nmeasured gain %.0f %%, forecast error %.0f %%, %.1f iterations", o, v.Reason, 100*v.MeasuredGain, 100*v.ForecastError, v.Iterations)
	default:
		t.Fatalf("unknown command %v", w)
	}
	return ""
}

func TestLimitsValidate(t *testing.T) {
	if err := verify.Default().Validate(); err != nil {
		t.Error(err)
	}
	l := verify.Default()
	l.Deadline, l.GainShare = 0, 2
	err := l.Validate()
	for _, want := range []string{"deadline", "gain_share"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
