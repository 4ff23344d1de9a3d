// SPDX-License-Identifier: Apache-2.0

// Package decide finds out why a link is congested and what, if anything, should be done about it. It reads one
// Snapshot and returns a Proposal; it has no clock, does no I/O and draws nothing without the seed: the same input
// gives the same proposal, on a laptop and in a replay. In doubt it proposes to do nothing, and says why.
package decide

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/route"
	"github.com/trainyard/trainyard/actuator/sim"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/traffic"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Proposal is the whole answer about one target, for people and for guard.
type Proposal struct {
	Diagnosis  fault.Diagnosis `json:"diagnosis"`
	Matrix     traffic.Matrix  `json:"matrix"`
	Explains   bool            `json:"explains"`   // the matrix reproduces the measured loads around the target
	Candidates []plan.Plan     `json:"candidates"` // "do nothing" first, then the best others, each with its forecast
	Chosen     *plan.Plan      `json:"chosen"`     // nil = do nothing
	Reason     string          `json:"reason"`     // for people, always set
	Notes      []string        `json:"notes"`      // what was left out or not known, in words
}

// maxShown bounds the candidates that a proposal carries besides "do nothing".
const maxShown = 8

// Propose looks into one link. current are our routes in force.
func Propose(s fleet.Snapshot, target ident.Port, limits Limits, current []plan.Route, seed uint64) Proposal {
	c, err := newInquiry(s, target, limits, current, seed)
	if err != nil {
		return Proposal{
			Diagnosis:  fault.Diagnosis{Cause: fault.Unknown, Culprit: target.String(), Reason: err.Error()},
			Candidates: []plan.Plan{{Target: target, Summary: "do nothing"}},
			Reason:     "do nothing: " + err.Error(),
			Notes:      s.Problems,
		}
	}
	p := Proposal{Diagnosis: c.diagnose(), Matrix: c.matrix, Explains: c.expl.Fits, Notes: c.notes}
	nothing := plan.Plan{Target: target, Summary: "do nothing"}
	nothing.Forecast = c.model.Run(nil).Forecast()
	nothing.Forecast.Assignments = c.expl.Count
	p.Candidates = []plan.Plan{nothing}
	switch {
	case p.Diagnosis.Cause == fault.Oversubscribed:
		p.Reason = "nothing better: " + p.Diagnosis.Reason
		return p
	case !p.Diagnosis.Cause.Reroutable():
		p.Reason = fmt.Sprintf("do nothing: %s: %s", p.Diagnosis.Cause, p.Diagnosis.Reason)
		return p
	}
	found, refused := c.candidates()
	p.Notes = append(p.Notes, refused...)
	c.choose(&p, found, refused)
	return p
}

// inquiry is one decision in the making.
type inquiry struct {
	s        fleet.Snapshot
	g        *topo.Graph
	target   ident.Port
	id       topo.LinkID
	limits   Limits
	current  []plan.Route
	seed     uint64
	matrix   traffic.Matrix
	flows    []traffic.Routed
	loads    []float64 // by link, bytes/s; NaN = not measured
	expl     traffic.Explanation
	model    *sim.Model
	crossing []traffic.Job // jobs with a flow that may cross the target
	use      float64       // of the target; NaN = not measured
	peers    float64       // mean use of its live peers
	// livePeers counts the peers that are up and measured.
	livePeers int
	notes     []string
}

func newInquiry(s fleet.Snapshot, target ident.Port, limits Limits, current []plan.Route, seed uint64) (*inquiry, error) {
	s.Jobs = traffic.Named(s.Jobs)
	c := &inquiry{s: s, target: target, limits: limits, current: current, seed: seed, notes: slices.Clone(s.Problems)}
	if err := limits.Validate(); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	c.g = topo.NewGraph(s.Fabric)
	var err error
	if c.id, err = c.g.ID(target); err != nil {
		return nil, err
	}
	if l := c.g.Link(c.id); !(l.BytesPerSecond > 0) {
		return nil, fmt.Errorf("link %s: its speed is not known", target)
	}
	var problems []string
	transmit := nicRates(s)
	c.matrix, problems = traffic.Ring(s.Jobs, transmit)
	c.notes = append(c.notes, problems...)
	c.flows, problems = traffic.Route(c.g, c.matrix, traffic.NewTable(current))
	c.notes = append(c.notes, problems...)
	c.explain(transmit)
	c.look()
	c.model = sim.New(sim.Input{
		Graph: c.g, Explanation: c.expl, Jobs: s.Jobs, Loads: c.loads, Target: c.id, Routes: current,
		Efficiency: c.efficiency(), Seed: seed,
	})
	return c, nil
}

