// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"math"
	"strings"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/topo"
)

// choose fills in the candidates worth showing and takes the best that passes every test; doing nothing wins ties.
func (c *inquiry) choose(p *Proposal, found []candidate, refused []string) {
	if len(found) == 0 {
		p.Reason = "nothing better: no other route for the flows on link " + c.target.String()
		if len(refused) > 0 {
			p.Reason = "nothing better: " + strings.Join(refused, "; ")
		}
		return
	}
	var why string
	var chosen *plan.Plan
	best := math.Inf(-1)
	for _, x := range found {
		f := x.run.Forecast()
		f.PathsLeft, f.BlackoutBoundS, f.Assignments = x.plan.Forecast.PathsLeft, x.plan.Forecast.BlackoutBoundS, c.expl.Count
		x.plan.Forecast = f
		switch no := c.object(x.plan); {
		case no != "" && why == "":
			why = no
		case no == "" && worth(x) > best:
			took := x.plan
			best, chosen = worth(x), &took
		}
		if len(p.Candidates) <= maxShown {
			p.Candidates = append(p.Candidates, x.plan)
		} else if x.gain < max(c.limits.MinGain, best) {
			break // sorted by gain: nothing that follows can be chosen
		}
	}
	if chosen == nil {
		p.Reason = fmt.Sprintf("nothing better: %d candidates tried; the best: %s", len(found), why)
		return
	}
	p.Chosen = chosen
	p.Reason = c.praise(*chosen)
}

// worth is the expected gain of a plan less what its changes cost: each further write must bring five points, and a bound on
// the interruption above one second (the goal; the limit is the hard stop) ten.
func worth(x candidate) float64 {
	w := x.gain - 0.05*float64(len(x.plan.Steps)-1)
	if x.plan.Forecast.BlackoutBoundS > 1 {
		w -= 0.10
	}
	// Figures of equal plans differ in the last bits; the first of them is taken.
	return math.Round(w*1e3) / 1e3
}

// object says why a candidate must not be chosen, "" when nothing speaks against it.
func (c *inquiry) object(p plan.Plan) string {
	f := p.Forecast
	if f.Gain < c.limits.MinGain || math.IsNaN(f.Gain) {
		return fmt.Sprintf("%s gains %s of the step time of the affected jobs, at least %s wanted", p.Summary, percent(max(0, f.Gain)), percent(c.limits.MinGain))
	}
	for _, j := range f.Jobs {
		if j.After.P90 > (1+c.limits.MaxOtherSlowdown)*j.StepSeconds {
			return fmt.Sprintf("%s could slow %s from %s to %s a step (in one of ten placements that explain the present; limit %s)",
				p.Summary, j.JobID, seconds(j.StepSeconds), seconds(j.After.P90), percent(c.limits.MaxOtherSlowdown))
		}
	}
	if f.BlackoutBoundS > c.limits.MaxBlackoutSeconds {
		return fmt.Sprintf("%s could interrupt a flow for %.1f s, at most %.1f s wanted", p.Summary, f.BlackoutBoundS, c.limits.MaxBlackoutSeconds)
	}
	// No link may become the new hot one. A ring that gets its pace back may fill its own link a little more than
	// the target is filled now; that much is in the slack.
	const slack = 0.05
	most := 0.0
	for _, l := range f.Links {
		most = max(most, l.Now)
	}
	for _, l := range f.Links {
		if d := c.s.Fabric.Links[l.Link].Direction; d != topo.Up && d != topo.Down {
			continue
		}
		if l.After.P50 > most+slack {
			return fmt.Sprintf("%s would fill link %s to %s, more than any link has now (%s)", p.Summary, l.Link, percent(l.After.P50), percent(most))
		}
	}
	return ""
}

// praise says why the plan was chosen, with the figures that verification will look at.
func (c *inquiry) praise(p plan.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: gains %s of the step time", p.Summary, percent(p.Forecast.Gain))
	for _, j := range p.Forecast.Jobs {
		if j.Affected && math.Abs(j.After.P50/j.StepSeconds-1) >= 0.01 {
			fmt.Fprintf(&b, "; %s from %s to %s", j.JobID, seconds(j.StepSeconds), seconds(j.After.P50))
			if j.After.P90-j.After.P10 > 0.01*j.After.P50 {
				fmt.Fprintf(&b, " (%s to %s)", seconds(j.After.P10), seconds(j.After.P90))
			}
		}
	}
	for _, l := range p.Forecast.Links {
		if l.Link == c.target {
			fmt.Fprintf(&b, "; link %s from %s to %s", l.Link, percent(l.Now), percent(l.After.P50))
		}
	}
	fmt.Fprintf(&b, "; %d live paths left when the new one dies; %s", p.Forecast.PathsLeft, c.expl.Reason)
	return b.String()
}
