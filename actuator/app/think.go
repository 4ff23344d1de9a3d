// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/decide"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/loop"
	"github.com/trainyard/trainyard/actuator/observe/prom"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/route"
	"github.com/trainyard/trainyard/actuator/verify"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// thinker lends the pure packages to the loop: it translates questions and answers, and decides nothing.
type thinker struct {
	driver act.Driver // nil = none
	window time.Duration
	maxAge time.Duration
}

func newThinker(driver act.Driver, cfg prom.Config) thinker {
	return thinker{driver: driver, window: cfg.Window, maxAge: cfg.MaxAge}
}

// propose asks decide. If the plan that it chose can come to nothing, it is asked again for pins alone: plans are made of
// what the driver can say (field rule 6; weights need a session that may not be configured), and guard refuses an
// interruption that reaches the hard stop (field rule 8).
func (t thinker) propose(_ context.Context, q loop.Question) (flow.Proposal, error) {
	limits := decide.Default()
	limits.MinPathsLeft = max(limits.MinPathsLeft, q.Policy.Budgets.MinPathsLeft)
	limits.MaxSteps = min(limits.MaxSteps, q.Policy.Budgets.MaxRoutes)
	if limits.MaxSteps < 1 {
		return flow.Proposal{}, fmt.Errorf("policy %q allows no route at all", q.Policy.Name)
	}
	if err := limits.Validate(); err != nil {
		return flow.Proposal{}, fmt.Errorf("limits of the decision: %w", err)
	}
	p := decide.Propose(q.Snapshot, q.Target, limits, q.Current, q.Seed)
	if why := t.cannot(p.Chosen, limits.MaxBlackoutSeconds); why != "" {
		limits.MaxBlackoutSeconds = route.PinBlackoutSeconds
		if pins := decide.Propose(q.Snapshot, q.Target, limits, q.Current, q.Seed); pins.Chosen != nil {
			p = pins
		}
		p.Notes = append(p.Notes, "not the best plan: "+why)
	}
	reason := p.Reason
	if len(p.Notes) > 0 {
		reason += " (" + strings.Join(p.Notes, "; ") + ")"
	}
	return flow.Proposal{
		Diagnosis: p.Diagnosis, MatrixSource: p.Matrix.Source, Explains: p.Explains,
		Candidates: p.Candidates, Chosen: p.Chosen, Reason: reason,
	}, nil
}

// cannot says why a plan can come to nothing; without a driver guard gives the reason.
func (t thinker) cannot(p *plan.Plan, stopSeconds float64) string {
	if p == nil {
		return ""
	}
	if b := p.Forecast.BlackoutBoundS; b > stopSeconds {
		return fmt.Sprintf("it may interrupt for %.1f s, more than the hard stop", b)
	}
	if t.driver == nil {
		return ""
	}
	for _, s := range p.Steps {
		if err := t.driver.Can(s.Route); err != nil {
			return "the driver cannot say it: " + err.Error()
		}
	}
	return ""
}

// gainFigure names the figure that carries measured against forecast gain.
const gainFigure = "gain in step time"

// verify compares the pictures. The moment of the change is moved to Prometheus' clock, by which the pictures are
// dated: ages and spans must not mix two clocks (contract 6). The local clock is read after the answer came, so the
// change seems the earlier by the time of one query, which can only hide a gain.
func (t thinker) verify(q loop.Trial) flow.Verification {
	links := make([]ident.Port, 0, len(q.Chosen.Forecast.Links))
	for _, l := range q.Chosen.Forecast.Links {
		links = append(links, l.Link)
	}
	limits := verify.Default()
	limits.Window, limits.MaxAge = t.window, t.maxAge
	limits.Deadline = max(q.Policy.VerifyDeadline, t.window+time.Second)
	started := q.After.At.Add(-q.Now.Sub(q.Started))
	now := q.After.At
	v := verify.Check(verify.PictureOf(q.Before, links), verify.PictureOf(q.After, links), q.Chosen.Forecast, now, started, limits)
	if v.Outcome == verify.Wait && q.Last {
		v.Outcome, v.Reason = verify.Inconclusive, "no time is left: "+v.Reason
	}
	out := flow.Verification{Outcome: string(v.Outcome), Reason: v.Reason, At: q.Now}
	for _, j := range v.Jobs {
		out.Figures = append(out.Figures, flow.Figure{What: "step of " + j.JobID, Before: j.Before, Forecast: j.Forecast.P50, After: j.After, Unit: "s"})
	}
	before, after := verify.PictureOf(q.Before, []ident.Port{q.Target}), verify.PictureOf(q.After, []ident.Port{q.Target})
	for _, l := range q.Chosen.Forecast.Links {
		if l.Link == q.Target {
			out.Figures = append(out.Figures, flow.Figure{What: "use of " + l.Link.String(), Before: before.Use[l.Link], Forecast: l.After.P50, After: after.Use[l.Link], Unit: "of its speed"})
		}
	}
	out.Figures = append(out.Figures, flow.Figure{What: gainFigure, Forecast: v.ForecastGain, After: v.MeasuredGain})
	return out
}

// followUp compares without anything having been done, for watch mode: "no change" means that the congestion stayed,
// as the forecast of doing nothing said, "better" that it went away by itself.
func (t thinker) followUp(q loop.Trial) flow.Verification {
	v := t.verify(q)
	if v.Outcome != "" {
		v.Reason = "nothing was done: " + v.Reason
	}
	return v
}
