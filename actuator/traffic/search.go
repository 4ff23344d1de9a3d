// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trainyard/trainyard/actuator/topo"
)

// Bounds of the local search.
const (
	maxTries    = 4e6 // connections tried on paths: about a quarter of a second
	searchStale = 40  // kicks without a new placement before a fresh start
	maxPasses   = 4000
	nearPasses  = 40 // when it is known that nothing fits, and only the nearest is wanted
)

// search looks for placements of a group that is too large to enumerate: start from a greedy placement in random
// order, move single connections to where the squared misses fall, swap pairs, kick what is still wrong. It
// returns the distinct placements that fit, or the nearest one with count 0. passes bounds it, over all connections.
func (e *explainer) search(grp group, passes int) solution {
	c := climber{e: e, rng: rand.New(rand.NewPCG(e.o.Seed, 0x5ea7c4)), load: make([]float64, e.g.Len()), per: make([]float64, e.g.Len())}
	for id, m := range e.measured {
		if !math.IsNaN(m) {
			c.per[id] = 1 / e.tolerance(topo.LinkID(id))
		}
	}
	for k, i := range grp.flows {
		f := e.flows[i]
		for range max(1, f.Connections) {
			first := middle(f.Paths[0])
			c.units = append(c.units, unit{k, f.PerConnection(), f.Allowed(), f.Paths, first[0], first[len(first)-1]})
		}
	}
	c.at = make([]int, len(c.units))
	listed := make([]bool, e.g.Len())
	for _, i := range grp.flows {
		for _, a := range e.flows[i].Allowed() {
			for _, id := range middle(e.flows[i].Paths[a]) {
				if !listed[id] && !math.IsNaN(e.measured[id]) {
					listed[id] = true
					c.links = append(c.links, id)
				}
			}
		}
	}
	var s solution
	var nearest placement
	best := math.Inf(1)
	seen := map[string]bool{}
	choices := 0
	for _, u := range c.units {
		choices += len(u.allowed)
	}
	most := min(passes, max(100, maxTries/choices))
	for c.passes < most && len(s.placements) < e.o.Samples {
		c.start()
		for stale := 0; stale < searchStale && c.passes < most && len(s.placements) < e.o.Samples; stale++ {
			c.descend()
			worst, cost := c.worst(grp.required)
			if cost < best {
				best, nearest = cost, c.placement(len(grp.flows))
			}
			if worst <= 1 {
				p := c.placement(len(grp.flows))
				if key := fmt.Sprint(p.paths); !seen[key] {
					seen[key] = true
					s.placements, stale = append(s.placements, p), 0
				}
			}
			c.kick()
		}
	}
	s.count = len(s.placements)
	if s.count == 0 {
		s.placements = []placement{nearest}
	}
	return s
}

// unit is one connection with the paths that it may take.
type unit struct {
	flow    int // place in the group
	rate    float64
	allowed []int
	paths   []topo.Path
	// Units whose first path begins or ends with the same link have their leaf in common: only they can help each
	// other by an exchange.
	begin, end topo.LinkID
}

type climber struct {
	e      *explainer
	rng    *rand.Rand
	units  []unit
	at     []int // path of each unit, -1 = not placed
	load   []float64
	per    []float64 // by link: 1 / tolerance; 0 = not measured
	links  []topo.LinkID
	passes int
}

func (c *climber) start() {
	copy(c.load, c.e.base)
	for u := range c.at {
		c.at[u] = -1
	}
	for _, u := range c.rng.Perm(len(c.units)) {
		c.move(u, c.bestPath(u))
	}
	c.passes++
}

func (c *climber) move(u, to int) {
	un := c.units[u]
	if c.at[u] >= 0 {
		for _, id := range middle(un.paths[c.at[u]]) {
			c.load[id] -= un.rate
		}
	}
	if c.at[u] = to; to >= 0 {
		for _, id := range middle(un.paths[to]) {
			c.load[id] += un.rate
		}
	}
}

// cost of a link: squared miss in units of its tolerance. A link that is not measured costs nothing.
func (c *climber) cost(id topo.LinkID) float64 {
	if c.per[id] == 0 {
		return 0
	}
	d := (c.load[id] - c.e.measured[id]) * c.per[id]
	return d * d
}

// delta is how the cost of the path's links changes when rate is added.
func (c *climber) delta(p topo.Path, rate float64) float64 {
	sum := 0.0
	for _, id := range middle(p) {
		sum -= c.cost(id)
		c.load[id] += rate
		sum += c.cost(id)
		c.load[id] -= rate
	}
	return sum
}

