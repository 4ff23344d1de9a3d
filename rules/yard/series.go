// SPDX-License-Identifier: Apache-2.0

package yard

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Gone is the value of a series in a phase in which it is not exposed.
var Gone = math.NaN()

// series is one time series. A counter's values are its growth per second in each phase, a gauge's are the value itself;
// a series with one value has it in every phase.
type series struct {
	name     string
	labels   []string // alternating name and value
	counter  bool
	values   []float64
	resets   int    // phase at whose start the counter starts again from zero; 0 = never
	job      string // scrape job and instance: what Prometheus adds
	instance string
}

func (s *series) value(phase int) float64 {
	if len(s.values) == 1 {
		return s.values[0]
	}
	return s.values[min(phase, len(s.values)-1)]
}

// text spells the series as PromQL and the text format do.
func (s *series) text(withTarget bool) string {
	labels := s.labels
	if withTarget {
		labels = append(slices.Clone(labels), "job", s.job, "instance", s.instance)
	}
	var b strings.Builder
	b.WriteString(s.name + "{")
	for i := 0; i < len(labels); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%q", labels[i], labels[i+1])
	}
	b.WriteByte('}')
	return b.String()
}

// has says whether the series carries all of the labels.
func (s *series) has(labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		if s.label(labels[i]) != labels[i+1] {
			return false
		}
	}
	return true
}

func (s *series) label(name string) string {
	for i := 0; i < len(s.labels); i += 2 {
		if s.labels[i] == name {
			return s.labels[i+1]
		}
	}
	return ""
}

// pattern spells the values over all phases as promtool's input series: one sample a tick.
// https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/#series
func (s *series) pattern(tickSeconds float64, phases []int) string {
	var parts []string
	count, present := 0.0, false
	for i, ticks := range phases {
		v := s.value(i)
		switch {
		case math.IsNaN(v) && present:
			parts = append(parts, "stale", fmt.Sprintf("_x%d", ticks-1))
		case math.IsNaN(v):
			parts = append(parts, fmt.Sprintf("_x%d", ticks))
		case s.counter:
			if i > 0 && i == s.resets {
				count = 0
			}
			step := v * tickSeconds
			parts = append(parts, fmt.Sprintf("%.9g%+.9gx%d", count, step, ticks-1)) // aXn is n+1 samples
			count += step * float64(ticks)
		default:
			parts = append(parts, fmt.Sprintf("%.9gx%d", v, ticks-1))
		}
		present = !math.IsNaN(v)
	}
	return strings.Join(parts, " ")
}

// at is the value after some ticks; ok is false while the series is not exposed.
func (s *series) at(tickSeconds, ticks float64, phases []int) (v float64, ok bool) {
	count, start := 0.0, 0.0
	for i, n := range phases {
		v := s.value(i)
		last := ticks < start+float64(n) || i == len(phases)-1
		if s.counter && i > 0 && i == s.resets {
			count = 0
		}
		if last && math.IsNaN(v) {
			return 0, false
		}
		if last && !s.counter {
			return v, true
		}
		if last {
			return count + v*tickSeconds*(ticks-start), true
		}
		if s.counter && !math.IsNaN(v) {
			count += v * tickSeconds * float64(n)
		}
		start += float64(n)
	}
	return 0, false
}
