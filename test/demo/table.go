// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/rules"
)

// printTable shows both runs side by side.
func printTable(w io.Writer, watch, act result, simulated bool) {
	row := func(what, a, b string) { fmt.Fprintf(w, "  %-44s %-26s %s\n", what, a, b) }
	both := func(what string, f func(result) string) { row(what, f(watch), f(act)) }
	line := func() { fmt.Fprintln(w, "  "+strings.Repeat("-", 98)) }

	fmt.Fprintln(w)
	row("", "watch (control)", "act")
	line()
	both("step time of job-a, uncongested", func(r result) string { return secs(r.Before.Step) })
	both("  congested", func(r result) string { return times(r.During.Step, r.Before.Step) })
	both("  after (watch: at the end)", func(r result) string { return times(r.After.Step, r.Before.Step) })
	both("  worst step during the change", func(r result) string { return secs(max(r.During.WorstStep, r.After.WorstStep)) })
	both("step time of job-b, congested", func(r result) string { return secs(r.During.StepB) })
	both("  after (watch: at the end)", func(r result) string { return secs(r.After.StepB) })
	both("stream n2>n5 of job-a, uncongested", func(r result) string { return rate(r.Before.Stream) })
	both("  congested", func(r result) string { return rate(r.During.Stream) })
	both("  after (watch: at the end)", func(r result) string { return rate(r.After.Stream) })
	line()
	both("forecast for job-a's step, p50 [p10..p90]", func(r result) string { return prediction(r, simulated) })
	if !simulated {
		both("  measured against it", forecastError)
	}
	line()
	both("congestion -> alert fires, lab profile", func(r result) string { return since(r.Congested, r.Alert) })
	both("  -> route in the switch", func(r result) string { return since(r.Congested, r.Route) })
	both("  -> verified", func(r result) string { return since(r.Congested, r.Verified) })
	row("  -> verified, production profile, computed", "", production(act))
	line()
	both("longest gap of any stream, both jobs running", func(r result) string { return r.Longest.Round(time.Millisecond).String() })
	both("retransmits, both jobs running", func(r result) string { return fmt.Sprintf("%.0f", r.Retransmits) })
	both("resets", func(r result) string { return fmt.Sprintf("%.0f", r.Resets) })
	both("routes written / standing at the end", func(r result) string { return fmt.Sprintf("%d / %d", r.Writes, len(r.Routes)) })
	both("incident", func(r result) string { return strings.TrimSpace(r.Incident + " " + r.Outcome) })
	fmt.Fprintln(w)
}

func times(s, base float64) string {
	if math.IsNaN(s) || math.IsNaN(base) {
		return secs(s)
	}
	return fmt.Sprintf("%s (%.2f x)", secs(s), s/base)
}

func since(from, to time.Time) string {
	if to.IsZero() {
		return "never"
	}
	return fmt.Sprintf("%.2f s", to.Sub(from).Seconds())
}

// prediction is what the actuator forecast. On the plant it is shown for the story's sake; it says nothing about accuracy.
func prediction(r result, simulated bool) string {
	if r.Forecast == nil {
		return "-"
	}
	s := fmt.Sprintf("%.3f s [%.3f..%.3f]", r.Forecast.P50, r.Forecast.P10, r.Forecast.P90)
	if simulated {
		s += " (no accuracy from a plant)"
	}
	return s
}

func forecastError(r result) string {
	if r.Forecast == nil || r.Mode != policy.Act || r.Verified.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%.3f s, %+.1f %%", r.After.Step, 100*(r.After.Step/r.Forecast.P50-1))
}

// productionGroupWait is how long Alertmanager waits before the first message of a group (deploy/alertmanager/production.yml).
const productionGroupWait = 5 * time.Second

// production computes the time from congestion to verified in the production profile from its intervals and from what was
// measured here (use and slowdown of the congestion, time that the actuator itself took).
func production(r result) string {
	p, ok := rules.Lookup("production")
	if !ok || r.Verified.IsZero() {
		return "-"
	}
	d := func(s string) time.Duration { v, _ := time.ParseDuration(s); return v }
	// The alert's condition holds once enough of the window is slow: a mean over the window passes 1.15 of the baseline
	// when that share of it is congested. Half a scrape and half an evaluation pass before each is seen, on average.
	slow := r.During.Step / r.Before.Step
	share := math.Min(1, 0.15/math.Max(slow-1, 0.15))
	seen := time.Duration(share*float64(d(p.Window))) + d(p.Scrape)/2 + d(p.Interval)/2
	own := r.Route.Sub(r.Alert)
	// After the settling, a verification compares step counters: two scrapes lie wholly behind the change.
	verify := policy.Default().Settle + 2*d(p.Scrape)
	alert := seen + d(p.CongestedFor)
	return fmt.Sprintf("%.0f s (alert %.0f, route %.0f)", (alert + productionGroupWait + own + verify).Seconds(), alert.Seconds(), (alert + productionGroupWait + own).Seconds())
}