// bestPath is where an unplaced unit does best; the present path is taken out of the account first. Among equals
// the draw decides, so that different starts find different placements.
func (c *climber) bestPath(u int) int {
	un := c.units[u]
	best, cost, ties := un.allowed[0], math.Inf(1), 0
	for _, p := range un.allowed {
		switch d := c.delta(un.paths[p], un.rate); {
		case d < cost-1e-9:
			best, cost, ties = p, d, 1
		case d < cost+1e-9:
			if ties++; c.rng.IntN(ties) == 0 {
				best = p
			}
		}
	}
	return best
}

// descend moves single units, then swaps pairs, until nothing falls any more.
func (c *climber) descend() {
	for range 8 {
		moved := false
		for _, u := range c.rng.Perm(len(c.units)) {
			old := c.at[u]
			c.move(u, -1)
			stay := c.delta(c.units[u].paths[old], c.units[u].rate)
			to := c.bestPath(u)
			if c.delta(c.units[u].paths[to], c.units[u].rate) > stay-1e-9 {
				to = old
			}
			moved = moved || to != old
			c.move(u, to)
		}
		c.passes++
		if !moved && !c.swap() {
			return
		}
	}
}

// swap tries to exchange the vias of a unit on a link that misses with every other unit that has both paths.
func (c *climber) swap() bool {
	var touched []topo.LinkID
	for u := range c.units {
		if !c.misses(u) {
			continue
		}
		for v := range c.units {
			pu, pv := c.at[u], c.at[v]
			if c.units[u].begin != c.units[v].begin && c.units[u].end != c.units[v].end {
				continue
			}
			if u == v || pu == pv || c.units[u].rate == c.units[v].rate && c.units[u].flow == c.units[v].flow {
				continue
			}
			if !c.has(u, pv) || !c.has(v, pu) ||
				c.units[u].paths[pv].Via != c.units[v].paths[pv].Via || c.units[v].paths[pu].Via != c.units[u].paths[pu].Via {
				continue
			}
			touched = c.touched(touched[:0], u, v, pu, pv)
			before := c.costOf(touched)
			c.move(u, pv)
			c.move(v, pu)
			if c.costOf(touched) < before-1e-9 {
				return true
			}
			c.move(u, pu)
			c.move(v, pv)
		}
	}
	return false
}

// has says whether the unit may take the path.
func (c *climber) has(u, p int) bool { return slices.Contains(c.units[u].allowed, p) }

// misses says whether the unit crosses a link that is off by more than its tolerance.
func (c *climber) misses(u int) bool {
	for _, id := range middle(c.units[u].paths[c.at[u]]) {
		if c.cost(id) > 1 {
			return true
		}
	}
	return false
}

// touched lists the links whose load an exchange of two units between two paths can change, each once.
func (c *climber) touched(out []topo.LinkID, u, v, p, q int) []topo.LinkID {
	for _, path := range []topo.Path{c.units[u].paths[p], c.units[u].paths[q], c.units[v].paths[p], c.units[v].paths[q]} {
		for _, id := range middle(path) {
			if !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

func (c *climber) costOf(links []topo.LinkID) float64 {
	sum := 0.0
	for _, id := range links {
		sum += c.cost(id)
	}
	return sum
}

// worst is the largest miss in units of tolerance, over the links that must be explained or over all, and the
// total cost.
func (c *climber) worst(requiredOnly bool) (worst, cost float64) {
	for _, id := range c.links {
		v := c.cost(id)
		cost += v
		if !requiredOnly || c.e.required[id] {
			worst = max(worst, v)
		}
	}
	return worst, cost
}

// kick re-places a few connections at random: one that crosses the worst link and some others.
func (c *climber) kick() {
	for k := range 1 + min(4, len(c.units)/8) {
		u := c.rng.IntN(len(c.units))
		if k == 0 {
			for v := range c.units {
				if c.misses(v) {
					u = v
					break
				}
			}
		}
		un := c.units[u]
		c.move(u, un.allowed[c.rng.IntN(len(un.allowed))])
	}
}

// placement copies the present state.
func (c *climber) placement(flows int) placement {
	p := placement{paths: make([][]int, flows), weight: 1}
	for u, un := range c.units {
		p.paths[un.flow] = append(p.paths[un.flow], c.at[u])
	}
	for _, a := range p.paths {
		slices.Sort(a)
	}
	return p
}
