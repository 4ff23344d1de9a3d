// SPDX-License-Identifier: Apache-2.0

//go:build lab

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/test/lab"
	"github.com/trainyard/trainyard/test/lab/ring"
)

// How long things of a scenario may take.
const (
	usual    = 8 * time.Second  // a job runs alone for so long; then it has a usual step time
	patience = 30 * time.Second // from congestion to the end of the incident
	calmDown = 40 * time.Second // from the end of traffic until nothing fires and all links are alive
)

// fabricLinks is the number of directed links between 4 leaves and 2 spines.
const fabricLinks = 16

// stage is one lab with its control side in mode act, on which scenarios play one after the other.
type stage struct {
	y      *realYard
	c      *control
	played int

	// Of the scenario that plays now.
	cut     bool // s2-l3 is
	jobs    []*ring.Job
	streams []*ring.StreamRun
	old     map[flow.ID]bool // incidents of scenarios before it
	before  look
}

// job starts a ring like those of the demo, under a name of its own so that it has a past of its own: the first rail of
// both kinds goes from pod A to pod B over s1, all else is kept apart.
func (s *stage) job(ctx context.Context, kind string) (*ring.Job, error) {
	spec := ring.Spec{JobID: fmt.Sprintf("%s-%d", kind, s.played), ReportDir: s.y.jobDir}
	spec.Hosts, spec.Spine = ringOf(kind, s.cut)
	j, err := ring.Start(ctx, s.y.lab, spec)
	if err != nil {
		return nil, err
	}
	s.y.mu.Lock()
	s.y.jobs[spec.JobID] = j
	s.y.mu.Unlock()
	s.jobs = append(s.jobs, j)
	return j, nil
}

// ringOf is the hosts of a job in rank order, and the spine of each of its connections. If s2 is cut off from l3, the first
// rail has s1 only.
func ringOf(kind string, cut bool) ([]string, func(rank, rail, _ int) string) {
	if kind == jobA {
		return []string{"n1", "n2", "n5", "n6"}, func(_, _, _ int) string { return "s1" }
	}
	hosts := []string{"n3", "n4", "n7", "n8"}
	return hosts, func(rank, rail, _ int) string {
		if rail == 0 && (cut || hosts[rank] == "n4") {
			return "s1"
		}
		return "s2"
	}
}

// collide has job-a run alone until it has a usual step time, and then starts job-b, which meets it on l1:sp1.
func (s *stage) collide(ctx context.Context, between func(a *ring.Job) error) (a, b *ring.Job, err error) {
	if a, err = s.job(ctx, jobA); err != nil {
		return nil, nil, err
	}
	if err := rest(ctx, usual); err != nil {
		return nil, nil, err
	}
	if between != nil {
		if err := between(a); err != nil {
			return nil, nil, err
		}
	}
	b, err = s.job(ctx, jobB)
	return a, b, err
}

