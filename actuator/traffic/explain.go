// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// A model must reproduce the measured load of every link that it uses before it may forecast anything: within
// ToleranceOfSpeed of the link's speed or within ToleranceOfLoad of the measured load, whichever is wider.
const (
	ToleranceOfSpeed = 0.10
	ToleranceOfLoad  = 0.15
)

// Bounds of the search for placements. Counts, not times, so that the same input gives the same answer anywhere.
const (
	maxNodes   = 100_000 // nodes of the exact enumeration of one group of flows
	maxKept    = 1024    // placements of one group that are kept; more are counted and thinned by a fair draw
	maxCount   = 1e9     // counting stops here
	exactLog10 = 12      // groups with more than 10^12 placements are not enumerated
)

// Assignment says for every routed flow which of its paths each of its connections takes.
type Assignment [][]int

// Miss is a link that the model does not reproduce. Figures are bytes/s.
type Miss struct {
	Link     ident.Port `json:"link"`
	Measured float64    `json:"measured"`
	Modelled float64    `json:"modelled"`
	Speed    float64    `json:"speed"`
}

// Explanation is what the flows and the measured loads say together about which flow is where.
type Explanation struct {
	Fits    bool
	Reason  string     // for people, always set
	Worst   Miss       // of the nearest placement, among the links of the plan; zero when it has no measured link
	Missing ident.Port // a link of the plan whose load is not measured; zero when all are
	Count   int        // placements of the flows around the target that fit
	Exact   bool       // all of them were enumerated; else Count is how many a bounded search found
	Flows   []Routed
	Samples []Assignment // placements to forecast over: all of them when few, else a fair draw; never empty
	// Background is traffic in bytes/s, by link, that no flow explains, on links away from the target. The model
	// lets nobody else have it.
	Background []float64
	// Scope are the links that a plan for the target may touch: those on any path of any flow that may cross it.
	Scope []topo.LinkID
}

// Options of Explain.
type Options struct {
	Samples int    // most placements to forecast over
	Seed    uint64 // of the draw and of the bounded search
}

// Explain finds how the flows must be placed on their paths so that the measured loads come out. Routes of ours are
// known, the hash decisions of everything else are not: every placement of whole connections that reproduces the
// load of each link around the target (within the tolerances above) is as good as another. loads is bytes/s by
// link; a link that is missing is not measured.
//
// Flows fall into groups that share no link that they could choose; each group is solved on its own, exactly when
// it is small. Links that no flow near the target can use need not be explained: what is missing there counts as
// background.
func Explain(g *topo.Graph, flows []Routed, loads map[ident.Port]float64, target topo.LinkID, o Options) Explanation {
	o.Samples = max(1, o.Samples)
	e := explainer{g: g, flows: flows, o: o, measured: make([]float64, g.Len()), base: make([]float64, g.Len()), required: make([]bool, g.Len())}
	for id := range e.measured {
		if v, ok := loads[g.Link(topo.LinkID(id)).From]; ok {
			e.measured[id] = v
		} else {
			e.measured[id] = math.NaN()
		}
	}
	e.scope(target)
	groups := e.group()
	solved := make([]solution, len(groups))
	out := Explanation{Flows: flows, Count: 1, Exact: true, Fits: true, Scope: e.scopeList}
	for i, grp := range groups {
		solved[i] = e.solve(grp)
		if !grp.required {
			continue
		}
		out.Exact = out.Exact && solved[i].exact
		out.Count = int(min(maxCount, float64(out.Count)*float64(solved[i].count)))
	}
	out.Samples = e.nearest(e.combine(groups, solved))
	out.Background = make([]float64, g.Len())
	modelled := e.loads(out.Samples[0])
	worst := 0.0
	for id, m := range e.measured {
		miss := m - modelled[id]
		switch {
		case !e.required[id]:
			if miss > e.tolerance(topo.LinkID(id)) {
				out.Background[id] = miss
			}
		case math.IsNaN(m):
			l := g.Link(topo.LinkID(id))
			if out.Missing.IsZero() && (l.Direction == topo.Up || l.Direction == topo.Down) {
				out.Missing = l.From
			}
		default:
			if over := math.Abs(miss) / e.tolerance(topo.LinkID(id)); over >= worst {
				worst = over
				out.Worst = Miss{g.Link(topo.LinkID(id)).From, m, modelled[id], g.Link(topo.LinkID(id)).BytesPerSecond}
			}
		}
	}
	switch {
	case !out.Missing.IsZero():
		out.Fits = false
		out.Reason = fmt.Sprintf("does not explain the present: the load of link %s is not measured", out.Missing)
	case worst > 1:
		out.Fits = false
		out.Reason = fmt.Sprintf("does not explain the present: link %s carries %s measured and at best %s by the model (tolerance %.0f %% of its speed or %.0f %% of its load)",
			out.Worst.Link, megabytes(out.Worst.Measured), megabytes(out.Worst.Modelled), 100*ToleranceOfSpeed, 100*ToleranceOfLoad)
		if !out.Exact {
			out.Reason += "; there are too many placements to try all, and a bounded search found none that fits"
		}
	}
	if !out.Fits {
		out.Count = 0
		return out
	}
	out.Count = max(1, out.Count)
	how := "all enumerated"
	if !out.Exact {
		how = "found by a bounded search"
	}
	out.Reason = fmt.Sprintf("%d placements of flows on paths explain the present (%s)", out.Count, how)
	if out.Count == 1 {
		out.Reason = fmt.Sprintf("one placement of flows on paths explains the present (%s)", how)
	}
	return out
}

