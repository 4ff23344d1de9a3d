// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/topo"
)

// Run is the effect of some routes on every placement that explains the present.
type Run struct {
	m      *Model
	routes []plan.Route
	steps  [][]float64 // by job: seconds after, one or two per sample
	after  []figures   // by sample
	places [][][]int   // by sample, the placement after
}

// Run forecasts routes laid over the present ones; none = the present as the model sees it.
func (m *Model) Run(routes []plan.Route) Run {
	r := Run{m: m, routes: routes, steps: make([][]float64, len(m.jobs))}
	for k, s := range m.samples {
		rng := rand.New(rand.NewPCG(m.seed, uint64(k)))
		a := m.place(s.place, routes, rng)
		after := s.now
		if len(routes) > 0 {
			after = m.figures(a)
		}
		r.after = append(r.after, after)
		r.places = append(r.places, a)
		for j := range m.jobs {
			r.steps[j] = append(r.steps[j], m.step(j, s.now, after)...)
		}
	}
	return r
}

// step turns the model's figures before and after into seconds, by way of the measured present. Where the two
// bounds of now differ, the measured step says which of them the jobs' turns are near to; where they do not, both
// bounds of after are possible and both are returned.
func (m *Model) step(j int, now, after figures) []float64 {
	const apart = 1.02
	if now.clashing[j] > apart*now.mixed[j] {
		at := (m.jobs[j].step - now.mixed[j]) / (now.clashing[j] - now.mixed[j])
		at = max(0, min(1, at))
		blend := func(f figures) float64 { return f.mixed[j] + at*(f.clashing[j]-f.mixed[j]) }
		return []float64{m.scale(j, blend(now), blend(after), after.floor[j])}
	}
	low := m.scale(j, now.mixed[j], after.mixed[j], after.floor[j])
	high := m.scale(j, now.clashing[j], after.clashing[j], after.floor[j])
	if high-low < 1e-6*low {
		return []float64{low}
	}
	return []float64{low, high}
}

// scale forecasts step = compute + collective x (pace now / pace after), so that an error of the model which is
// in both paces cancels. No job gets faster than alone on its links, and one that the plan leaves alone is
// expected back at its baseline, where there is one.
func (m *Model) scale(j int, now, after, floor float64) float64 {
	jb := m.jobs[j]
	const same = 1e-3
	if math.Abs(after-now) <= same*now {
		return jb.step
	}
	step := jb.compute + jb.collective*(after-jb.compute)/max(now-jb.compute, 1e-9*now)
	if after > now {
		return max(step, jb.step)
	}
	if jb.baseline > 0 && after <= floor*(1+same) {
		step = floor
	}
	return min(jb.step, max(step, floor))
}

// Jobs is the forecast by job, those whose flows may cross the target first marked as affected.
func (r Run) Jobs() []plan.JobForecast {
	var out []plan.JobForecast
	for j, jb := range r.m.jobs {
		if !jb.timed {
			continue
		}
		out = append(out, plan.JobForecast{JobID: jb.id, StepSeconds: jb.step, After: band(r.steps[j]), BaselineStep: jb.baseline, Affected: r.m.affected[j]})
	}
	return out
}

// Gain is the median over the affected jobs of 1 - after/now.
func (r Run) Gain() float64 {
	var gains []float64
	for _, j := range r.Jobs() {
		if j.Affected {
			gains = append(gains, 1-j.After.P50/j.StepSeconds)
		}
	}
	if len(gains) == 0 {
		return 0
	}
	return quantile(gains, 0.5)
}

// Forecast spells the run out for people and for verification: jobs, and the links around the target or changed
// by the plan.
func (r Run) Forecast() plan.Forecast {
	m := r.m
	f := plan.Forecast{Regime: Regime, Jobs: r.Jobs(), Gain: r.Gain(), Assignments: len(m.samples)}
	after := make([][]float64, m.g.Len())
	for k, s := range m.samples {
		model := r.load(k)
		for id := range after {
			was := m.measured[id]
			if math.IsNaN(was) {
				was = s.load[id]
			}
			v := max(0, was+model[id]-s.load[id])
			after[id] = append(after[id], v/m.g.Link(topo.LinkID(id)).BytesPerSecond)
		}
	}
	listed := make([]bool, m.g.Len())
	for _, id := range m.scope {
		listed[id] = true
	}
	const changed = 0.01
	for id := range after {
		l := m.g.Link(topo.LinkID(id))
		now := m.measured[id]
		if math.IsNaN(now) {
			now = m.samples[0].load[id]
		}
		b := band(after[id])
		if use := now / l.BytesPerSecond; listed[id] || math.Abs(b.P50-use) > changed || b.P90-use > changed {
			b = plan.Band{P10: min(1, b.P10), P50: min(1, b.P50), P90: min(1, b.P90)}
			f.Links = append(f.Links, plan.LinkForecast{Link: l.From, Now: use, Model: m.samples[0].load[id] / l.BytesPerSecond, After: b})
		}
	}
	return f
}

// load is what the jobs put on every link after the plan, bytes/s, at their median step.
func (r Run) load(k int) []float64 {
	m := r.m
	out := make([]float64, m.g.Len())
	per := len(m.samples)
	for j, jb := range m.jobs {
		// one or two figures per sample: take those of this sample when that is plain, else the median of all
		step := quantile(slices.Clone(r.steps[j]), 0.5)
		if len(r.steps[j]) == per {
			step = r.steps[j][k]
		}
		level := jb.volume / step
		for n, i := range jb.flows {
			for _, p := range r.places[k][i] {
				for _, id := range m.flows[i].Paths[p].Links {
					out[id] += jb.share[n] * level
				}
			}
		}
	}
	return out
}

func band(v []float64) plan.Band {
	v = slices.Clone(v)
	slices.Sort(v)
	return plan.Band{P10: at(v, 0.1), P50: at(v, 0.5), P90: at(v, 0.9)}
}

func quantile(v []float64, q float64) float64 {
	slices.Sort(v)
	return at(v, q)
}

// at interpolates between the order statistics of a sorted slice.
func at(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	x := q * float64(len(v)-1)
	i := int(x)
	if i+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[i] + (x-float64(i))*(v[i+1]-v[i])
}

// Tight lists the fabric links that hold affected jobs back after the plan although they could be faster, in any
// placement, in order of identity: where a further move could help.
func (r Run) Tight() []topo.LinkID {
	var out []topo.LinkID
	for k := range r.after {
		for j := range r.m.jobs {
			if !r.m.affected[j] {
				continue
			}
			id := r.after[k].tight[j]
			d := r.m.g.Link(id).Direction
			if (d == topo.Up || d == topo.Down) && r.crowd(k, id) > 1 && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	slices.Sort(out)
	return out
}

// crowd counts the flows on a link after the plan.
func (r Run) crowd(k int, id topo.LinkID) int {
	n := 0
	for i, f := range r.m.flows {
		for _, p := range r.places[k][i] {
			if f.Paths[p].Crosses(id) {
				n++
				break
			}
		}
	}
	return n
}

// Crowding is how much the affected jobs' bounds exceed their floors, summed over jobs and placements: it falls
// with every collision that a move removes, also while another one still hides the gain.
func (r Run) Crowding() float64 {
	sum := 0.0
	for _, f := range r.after {
		for j := range r.m.jobs {
			if r.m.affected[j] {
				sum += f.clashing[j]/f.floor[j] - 1
			}
		}
	}
	return sum / float64(len(r.after))
}