// bothWays waits until every leaf's kernel leads to every other leaf over both spines.
func (s *stage) bothWays(ctx context.Context) error {
	for until := time.Now().Add(calmDown); ; {
		missing := ""
		for _, sw := range s.y.lab.Switches {
			if sw.Tier > 0 {
				continue
			}
			routes, err := s.y.lab.Routes(sw.Name)
			if err != nil {
				return err
			}
			wide := 0
			for _, r := range routes {
				if r.Prefix.Bits() == 24 && len(r.NextHops) == lab.Spines {
					wide++
				}
			}
			if want := len(s.y.lab.Hosts) * lab.Rails * (lab.Leaves - 1) / lab.Leaves; wide != want {
				missing = fmt.Sprintf("%s has %d of %d host subnets over both spines", sw.Name, wide, want)
			}
		}
		switch {
		case missing == "":
			return nil
		case time.Now().After(until):
			return errors.New(missing)
		}
		if err := rest(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// begin remembers what has been, so that a scenario is judged by what it adds.
func (s *stage) begin(ctx context.Context) error {
	s.played++
	s.jobs, s.streams, s.old = nil, nil, map[flow.ID]bool{}
	views, err := s.c.incidents(ctx)
	if err != nil {
		return err
	}
	for _, v := range views {
		s.old[v.ID] = true
	}
	s.before, err = s.y.Look(ctx)
	return err
}

// incidents are those of this scenario.
func (s *stage) incidents(ctx context.Context) ([]flow.View, error) {
	views, err := s.c.incidents(ctx)
	var ours []flow.View
	for _, v := range views {
		if !s.old[v.ID] {
			ours = append(ours, v)
		}
	}
	return ours, err
}

// ends waits until an incident of this scenario that was thought about is over, and no other one is open.
func (s *stage) ends(ctx context.Context) ([]flow.View, error) {
	for until := time.Now().Add(patience); ; {
		views, err := s.incidents(ctx)
		if err != nil {
			return nil, err
		}
		thought, open := 0, 0
		for _, v := range views {
			if v.Diagnosis != nil && v.Over {
				thought++
			}
			if !v.Over {
				open++
			}
		}
		if thought > 0 && open == 0 {
			return views, nil
		}
		if time.Now().After(until) {
			return views, fmt.Errorf("after %s %d incidents are open, and %d with a diagnosis over", patience, open, thought)
		}
		if err := rest(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// clear ends all traffic and waits for a clean stage: all links alive, nothing fires, nothing is open.
func (s *stage) clear(ctx context.Context) error {
	for _, st := range s.streams {
		st.Kill()
	}
	for _, j := range s.jobs {
		j.Kill()
	}
	why := s.bothWays(ctx)
	if why != nil {
		return why
	}
	for until := time.Now().Add(calmDown); time.Now().Before(until); {
		if why = s.unclear(ctx); why == nil {
			return nil
		}
		if err := rest(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return why
}

// unclear says what is left of a scenario.
func (s *stage) unclear(ctx context.Context) error {
	firing, err := s.c.firing(ctx)
	if err != nil {
		return err
	}
	live, err := s.c.query(ctx, `link:live:info{direction=~"up|down"}`)
	if err != nil {
		return err
	}
	jobs, err := s.c.query(ctx, `job:step_seconds:mean`)
	if err != nil {
		return err
	}
	views, err := s.c.incidents(ctx)
	if err != nil {
		return err
	}
	open := 0
	for _, v := range views {
		if !v.Over {
			open++
		}
	}
	l, err := s.y.Look(ctx)
	switch {
	case err != nil:
		return err
	case len(firing)+len(jobs)+open+len(l.Routes) > 0 || len(live) != fabricLinks:
		return fmt.Errorf("alerts fire for %q, %d jobs are reported, %d incidents are open, routes %q, %d of %d links live", firing, len(jobs), open, l.Routes, len(live), fabricLinks)
	}
	return nil
}

// tell prints the stories of a scenario.
func (s *stage) tell(t *testing.T, views []flow.View) {
	for _, v := range views {
		fmt.Fprintf(t.Output(), "%s %s: %s (%s)\n", v.ID, v.Target, v.State, v.Reason)
		for _, e := range v.Timeline {
			fmt.Fprintf(t.Output(), "    %s  %s: %s\n", e.At.Format("15:04:05.000"), e.What, e.Why)
		}
		if v.Diagnosis != nil {
			fmt.Fprintf(t.Output(), "    diagnosis: %s (%s): %s\n", v.Diagnosis.Cause, v.Diagnosis.Culprit, v.Diagnosis.Reason)
		}
	}
}

// figures is the evidence of a diagnosis in one line.
func figures(v flow.View) string {
	var parts []string
	for _, e := range v.Diagnosis.Evidence {
		parts = append(parts, fmt.Sprintf("%s %.2f (limit %.2f) %s", e.What, e.Value, e.Limit, e.Unit))
	}
	return strings.Join(parts, "; ")
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), errors.New("interrupted"))
	case <-time.After(d):
		return nil
	}
}
