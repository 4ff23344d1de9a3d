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
	steps  [][][]float64 // by job and sample: seconds after, one figure or three
	after  []figures     // by sample
	places [][][]int     // by sample, the placement after
}

// Run forecasts routes laid over the present ones; none = the present as the model sees it.
func (m *Model) Run(routes []plan.Route) Run {
	r := Run{m: m, routes: routes, steps: make([][][]float64, len(m.jobs))}
	moved := m.moved(routes)
	for k, s := range m.samples {
		a := m.place(s.place, moved, rand.New(rand.NewPCG(m.seed, uint64(k))))
		after := s.now
		if len(routes) > 0 {
			after = m.figures(a)
		}
		r.after = append(r.after, after)
		r.places = append(r.places, a)
		for j := range m.jobs {
			r.steps[j] = append(r.steps[j], m.step(j, s.now, after))
		}
	}
	return r
}

// step turns the model's figures before and after into seconds, by way of the measured present: a few equally
// likely ones. Where the two bounds of now differ, the measured step says which of them the jobs' turns are near to
// now. Turns may fall differently after a change, so the bounds themselves stay possible.
func (m *Model) step(j int, now, after figures) []float64 {
	at := 0.5
	if d := now.clashing[j] - now.mixed[j]; d > 1e-3*now.mixed[j] {
		at = max(0, min(1, (m.jobs[j].step-now.mixed[j])/d))
	}
	blend := func(f figures) float64 { return f.mixed[j] + at*(f.clashing[j]-f.mixed[j]) }
	n := blend(now)
	middle := m.scale(j, n, blend(after), after.floor[j])
	low := m.scale(j, n, after.mixed[j], after.floor[j])
	high := m.scale(j, n, after.clashing[j], after.floor[j])
	if same(now.mixed[j], after.mixed[j]) && same(now.clashing[j], after.clashing[j]) || same(low, high) {
		return []float64{middle}
	}
	return []float64{low, middle, high}
}

// same says that two figures differ by no more than the model's own rounding.
func same(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Abs(b) }

// scale forecasts step = compute + collective x (pace now / pace after), so that an error of the model which is
// in both paces cancels. No job gets faster than alone on its links, and one that the plan leaves alone is
// expected back at its baseline, where there is one.
func (m *Model) scale(j int, now, after, floor float64) float64 {
	jb := m.jobs[j]
	if same(after, now) {
		return jb.step
	}
	step := jb.compute + jb.collective*(after-jb.compute)/max(now-jb.compute, 1e-9*now)
	if after > now {
		return max(step, jb.step)
	}
	if jb.baseline > 0 && same(after, floor) {
		step = floor
	}
	return min(jb.step, max(step, floor))
}

// Jobs is the forecast by job. Affected are those that cross the target in at least half of the placements.
func (r Run) Jobs() []plan.JobForecast {
	var out []plan.JobForecast
	for j, jb := range r.m.jobs {
		if !jb.timed {
			continue
		}
		out = append(out, plan.JobForecast{JobID: jb.id, StepSeconds: jb.step, After: band(slices.Concat(r.steps[j]...)), BaselineStep: jb.baseline, Affected: r.m.meant[j]})
	}
	return out
}

// gains are, by placement, the median over the jobs that cross the target there of 1 - after/now. A placement that
// leads nobody over the target gains nothing.
func (r Run) gains() []float64 {
	out := make([]float64, len(r.m.samples))
	for k, s := range r.m.samples {
		var here []float64
		for j, jb := range r.m.jobs {
			if s.crosses[j] && jb.timed {
				here = append(here, 1-mean(r.steps[j][k])/jb.step)
			}
		}
		if len(here) > 0 {
			out[k] = quantile(here, 0.5)
		}
	}
	return out
}

// Gain is the median over the placements of the median gain of the jobs on the target.
func (r Run) Gain() float64 { return quantile(r.gains(), 0.5) }

// Expected is the mean in place of the median over the placements: what candidates are ranked by, since it knows
// how many placements a plan helps in.
func (r Run) Expected() float64 { return mean(r.gains()) }

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// Forecast spells the run out for people and for verification: jobs, and the links around the target or changed
// by the plan.
func (r Run) Forecast() plan.Forecast {
	m := r.m
	f := plan.Forecast{Regime: Regime, Jobs: r.Jobs(), Gain: r.Gain(), Assignments: len(m.samples)}
	after := make([][]float64, m.g.Len())
	if m.present == nil {
		nothing := m.Run(nil)
		for k := range m.samples {
			m.present = append(m.present, nothing.load(k))
		}
	}
	for k := range m.samples {
		model, present := r.load(k), m.present[k]
		for id := range after {
			v, was := model[id], m.measured[id]
			switch {
			case math.IsNaN(was):
			case math.Abs(model[id]-present[id]) < 0.01*m.capacity[id]: // the plan does not touch it
				v = was
			default: // what is measured and no flow's: within the tolerance it is noise, beyond it somebody's
				v += m.background[id]
			}
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

// load is what the jobs put on every link after the plan, bytes/s.
func (r Run) load(k int) []float64 {
	m := r.m
	out := make([]float64, m.g.Len())
	for j, jb := range m.jobs {
		step := mean(r.steps[j][k])
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
			const slow = 1.02
			if !r.m.affected[j] || r.after[k].clashing[j] <= slow*r.after[k].bound[j] {
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

// Crowding is how much slower the affected jobs may be than if they met nobody, summed over jobs and placements: it falls
// with every collision that a move removes, also while another one still hides the gain.
func (r Run) Crowding() float64 {
	sum := 0.0
	for _, f := range r.after {
		for j := range r.m.jobs {
			if r.m.affected[j] {
				sum += f.clashing[j]/f.bound[j] - 1
			}
		}
	}
	return sum / float64(len(r.after))
}
