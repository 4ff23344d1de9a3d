// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/rand/v2"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/traffic"
)

// Regime names the model in forecasts.
const Regime = "max-min shares, ring jobs keep one pace; calibrated on the present step times"

// Model is the present: flows on paths, jobs with what they measured, and every placement of the flows that
// explains it.
type Model struct {
	g          *topo.Graph
	flows      []traffic.Routed
	jobs       []job
	capacity   []float64 // by link, bytes/s that flows may share: efficiency times speed, less the background
	edge       []bool    // by link: it leads to or from a node
	scope      []topo.LinkID
	target     topo.LinkID
	measured   []float64 // by link, NaN = not measured
	background []float64 // by link: measured, but no flow's
	table      traffic.Table
	routes     []plan.Route
	seed       uint64
	samples    []sample
	affected   []bool      // by job: may cross the target
	present    [][]float64 // by sample and link: what the model says of now; filled when first asked for
	desk       desk
	meant      []bool // by job: does so in at least half of the placements, or in as many as any
}

// job is one collective. Its variable is its level: bytes/s of its largest single connection, averaged over a
// step; all its connections rise and fall with it in fixed proportion.
type job struct {
	id         string
	flows      []int
	share      []float64 // by entry of flows: rate of one connection per unit of level
	level      float64   // measured now
	volume     float64   // bytes that the largest connection moves per step
	step       float64   // seconds, measured now
	compute    float64   // seconds of a step without communication
	collective float64   // seconds
	baseline   float64   // seconds; 0 = unknown
	timed      bool      // it reports steps; else it only takes its present rate
}

// sample is one placement of the flows with the model's figures for it.
type sample struct {
	place   traffic.Assignment
	now     figures
	load    []float64 // by link: measured rates on this placement
	crosses []bool    // by job: it crosses the target
}

// Input is what a Model is made of.
type Input struct {
	Graph       *topo.Graph
	Explanation traffic.Explanation
	Jobs        []traffic.Job
	Loads       []float64 // by link, bytes/s; NaN = not measured
	Target      topo.LinkID
	Routes      []plan.Route // in force now
	Efficiency  float64      // share of a link's speed that can be used, 0 < e <= 1
	Seed        uint64
}

// New prepares the model.
func New(in Input) *Model {
	m := &Model{
		g: in.Graph, flows: in.Explanation.Flows, capacity: make([]float64, in.Graph.Len()), scope: in.Explanation.Scope,
		target: in.Target, measured: in.Loads, background: in.Explanation.Background, table: traffic.NewTable(in.Routes), routes: in.Routes, seed: in.Seed,
	}
	m.edge = make([]bool, in.Graph.Len())
	for id := range m.capacity {
		d := in.Graph.Link(topo.LinkID(id)).Direction
		m.edge[id] = d == topo.Access || d == topo.Host
		m.capacity[id] = max(0, in.Efficiency*in.Graph.Link(topo.LinkID(id)).BytesPerSecond-in.Explanation.Background[id])
	}
	m.addJobs(in.Jobs)
	m.doubtBaselines(in.Explanation.Samples)
	m.desk = newDesk(in.Graph.Len(), len(m.jobs))
	for _, a := range in.Explanation.Samples {
		s := sample{place: a, load: make([]float64, in.Graph.Len())}
		for i, f := range m.flows {
			for _, p := range a[i] {
				for _, id := range f.Paths[p].Links {
					s.load[id] += f.PerConnection()
				}
			}
		}
		s.now = m.figures(a)
		s.crosses = make([]bool, len(m.jobs))
		for j, jb := range m.jobs {
			for _, i := range jb.flows {
				for _, p := range a[i] {
					s.crosses[j] = s.crosses[j] || m.flows[i].Paths[p].Crosses(m.target)
				}
			}
		}
		m.samples = append(m.samples, s)
	}
	m.samples = m.likely(m.samples)
	m.mark()
	return m
}

// mark says which jobs a plan for the target is meant for.
func (m *Model) mark() {
	m.affected, m.meant = make([]bool, len(m.jobs)), make([]bool, len(m.jobs))
	times, most := make([]int, len(m.jobs)), 0
	for _, s := range m.samples {
		for j, c := range s.crosses {
			if c {
				m.affected[j] = true
				times[j]++
				most = max(most, times[j])
			}
		}
	}
	for j, n := range times {
		m.meant[j] = n > 0 && (2*n >= len(m.samples) || n == most)
	}
}

// reported is what the largest connection of the job moves per step, bytes on the wire. The job knows best: its bytes
// per step do not depend on when counters were read. What it does not report is taken from the present rate.
func (m *Model) reported(t traffic.Job, j job) float64 {
	most := 0.0
	for _, i := range j.flows {
		nic, err := m.g.NIC(m.flows[i].Src)
		if err != nil || nic.Rail < 0 || nic.Rail >= len(t.BytesPerSecondByRail) || !(t.BytesPerSecondByRail[nic.Rail] > 0) || !j.timed {
			return j.level * j.step
		}
		most = max(most, t.BytesPerSecondByRail[nic.Rail]*traffic.WireOverhead*j.step/float64(max(1, m.flows[i].Connections)))
	}
	return most
}