// megabytes spells bytes/s for people.
func megabytes(v float64) string { return fmt.Sprintf("%.1f MB/s", v/1e6) }

type explainer struct {
	g         *topo.Graph
	flows     []Routed
	o         Options
	measured  []float64 // by link; NaN = not measured
	base      []float64 // by link: what flows without a choice put there
	required  []bool    // by link: must be explained
	scopeList []topo.LinkID
}

// tolerance is how far the model may be off on a link, bytes/s.
func (e *explainer) tolerance(id topo.LinkID) float64 {
	return max(ToleranceOfSpeed*e.g.Link(id).BytesPerSecond, ToleranceOfLoad*e.measured[id])
}

func (e *explainer) scope(target topo.LinkID) {
	e.required[target] = true
	for _, f := range e.flows {
		crosses := false
		for _, p := range f.Paths {
			crosses = crosses || p.Crosses(target)
		}
		if !crosses {
			continue
		}
		for _, p := range f.Paths {
			for _, id := range p.Links {
				e.required[id] = true
			}
		}
	}
	for id, r := range e.required {
		if r {
			e.scopeList = append(e.scopeList, topo.LinkID(id))
		}
	}
}

// group holds flows that compete for the same links, by a choice that is not known.
type group struct {
	flows    []int
	required bool // it holds a link that must be explained
}

// group joins flows with a choice by the links that they could use, and puts the load of everything that has no
// choice into base: flows with one path, and the first and last link of every flow.
func (e *explainer) group() []group {
	parent := make([]int, e.g.Len())
	for i := range parent {
		parent[i] = i
	}
	var find func(int) int
	find = func(i int) int {
		if parent[i] != i {
			parent[i] = find(parent[i])
		}
		return parent[i]
	}
	var free []int
	for i, f := range e.flows {
		allowed := f.Allowed()
		links := f.Paths[allowed[0]].Links
		if len(allowed) == 1 {
			for _, id := range links {
				e.base[id] += f.BytesPerSecond
			}
			continue
		}
		e.base[links[0]] += f.BytesPerSecond
		e.base[links[len(links)-1]] += f.BytesPerSecond
		free = append(free, i)
		root := find(int(links[1]))
		for _, a := range allowed {
			for _, id := range middle(f.Paths[a]) {
				parent[find(int(id))] = root
			}
		}
	}
	at := map[int]int{}
	var out []group
	for _, i := range free {
		f := e.flows[i]
		first := f.Paths[f.Allowed()[0]].Links[1]
		root := find(int(first))
		n, ok := at[root]
		if !ok {
			n = len(out)
			at[root] = n
			out = append(out, group{})
		}
		out[n].flows = append(out[n].flows, i)
		for _, a := range f.Allowed() {
			for _, id := range middle(f.Paths[a]) {
				out[n].required = out[n].required || e.required[id]
			}
		}
	}
	return out
}