// explain places the flows. Where the rates that the jobs report do not go with the links' loads, counters are
// tried: first those of the leaves' ports, which are read together with those of the links, then those of the NICs.
// Reports and counters are read at different moments, and while traffic changes they disagree.
func (c *inquiry) explain(transmit map[netip.Addr]float64) {
	o := traffic.Options{Samples: c.limits.Samples, Seed: c.seed}
	c.expl = traffic.Explain(c.g, c.flows, c.measure(), c.id, o)
	if c.expl.Fits {
		return
	}
	first := c.flows
	ports := maps.Clone(transmit)
	for a, n := range c.s.Fabric.NICs {
		if l, ok := c.s.Links[n.Port()]; ok {
			ports[a] = l.BytesPerSecond
		}
	}
	for _, try := range []struct {
		rates map[netip.Addr]float64
		name  string
	}{{ports, "counters of the leaves' ports"}, {transmit, "counters of the nics"}} {
		m, ok := traffic.ByNIC(c.matrix, try.rates, try.name)
		if !ok {
			continue
		}
		c.flows, _ = traffic.Route(c.g, m, traffic.NewTable(c.current)) // its problems are those of the first matrix
		if e := traffic.Explain(c.g, c.flows, c.measure(), c.id, o); e.Fits {
			c.notes = append(c.notes, "rates of the flows are taken from the "+try.name+", since with what the jobs report the matrix "+c.expl.Reason)
			c.matrix, c.expl = m, e
			return
		}
	}
	c.flows = first
	c.measure()
}

// measure gathers the load of every link. The links of a node have two counters, one at the NIC and one at the
// leaf's port, which are read at different moments: they are unexplained when neither goes with the flows.
func (c *inquiry) measure() map[ident.Port]float64 {
	sends, takes := map[netip.Addr]float64{}, map[netip.Addr]float64{}
	for _, f := range c.flows {
		sends[f.Src] += f.BytesPerSecond
		takes[f.Dst] += f.BytesPerSecond
	}
	loads := map[ident.Port]float64{}
	for p, l := range c.s.Links {
		loads[p] = l.BytesPerSecond
	}
	nearest := func(link ident.Port, other, model float64) {
		if v, ok := loads[link]; !ok || math.Abs(other-model) < math.Abs(v-model) {
			loads[link] = other
		}
	}
	for a, n := range c.s.Fabric.NICs {
		if nic, ok := c.s.NICs[a]; ok {
			nearest(n.Port(), nic.TransmitBytesPerSecond, sends[a])
			nearest(n.Attached, nic.ReceiveBytesPerSecond, takes[a])
		}
	}
	c.loads = make([]float64, c.g.Len())
	for id := range c.loads {
		c.loads[id] = math.NaN()
		if v, ok := loads[c.g.Link(topo.LinkID(id)).From]; ok {
			c.loads[id] = v
		}
	}
	return loads
}

// look sets what the first questions are about: the use of the target and its peers, and whose flows cross it.
func (c *inquiry) look() {
	c.use = c.loads[c.id] / c.g.Link(c.id).BytesPerSecond
	for _, p := range c.g.Peers(c.id) {
		l := c.g.Link(p)
		if l.Up && !math.IsNaN(c.loads[p]) {
			c.peers += c.loads[p] / l.BytesPerSecond
			c.livePeers++
		}
	}
	c.peers /= max(1, float64(c.livePeers))
	ids := map[string]bool{}
	for _, f := range c.flows {
		if mayCross(f, c.id) {
			ids[f.JobID] = true
		}
	}
	for _, j := range c.s.Jobs {
		if ids[j.ID] {
			c.crossing = append(c.crossing, j)
		}
	}
}

