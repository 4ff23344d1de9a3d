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
	g        *topo.Graph
	flows    []traffic.Routed
	jobs     []job
	capacity []float64 // by link, bytes/s that flows may share: efficiency times speed, less the background
	scope    []topo.LinkID
	target   topo.LinkID
	measured []float64 // by link, NaN = not measured
	table    traffic.Table
	routes   []plan.Route
	seed     uint64
	samples  []sample
	affected []bool // by job: may cross the target
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
	place traffic.Assignment
	now   figures
	load  []float64 // by link: measured rates on this placement
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
		target: in.Target, measured: in.Loads, table: traffic.NewTable(in.Routes), routes: in.Routes, seed: in.Seed,
	}
	for id := range m.capacity {
		m.capacity[id] = max(0, in.Efficiency*in.Graph.Link(topo.LinkID(id)).BytesPerSecond-in.Explanation.Background[id])
	}
	m.addJobs(in.Jobs)
	m.affected = make([]bool, len(m.jobs))
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
		for j, jb := range m.jobs {
			for _, i := range jb.flows {
				for _, p := range a[i] {
					m.affected[j] = m.affected[j] || m.flows[i].Paths[p].Crosses(m.target)
				}
			}
		}
		m.samples = append(m.samples, s)
	}
	return m
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
		j.volume = j.level * j.step
		m.jobs = append(m.jobs, j)
	}
}

// figures are the model's own step seconds for one placement, by job.
type figures struct {
	floor    []float64     // alone on its links, and not faster than its baseline
	mixed    []float64     // others send while this one computes: nothing of a link is wasted
	clashing []float64     // others send at random times: a slower bound
	tight    []topo.LinkID // the link that holds the job back while it sends
}

// figures works out both bounds of every job's step. Jobs compute and send in turns; how their turns fall is not
// known. At best they interleave, so that mean rates fill the links (max-min over mean rates, each job wanting no
// more than it could use alone). If turns are random, a job that sends finds each other job sending for the share
// of time that it spends in its collective, and then shares the link with it.
func (m *Model) figures(a traffic.Assignment) figures {
	n := len(m.jobs)
	f := figures{floor: make([]float64, n), mixed: make([]float64, n), clashing: make([]float64, n), tight: make([]topo.LinkID, n)}
	users := make([]user, n)
	scratch := make([]float64, m.g.Len())
	for j, jb := range m.jobs {
		var touched []int
		for k, i := range jb.flows {
			for _, p := range a[i] {
				for _, id := range m.flows[i].Paths[p].Links {
					if scratch[id] == 0 {
						touched = append(touched, int(id))
					}
					scratch[id] += jb.share[k]
				}
			}
		}
		alone := 0.0
		for _, id := range touched {
			users[j].uses = append(users[j].uses, use{id, scratch[id]})
			alone = max(alone, jb.volume*scratch[id]/max(m.capacity[id], 1))
			scratch[id] = 0
		}
		f.floor[j] = jb.compute + alone
		if jb.baseline > 0 {
			f.floor[j] = max(f.floor[j], min(jb.baseline, jb.step))
		}
		if !jb.timed {
			f.floor[j] = max(f.floor[j], jb.step)
		}
		users[j].most = jb.volume / f.floor[j]
	}
	level := fill(users, m.capacity)
	total := scratch                    // by link: mean rate of all jobs
	crowd := make([]float64, m.g.Len()) // by link: connections, each counted for the share of time that it sends
	duty := make([]float64, n)
	for j, jb := range m.jobs {
		f.mixed[j] = jb.volume / max(level[j], 1e-9*jb.level)
		duty[j] = 1 - jb.compute/f.mixed[j]
		for _, u := range users[j].uses {
			total[u.link] += u.by * level[j]
			crowd[u.link] += u.by * duty[j]
		}
	}
	for j, jb := range m.jobs {
		pace := math.Inf(1)
		for _, u := range users[j].uses {
			c := m.capacity[u.link]
			fair := c / (u.by + max(0, crowd[u.link]-u.by*duty[j]))
			rest := (c - (total[u.link] - u.by*level[j])) / u.by
			if here := max(fair, rest); here < pace {
				pace, f.tight[j] = here, topo.LinkID(u.link)
			}
		}
		f.clashing[j] = max(f.mixed[j], f.floor[j], jb.compute+jb.volume/max(pace, 1e-9*jb.level))
	}
	return f
}

// place lays routes over a placement: flows of a switch that a route matches go where it says. Connections on
// weighted routes are drawn one by one.
func (m *Model) place(a traffic.Assignment, routes []plan.Route, rng *rand.Rand) traffic.Assignment {
	if len(routes) == 0 {
		return a
	}
	all := traffic.NewTable(m.routes, routes)
	out := append(traffic.Assignment(nil), a...)
	for i, f := range m.flows {
		leaf, err := m.g.Leaf(f.Src)
		if err != nil || !concerns(routes, leaf, f) {
			continue
		}
		r, has := all.Find(leaf, f.Dst)
		out[i] = draw(traffic.Weights(m.g, f.Paths, r, has), len(a[i]), rng)
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