// middle is the part of a path that a hash decision can change.
func middle(p topo.Path) []topo.LinkID { return p.Links[1 : len(p.Links)-1] }

// loads is what a placement puts on every link, bytes/s.
func (e *explainer) loads(a Assignment) []float64 {
	out := make([]float64, e.g.Len())
	for i, f := range e.flows {
		for _, p := range a[i] {
			for _, id := range f.Paths[p].Links {
				out[id] += f.PerConnection()
			}
		}
	}
	return out
}

// combine joins the placements of all groups: every combination when there are few and they are equally likely,
// else a fair draw. Where many connections of a flow may be spread in several ways, a way that more hash results
// lead to is drawn more often.
func (e *explainer) combine(groups []group, solved []solution) []Assignment {
	fixed := make(Assignment, len(e.flows))
	for i, f := range e.flows {
		if allowed := f.Allowed(); len(allowed) == 1 {
			fixed[i] = slices.Repeat([]int{allowed[0]}, max(1, f.Connections))
		}
	}
	total, even := 1.0, true
	for _, s := range solved {
		total *= float64(len(s.placements))
		even = even && s.even
	}
	put := func(a Assignment, grp group, p placement) {
		for k, i := range grp.flows {
			a[i] = p.paths[k]
		}
	}
	if even && total <= float64(e.o.Samples) {
		out := []Assignment{fixed}
		for n, s := range solved {
			var next []Assignment
			for _, a := range out {
				for _, p := range s.placements {
					b := slices.Clone(a)
					put(b, groups[n], p)
					next = append(next, b)
				}
			}
			out = next
		}
		return out
	}
	rng := rand.New(rand.NewPCG(e.o.Seed, 0xc0b1))
	out := make([]Assignment, e.o.Samples)
	for k := range out {
		out[k] = slices.Clone(fixed)
		for n, s := range solved {
			put(out[k], groups[n], s.draw(rng))
		}
	}
	return out
}

// nearest keeps the placements whose worst miss around the target is not much wider than that of the best one: all
// that fit are possible, but one that is off by a whole tolerance where another is exact is not worth a forecast.
func (e *explainer) nearest(all []Assignment) []Assignment {
	const slack = 0.5 // of a tolerance: what two windows of the same counters may differ by
	worst := make([]float64, len(all))
	least := math.Inf(1)
	for k, a := range all {
		load := e.loads(a)
		for _, id := range e.scopeList {
			if m := e.measured[id]; !math.IsNaN(m) {
				worst[k] = max(worst[k], math.Abs(load[id]-m)/e.tolerance(id))
			}
		}
		least = min(least, worst[k])
	}
	var out []Assignment
	for k, a := range all {
		if worst[k] <= least+slack {
			out = append(out, a)
		}
	}
	return out
}

// placement is one way to place the flows of a group: by flow of the group, the path of each connection.
type placement struct {
	paths  [][]int
	weight float64 // in how many ways hashing leads to it
}

// solution are the placements of one group.
type solution struct {
	placements []placement // at least one: the nearest, when none fits
	count      int         // that fit
	exact      bool
	even       bool // all weights are the same
}

func (s solution) draw(rng *rand.Rand) placement {
	sum := 0.0
	for _, p := range s.placements {
		sum += p.weight
	}
	at := rng.Float64() * sum
	for _, p := range s.placements {
		if at -= p.weight; at < 0 {
			return p
		}
	}
	return s.placements[len(s.placements)-1]
}

// solve finds the placements of a group. When nothing explains all its links, a group with links of the plan is
// asked to explain those alone: what is odd far away becomes background.
func (e *explainer) solve(grp group) solution {
	s, complete := e.enumerate(grp, false)
	if complete && s.count == 0 && grp.required {
		s, complete = e.enumerate(grp, true)
	}
	if !complete || s.count == 0 {
		passes := maxPasses
		if complete {
			passes = nearPasses
		}
		near := e.search(grp, passes)
		if complete { // nothing fits: the search only says how near one comes
			near.count, near.exact = 0, true
			near.placements = near.placements[:1]
		}
		s = near
	}
	s.even = true
	for _, p := range s.placements {
		s.even = s.even && p.weight == s.placements[0].weight
	}
	return s
}
