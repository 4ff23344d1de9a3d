// SPDX-License-Identifier: Apache-2.0

// Package shadow reports on watch mode: what it would have done over a period, and how often that would have been
// right, as far as anybody looked again afterwards. It is pure: incidents in, counts and lines out.
package shadow

import (
	"cmp"
	"slices"
	"time"

	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/policy"
)

// Would is what an incident would have led to in mode act.
type Would string

// What could have been.
const (
	Act     Would = "act"     // routes would have been written
	Ask     Would = "ask"     // a human would have been asked
	Refuse  Would = "refuse"  // a check objects, whatever the mode
	Nothing Would = "nothing" // no cure by routes, nothing better, or the alert went away first
)

// Followed is what was seen when somebody looked again without anything having been done.
type Followed string

// What the follow-up says of the forecast.
const (
	Right     Followed = "right"     // the congestion stayed, as the forecast of "do nothing" said: acting was worth it
	Needless  Followed = "needless"  // it went away by itself: acting would have been for nothing
	Unclear   Followed = "unclear"   // the comparison was worth nothing
	NotLooked Followed = "not known" // nobody looked again
)

// Line is one incident of the report.
type Line struct {
	ID       string    `json:"id"`
	Target   string    `json:"target"`
	OpenedAt time.Time `json:"opened_at"`
	State    string    `json:"state"`
	Cause    string    `json:"cause,omitempty"`
	Would    Would     `json:"would"`
	Plan     string    `json:"plan,omitempty"`
	Gain     float64   `json:"gain" doc:"forecast gain, 0 to 1"`
	Followed Followed  `json:"followed"`
	Reason   string    `json:"reason"`
}

// Report is what watch mode would have done.
type Report struct {
	Since    time.Time        `json:"since"`
	Until    time.Time        `json:"until"`
	Incident int              `json:"incidents" doc:"incidents that were judged in watch mode, or never came to be judged"`
	Would    map[Would]int    `json:"would"`
	Followed map[Followed]int `json:"followed" doc:"of those that would have acted or asked"`
	// RightRatio is right / (right + needless); absent while neither was seen.
	RightRatio *float64 `json:"right_ratio,omitempty"`
	Lines      []Line   `json:"lines"`
}

// Make reports on the incidents that were opened in [since, until). An incident that was judged in another mode
// is no shadow and is left out.
func Make(incidents []flow.View, since, until time.Time) Report {
	r := Report{Since: since.UTC(), Until: until.UTC(), Would: map[Would]int{}, Followed: map[Followed]int{}, Lines: []Line{}}
	for _, in := range incidents {
		if in.OpenedAt.Before(since) || !in.OpenedAt.Before(until) || !shadowed(in) {
			continue
		}
		l := line(in)
		r.Lines = append(r.Lines, l)
		r.Incident++
		r.Would[l.Would]++
		if l.Would == Act || l.Would == Ask {
			r.Followed[l.Followed]++
		}
	}
	slices.SortFunc(r.Lines, func(a, b Line) int { return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(a.ID, b.ID)) })
	if n := r.Followed[Right] + r.Followed[Needless]; n > 0 {
		ratio := float64(r.Followed[Right]) / float64(n)
		r.RightRatio = &ratio
	}
	return r
}

// shadowed says that the incident was only watched, or that it ended before its mode came to matter.
func shadowed(in flow.View) bool { return in.Mode == policy.Watch || in.Mode == "" && in.Over }

func line(in flow.View) Line {
	l := Line{ID: string(in.ID), Target: in.Target, OpenedAt: in.OpenedAt, State: string(in.State), Reason: in.Reason, Would: Nothing, Followed: NotLooked}
	if in.Diagnosis != nil {
		l.Cause = string(in.Diagnosis.Cause)
	}
	if in.Chosen != nil && !in.Chosen.DoesNothing() {
		l.Plan, l.Gain = in.Chosen.Summary, in.Chosen.Forecast.Gain
	}
	if in.Verdict != nil && l.Plan != "" {
		switch in.Verdict.Would {
		case guard.Allow:
			l.Would = Act
		case guard.Ask:
			l.Would = Ask
		default:
			l.Would = Refuse
		}
	}
	if in.FollowUp != nil {
		switch in.FollowUp.Outcome {
		case flow.NoChange, flow.Harm:
			l.Followed = Right
		case flow.Better:
			l.Followed = Needless
		default:
			l.Followed = Unclear
		}
	}
	return l
}
