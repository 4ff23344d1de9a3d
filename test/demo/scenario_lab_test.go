// SPDX-License-Identifier: Apache-2.0

//go:build lab

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/test/lab/ring"
	"github.com/trainyard/trainyard/test/tools/toolbox"
)

// scenario is a busy link that no route may cure.
type scenario struct {
	name    string
	play    func(ctx context.Context, s *stage) error // makes the congestion
	after   func(s *stage) error                      // mends what play broke
	state   flow.IncidentState                        // how incidents end
	cause   fault.Cause
	culprit string // is named by the diagnosis
	reason  string // is said by the incident
}

// In the order in which they disturb each other least: a link that went down counts as sick for half a minute.
var scenarios = []scenario{
	{
		name: "storage traffic that nobody announced", state: flow.Refused, cause: fault.UnexplainedTraffic, reason: "does not explain the present",
		play: func(ctx context.Context, s *stage) error {
			if _, err := s.job(ctx, jobA); err != nil {
				return err
			}
			if err := rest(ctx, usual); err != nil {
				return err
			}
			st, err := ring.StartStream(ctx, s.y.lab, ring.Stream{From: "n3", To: "n7", Spine: "s1"})
			if err == nil {
				s.streams = append(s.streams, st)
			}
			return err
		},
	},
	{
		name: "straggler", state: flow.Refused, cause: fault.Straggler, culprit: "rank 2 of job-a", reason: "straggler",
		play: func(ctx context.Context, s *stage) error {
			_, _, err := s.collide(ctx, func(a *ring.Job) error {
				if err := a.SetCompute(2, 80*time.Millisecond); err != nil {
					return err
				}
				return rest(ctx, time.Second) // its mean is over two seconds
			})
			return err
		},
	},
	{
		// It reads less than its half of the link, so that job-b has the rest and the link stays full.
		name: "slow receiver", state: flow.Refused, cause: fault.SlowReceiver, culprit: "n5", reason: "slow receiver",
		play: func(ctx context.Context, s *stage) error {
			_, _, err := s.collide(ctx, func(a *ring.Job) error { return a.SetReadRate(2, 5_000_000) })
			return err
		},
	},
	{
		name: "only path", state: flow.Refused, reason: "nothing better",
		play: func(ctx context.Context, s *stage) error {
			if err := s.y.lab.CutLink("s2", "l3"); err != nil {
				return err
			}
			s.cut = true
			if err := rest(ctx, 2*time.Second); err != nil { // every leaf hears of it
				return err
			}
			_, _, err := s.collide(ctx, nil)
			return err
		},
		after: func(s *stage) error {
			s.cut = false
			return s.y.lab.RestoreLink("s2", "l3")
		},
	},
	{
		// Both cables of the hot way, so that whichever alert comes first is about a sick link.
		name: "sick link", state: flow.Refused, cause: fault.SickLink, culprit: ":", reason: "went down",
		play: func(ctx context.Context, s *stage) error {
			// Slow enough for the sessions to come back in between.
			g, flapping := errgroup.WithContext(ctx)
			for _, leaf := range []string{"l1", "l3"} {
				g.Go(func() error { return s.y.lab.FlapLink(flapping, "s1", leaf, 3, 3*time.Second) })
			}
			if err := g.Wait(); err != nil {
				return err
			}
			if err := s.bothWays(ctx); err != nil {
				return err
			}
			_, _, err := s.collide(ctx, nil)
			return err
		},
	},
}

// Every cause on real switches, real traffic and the real control side in mode act: what no route cures ends without a
// route in any leaf's kernel, and says why.
func TestScenarios(t *testing.T) {
	ctx := t.Context()
	root, err := toolbox.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := build(ctx, root, filepath.Join(t.TempDir(), "bin"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	made, err := newLab(ctx, t.Output(), dir, bin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := startControl(ctx, made, dir, policy.Act, bin, newTimeline(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{y: made.(*realYard), c: c}
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) { sc.run(t, s) })
	}
}

func (sc scenario) run(t *testing.T, s *stage) {
	ctx := t.Context()
	if err := s.begin(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if sc.after != nil {
			if err := sc.after(s); err != nil {
				t.Error(err)
			}
		}
		if err := s.clear(ctx); err != nil {
			t.Errorf("the stage is not clear for the next scenario: %v", err)
		}
	}()
	if err := sc.play(ctx, s); err != nil {
		if views, err := s.incidents(ctx); err == nil {
			s.tell(t, views)
		}
		t.Fatal(err)
	}
	views, err := s.ends(ctx)
	s.tell(t, views)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.y.Look(ctx)
	if err != nil {
		t.Fatal(err)
	}
	writes := l.Writes - s.before.Writes
	if writes > 0 || len(l.Routes) > 0 {
		t.Errorf("the leaves' kernels saw %d changes of host routes, and have now %q", writes, l.Routes)
	}
	found := 0
	for _, v := range views {
		if sc.is(v) {
			found++
			fmt.Fprintf(t.Output(), "FIGURE %s: %s on %s, %s after %.1f s; %s; %d changes of routes, %d routes left\n",
				sc.name, v.Diagnosis.Cause, v.Target, v.State, v.EndedAt.Sub(v.OpenedAt).Seconds(), figures(v), writes, len(l.Routes))
		}
		if len(v.Steps) > 0 {
			t.Errorf("%s on %s ended as %s with %d steps: %s", v.ID, v.Target, v.State, len(v.Steps), v.Reason)
		}
	}
	if found == 0 {
		t.Errorf("no incident ended as %s with cause %q, culprit %q and reason %q", sc.state, sc.cause, sc.culprit, sc.reason)
	}
}

// is says whether an incident ended as this scenario has to.
func (sc scenario) is(v flow.View) bool {
	return v.State == sc.state && v.Diagnosis != nil && (sc.cause == "" || v.Diagnosis.Cause == sc.cause) &&
		strings.Contains(v.Diagnosis.Culprit, sc.culprit) && strings.Contains(v.Reason, sc.reason)
}