// doubtBaselines forgets the baseline of jobs that are no slower than it although they share the target with others:
// a job that began on the crowded link has never been measured alone. What the links can carry bounds it then.
func (m *Model) doubtBaselines(samples []traffic.Assignment) {
	for j := range m.jobs {
		jb := &m.jobs[j]
		if jb.baseline <= 0 || jb.step > 1.1*jb.baseline {
			continue
		}
		shared := 0
		for _, a := range samples {
			mine, others := false, false
			for i, f := range m.flows {
				for _, p := range a[i] {
					if f.BytesPerSecond > 0 && f.Paths[p].Crosses(m.target) {
						mine = mine || f.JobID == jb.id
						others = others || f.JobID != jb.id
					}
				}
			}
			if mine && others {
				shared++
			}
		}
		if 2*shared >= len(samples) {
			jb.baseline = 0
		}
	}
}

// likely keeps the placements that go best with the measured step times: link loads alone do not say which of two
// equal flows is on the crowded link, but the job that is slow does. A slowness that no placement accounts for is
// the same for all and removes none.
func (m *Model) likely(all []sample) []sample {
	const slack = 0.10 // of a step time: no better than the model
	misfit := make([]float64, len(all))
	least := math.Inf(1)
	for k, s := range all {
		for j, jb := range m.jobs {
			if jb.timed {
				misfit[k] = max(misfit[k], s.now.mixed[j]/jb.step-1, 1-s.now.clashing[j]/jb.step)
			}
		}
		least = min(least, misfit[k])
	}
	var out []sample
	for k, s := range all {
		if misfit[k] <= least+slack {
			out = append(out, s)
		}
	}
	return out
}

func (m *Model) addJobs(jobs []traffic.Job) {
	for _, t := range jobs {
		j := job{id: t.ID, step: t.StepSeconds, collective: t.CollectiveSeconds, baseline: t.BaselineStepSeconds, timed: t.StepSeconds > 0}
		for i, f := range m.flows {
			if f.JobID == t.ID && f.BytesPerSecond > 0 {
				j.flows = append(j.flows, i)
				j.level = max(j.level, f.PerConnection())
			}
		}
		if j.level == 0 {
			continue
		}
		for _, i := range j.flows {
			j.share = append(j.share, m.flows[i].PerConnection()/j.level)
		}
		if !j.timed {
			j.step, j.collective = 1, 1
		}
		if j.collective <= 0 || j.collective > j.step {
			compute := 0.0
			for _, r := range t.Ranks {
				compute = max(compute, r.ComputeSeconds)
			}
			j.collective = max(j.step-compute, 0.01*j.step)
		}
		j.compute = j.step - j.collective
		j.volume = m.reported(t, j)
		m.jobs = append(m.jobs, j)
	}
}

// moved are the flows that routes touch, with the weights of their paths under them.
func (m *Model) moved(routes []plan.Route) map[int][]float64 {
	if len(routes) == 0 {
		return nil
	}
	all := traffic.NewTable(m.routes, routes)
	out := map[int][]float64{}
	for i, f := range m.flows {
		leaf, err := m.g.Leaf(f.Src)
		if err != nil || !concerns(routes, leaf, f) {
			continue
		}
		r, has := all.Find(leaf, f.Dst)
		out[i] = traffic.Weights(m.g, f.Paths, r, has)
	}
	return out
}

// place lays routes over a placement: flows of a switch that a route matches go where it says. Connections on
// weighted routes are drawn one by one.
func (m *Model) place(a traffic.Assignment, moved map[int][]float64, rng *rand.Rand) traffic.Assignment {
	if len(moved) == 0 {
		return a
	}
	out := append(traffic.Assignment(nil), a...)
	for i := range m.flows { // in order: draws must not depend on the order of a map
		if w, ok := moved[i]; ok {
			out[i] = draw(w, len(a[i]), rng)
		}
	}
	return out
}

func concerns(routes []plan.Route, leaf string, f traffic.Routed) bool {
	for _, r := range routes {
		if r.Switch == leaf && r.Prefix.Contains(f.Dst) {
			return true
		}
	}
	return false
}

func draw(weight []float64, n int, rng *rand.Rand) []int {
	sum := 0.0
	for _, w := range weight {
		sum += w
	}
	out := make([]int, n)
	for k := range out {
		at := rng.Float64() * sum
		for p, w := range weight {
			if w <= 0 {
				continue
			}
			out[k] = p
			if at -= w; at < 0 {
				break
			}
		}
	}
	return out
}
