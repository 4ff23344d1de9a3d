// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/policy"
)

// How long each part of a run takes. Alone must be long enough for the baseline of step times, after for a mean that noise
// does not move.
type schedule struct {
	Alone     time.Duration // job-a has the fabric for itself
	Control   time.Duration // watch: how long both jobs run
	Patience, // act: how long to wait for "verified"
	After time.Duration // act: both jobs run on after that
}

var defaultSchedule = schedule{Alone: 15 * time.Second, Control: 15 * time.Second, Patience: 30 * time.Second, After: 10 * time.Second}

// lookEvery is the distance of looks at the yard, and so the resolution of the moments that are measured.
const lookEvery = 100 * time.Millisecond

// pass is one run: fabric and control side are up, the jobs start, the loop does what its mode allows.
type pass struct {
	yard    yard
	control *control
	mode    policy.Mode
	plan    schedule
	say     *timeline

	looks []look
	seen  map[string]bool // timeline entries printed already
	res   result
}

// do takes the run from the first job to the end and returns what it showed.
func (r *pass) do(ctx context.Context) (result, error) {
	r.seen = map[string]bool{}
	r.res = result{Mode: r.mode}
	if err := r.yard.StartJob(ctx, jobA); err != nil {
		return r.res, err
	}
	r.say.event("job-a starts: ring of n1 n2 n5 n6 on both rails, alone on the fabric")
	alone := time.Now()
	if err := r.watch(ctx, alone.Add(r.plan.Alone), nil); err != nil {
		return r.res, err
	}

	r.yard.ResetGaps()
	first := r.looks[len(r.looks)-1]
	r.res.Congested = time.Now()
	if err := r.yard.StartJob(ctx, jobB); err != nil {
		return r.res, err
	}
	r.say.mark(r.res.Congested)
	r.say.event("job-b starts: ring of n3 n4 n7 n8; its stream n4>n7 meets job-a's n2>n5 on l1:sp1 and s1:lf3: CONGESTION")

	if r.mode == policy.Act {
		if err := r.watch(ctx, time.Now().Add(r.plan.Patience), func() bool { return !r.res.Verified.IsZero() }); err != nil {
			return r.res, err
		}
		if r.res.Verified.IsZero() {
			r.say.event("not verified within %s", r.plan.Patience)
		}
		if err := r.watch(ctx, time.Now().Add(r.plan.After), nil); err != nil {
			return r.res, err
		}
	} else if err := r.watch(ctx, time.Now().Add(r.plan.Control), nil); err != nil {
		return r.res, err
	}
	r.figures(alone, first)
	r.story(ctx)
	return r.res, nil
}

// watch looks at the yard and at the control side until a time, or until enough says so.
func (r *pass) watch(ctx context.Context, until time.Time, enough func() bool) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for time.Now().Before(until) && (enough == nil || !enough()) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		l, err := r.yard.Look(ctx)
		if err != nil {
			return fmt.Errorf("look at the yard: %w", err)
		}
		r.looks = append(r.looks, l)
		if len(l.Routes) > 0 && r.res.Route.IsZero() {
			r.res.Route = l.At
			if !l.FirstRoute.IsZero() {
				r.res.Route = l.FirstRoute
			}
			r.say.event("ROUTE in the switch: %s", l.Routes[0])
		}
		if err := r.listen(ctx); err != nil {
			return err
		}
		r.say.status(ctx, r)
	}
	return nil
}

// listen asks Prometheus for the alert and the actuator for its incidents, and prints what is new.
func (r *pass) listen(ctx context.Context) error {
	if r.res.Congested.IsZero() {
		return nil
	}
	if r.res.Alert.IsZero() {
		links, err := r.control.firing(ctx)
		if err != nil {
			return err
		}
		if len(links) > 0 {
			r.res.Alert = time.Now()
			r.say.event("ALERT FabricLinkCongested fires in Prometheus: %s", links[0])
		}
	}
	for _, title := range r.control.inbox.take() {
		if !strings.Contains(title, "is congested") {
			continue // other alerts reach people too, but are another story
		}
		r.say.event("Slack (a stand-in here) is told: %s", title)
	}
	views, err := r.control.incidents(ctx)
	if err != nil {
		return err
	}
	for _, v := range views {
		for i, e := range v.Timeline {
			key := fmt.Sprint(v.ID, i)
			if r.seen[key] {
				continue
			}
			r.seen[key] = true
			r.say.entry(v, e)
		}
		if v.Verification != nil && v.Verification.Outcome == flow.Better && r.res.Verified.IsZero() {
			r.res.Verified = v.Verification.At
		}
	}
	return nil
}

// figures computes what the table shows.
func (r *pass) figures(alone time.Time, first look) {
	last := r.looks[len(r.looks)-1]
	c := r.res.Congested
	r.res.Before = spanOf(r.looks, alone.Add(r.plan.Alone/3), c)
	end := last.At
	if !r.res.Route.IsZero() {
		end = r.res.Route
	}
	r.res.During = spanOf(r.looks, c, end)
	from := last.At.Add(-r.plan.After)
	if !r.res.Verified.IsZero() {
		from = r.res.Verified // the generators run on after that; only then step time is read
	}
	r.res.After = spanOf(r.looks, from, last.At)
	r.res.Longest = last.Longest
	r.res.Retransmits, r.res.Resets = last.Retransmits-first.Retransmits, last.Resets
	r.res.Writes, r.res.Routes = last.Writes, last.Routes
}

// story takes the incident that acted, or else the first one, and what the command-line tool says of it.
func (r *pass) story(ctx context.Context) {
	views, err := r.control.incidents(ctx)
	if err != nil || len(views) == 0 {
		r.res.Outcome = "no incident"
		return
	}
	v := views[0]
	for _, w := range views {
		if len(w.Steps) > 0 {
			v = w
			break
		}
	}
	r.res.Incident, r.res.Outcome = string(v.ID), string(v.State)
	if v.Chosen != nil {
		for _, j := range v.Chosen.Forecast.Jobs {
			if j.JobID == jobA {
				r.res.Forecast = &forecast{j.After.P10, j.After.P50, j.After.P90}
			}
		}
	}
	text, err := r.control.explain(ctx, r.res.Incident)
	if err != nil {
		err = fmt.Errorf("trainyard explain %s: %w", r.res.Incident, err)
	}
	r.res.Story = text
	if err != nil && !errors.Is(err, context.Canceled) {
		r.say.event("%v", err)
	}
}