// efficiency is what a link can really carry: the configured share, or more when some link carries more right now.
func (c *inquiry) efficiency() float64 {
	e := c.limits.Efficiency
	for id, load := range c.loads {
		if !math.IsNaN(load) {
			e = max(e, min(1, load/c.g.Link(topo.LinkID(id)).BytesPerSecond))
		}
	}
	return e
}

func nicRates(s fleet.Snapshot) map[netip.Addr]float64 {
	out := map[netip.Addr]float64{}
	for a, n := range s.NICs {
		out[a] = n.TransmitBytesPerSecond
	}
	return out
}

// candidate is a combination of moves with its simulated effect.
type candidate struct {
	plan  plan.Plan
	moves []route.Move
	run   sim.Run
	gain  float64 // expected over the placements
}

// candidates tries single moves off the target, then adds moves off whatever link still holds the affected jobs
// back: a ring that collides twice gains nothing before both collisions are gone. The best few of each length are
// extended, and the number of simulations is bounded, so that a large fabric costs quality and not time.
func (c *inquiry) candidates() ([]candidate, []string) {
	const beam = 6
	field := route.Field{Graph: c.g, Flows: c.flows, Loads: c.loads, Current: c.current, Budget: c.limits.budget(), Sick: c.sickLinks()}
	first, refused := field.Off(c.id)
	runs := 0
	tried := map[string]bool{}
	try := func(moves []route.Move) (candidate, bool) {
		p, err := field.Combine(c.id, moves...)
		if err != nil {
			return candidate{}, false
		}
		name := spell(p)
		if tried[name] || runs >= c.limits.MaxRuns {
			return candidate{}, false
		}
		tried[name] = true
		runs++
		run := c.model.Run(routes(p))
		return candidate{p, moves, run, run.Expected()}, true
	}
	var all, level []candidate
	for _, m := range first {
		if x, ok := try([]route.Move{m}); ok {
			level = append(level, x)
		}
	}
	for steps := 1; len(level) > 0; steps++ {
		all = append(all, level...)
		if steps >= c.limits.MaxSteps {
			break
		}
		slices.SortStableFunc(level, better)
		var next []candidate
		for _, x := range level[:min(beam, len(level))] {
			for _, tight := range x.run.Tight() {
				more, _ := field.Off(tight)
				for _, m := range more {
					if y, ok := try(append(slices.Clone(x.moves), m)); ok && better(y, x) < 0 {
						next = append(next, y)
					}
				}
			}
		}
		level = next
	}
	if runs >= c.limits.MaxRuns {
		refused = append(refused, fmt.Sprintf("more than %d candidates: a bounded search looked at the ones with most room first", c.limits.MaxRuns))
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if d := math.Round(100*b.gain) - math.Round(100*a.gain); d != 0 {
			return int(d)
		}
		return len(a.moves) - len(b.moves)
	})
	return all, refused
}

// better orders candidates while they are extended: more gain first, then what is less crowded: a move that takes
// away one of two collisions shows no gain yet.
func better(a, b candidate) int {
	if d := math.Round(100*b.gain) - math.Round(100*a.gain); d != 0 {
		return int(d)
	}
	if x, y := a.run.Crowding(), b.run.Crowding(); math.Abs(x-y) > 1e-6 {
		if x < y {
			return -1
		}
		return 1
	}
	return len(a.moves) - len(b.moves)
}

// sickLinks are links that no plan may lead traffic to, with what is wrong with them.
func (c *inquiry) sickLinks() map[topo.LinkID]string {
	out := map[topo.LinkID]string{}
	for id := range topo.LinkID(c.g.Len()) {
		if what, _ := c.sickness(id); what != "" {
			out[id] = what
		}
	}
	return out
}

func routes(p plan.Plan) []plan.Route {
	out := make([]plan.Route, len(p.Steps))
	for i, s := range p.Steps {
		out[i] = s.Route
	}
	return out
}

func spell(p plan.Plan) string {
	lines := make([]string, len(p.Steps))
	for i, s := range p.Steps {
		lines[i] = s.Route.String()
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}
