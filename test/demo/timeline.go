// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/trainyard/trainyard/actuator/flow"
)

// timeline prints what happens as it happens, with seconds since the run's start or, once there is one, since the
// congestion's.
type timeline struct {
	out       io.Writer
	zero      time.Time
	congested bool
	lastLine  time.Time
}

// statusEvery is the distance of the lines that show figures.
const statusEvery = 2 * time.Second

func newTimeline(out io.Writer) *timeline { return &timeline{out: out, zero: time.Now()} }

// mark makes the start of the congestion the zero of the clock.
func (t *timeline) mark(at time.Time) { t.zero, t.congested = at, true }

func (t *timeline) stamp(at time.Time) string {
	sign := " "
	if t.congested {
		sign = "+"
	}
	return fmt.Sprintf("%s%6.2f s", sign, at.Sub(t.zero).Seconds())
}

// event prints one line with the present time.
func (t *timeline) event(format string, args ...any) {
	fmt.Fprintf(t.out, "%s  %s\n", t.stamp(time.Now()), fmt.Sprintf(format, args...))
}

// entry prints one line of an incident's own story, with the time at which the actuator wrote it.
func (t *timeline) entry(v flow.View, e flow.Entry) {
	text := e.What
	if e.Why != "" {
		text += ": " + e.Why
	}
	fmt.Fprintf(t.out, "%s    %s %s  %s\n", t.stamp(e.At), v.ID, v.Target, clip(text, 150))
}

// status prints step times, stream rate and link use from time to time.
func (t *timeline) status(ctx context.Context, r *pass) {
	now := time.Now()
	if now.Sub(t.lastLine) < statusEvery || len(r.looks) == 0 {
		return
	}
	t.lastLine = now
	s := spanOf(r.looks, now.Add(-statusEvery), now)
	use := r.control.use(ctx, r.yard.Fabric())
	fmt.Fprintf(t.out, "%s  · step job-a %s  job-b %s   stream n2>n5 %s   l1:sp1 %s  l1:sp2 %s\n",
		t.stamp(now), secs(s.Step), secs(s.StepB), rate(s.Stream), percent(use["sp1"]), percent(use["sp2"]))
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func secs(s float64) string {
	if math.IsNaN(s) {
		return "   -   "
	}
	return fmt.Sprintf("%.3f s", s)
}

// rate spells bytes a second as people who buy links do.
func rate(b float64) string {
	switch bits := b * 8; {
	case math.IsNaN(b):
		return "-"
	case bits >= 1e9:
		return fmt.Sprintf("%.1f Gbit/s", bits/1e9)
	default:
		return fmt.Sprintf("%.1f Mbit/s", bits/1e6)
	}
}

func percent(v float64) string {
	if math.IsNaN(v) {
		return "  -"
	}
	return fmt.Sprintf("%3.0f %%", 100*v)
}
