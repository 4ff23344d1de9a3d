// SPDX-License-Identifier: Apache-2.0

// Package sim forecasts what routes do to links and jobs: max-min fair sharing of directed links, with all flows of
// a collective bound to one pace. It is the only simulator of the product: decisions, the what-if sandbox and the
// benchmarks use the same code. It never reads a clock, and all its draws are seeded.
package sim

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Flow is one stream for MaxMin.
type Flow struct {
	Links  []ident.Port
	Weight float64 // relative share at a bottleneck; 0 means 1
	Demand float64 // most that it wants, in the unit of the capacities; 0 means no bound
}

// MaxMin gives every flow its weighted max-min fair rate, by progressive filling: all rates rise together, in
// proportion to their weights, until a link is full or a demand is met; who is held by it stays, the others go on.
// A flow that crosses no link and has no demand would rise for ever: that is an error, as is a link without
// capacity in the map.
func MaxMin(flows []Flow, capacity map[ident.Port]float64) ([]float64, error) {
	ids := map[ident.Port]int{}
	var caps []float64
	users := make([]user, len(flows))
	for i, f := range flows {
		w := f.Weight
		if w == 0 {
			w = 1
		}
		if w < 0 || f.Demand < 0 || math.IsNaN(w) || math.IsNaN(f.Demand) {
			return nil, fmt.Errorf("flow %d: weight %v and demand %v must not be negative", i, f.Weight, f.Demand)
		}
		if len(f.Links) == 0 && f.Demand == 0 {
			return nil, fmt.Errorf("flow %d: no link and no demand bound its rate", i)
		}
		users[i].weight, users[i].most = w, math.Inf(1)
		if f.Demand > 0 {
			users[i].most = f.Demand
		}
		for _, l := range f.Links {
			id, ok := ids[l]
			if !ok {
				c, known := capacity[l]
				if !known || c < 0 || math.IsNaN(c) {
					return nil, fmt.Errorf("link %s: capacity %v is not known or negative", l, c)
				}
				id = len(caps)
				ids[l] = id
				caps = append(caps, c)
			}
			users[i].uses = append(users[i].uses, use{id, 1})
		}
	}
	return newFiller(len(caps)).fill(users, caps), nil
}

// use is how much of a link's capacity a user takes per unit of its level.
type use struct {
	link int
	by   float64
}

// user is whoever shares links: a flow, or a whole job whose flows keep one pace.
type user struct {
	uses   []use
	weight float64 // how fast its level rises
	most   float64 // level that it does not pass
}

// filler holds the memory that filling needs, since a decision fills thousands of times. Between two fills all of
// it is zero.
type filler struct {
	left   []float64 // by link: capacity not yet taken for good
	active []float64 // by link: what is taken per unit of the water level by users that still rise
	rising []int     // by link: users that still rise
	on     [][]int   // by link: all users
	links  []int     // in use
}

func newFiller(links int) *filler {
	return &filler{left: make([]float64, links), active: make([]float64, links), rising: make([]int, links), on: make([][]int, links)}
}

// open lists the links that may fill up, with who uses them. A link that could carry all that its users want at
// most is none of them: on a large fabric that leaves few.
func (f *filler) open(users []user, capacity []float64) {
	f.links = f.links[:0]
	for _, u := range users {
		for _, x := range u.uses {
			if x.by <= 0 {
				continue
			}
			if f.left[x.link] == 0 {
				f.links = append(f.links, x.link)
				f.left[x.link] = math.SmallestNonzeroFloat64
			}
			f.left[x.link] += x.by * u.most
		}
	}
	may := f.links[:0]
	for _, l := range f.links {
		const slack = 1e-9
		if f.left[l] > capacity[l]*(1-slack) {
			may = append(may, l)
			f.rising[l] = 1 // marks the link for the loop below
			f.left[l] = capacity[l]
		} else {
			f.left[l] = 0
		}
	}
	f.links = may
	for i, u := range users {
		for _, x := range u.uses {
			if x.by <= 0 || f.rising[x.link] == 0 {
				continue
			}
			f.active[x.link] += x.by * u.weight
			f.on[x.link] = append(f.on[x.link], i)
			f.rising[x.link] = len(f.on[x.link])
		}
	}
}

// close leaves all memory zero again.
func (f *filler) close() {
	for _, l := range f.links {
		f.left[l], f.active[l], f.rising[l], f.on[l] = 0, 0, 0, f.on[l][:0]
	}
}

// fill raises the water, and with it the levels of all users by their weights, and returns where each one stops.
// A user who is stopped by one of its links leaves its share of all its other links to the rest: that is the
// coupling of a collective.
func (f *filler) fill(users []user, capacity []float64) []float64 {
	level := make([]float64, len(users))
	stopped := make([]bool, len(users))
	f.open(users, capacity)
	defer f.close()
	links := append([]int(nil), f.links...)
	for i, u := range users {
		bound := false
		for _, x := range u.uses {
			bound = bound || x.by > 0 && f.rising[x.link] > 0
		}
		if !bound && !math.IsInf(u.most, 1) { // no link can stop it
			stopped[i], level[i] = true, u.most
		}
	}
	var done []int
	const slack = 1e-12 // relative: links that fill up at the same water are full in the same round
	for range users {   // each round stops one user at least
		water := math.Inf(1)
		for i, u := range users {
			if !stopped[i] {
				water = min(water, u.most/u.weight)
			}
		}
		keep := links[:0]
		for _, l := range links {
			if f.rising[l] > 0 {
				keep = append(keep, l)
				water = min(water, max(0, f.left[l])/f.active[l])
			}
		}
		links = keep
		if math.IsInf(water, 1) { // all have stopped: MaxMin refuses users that nothing bounds
			return level
		}
		// Collect first, stop after: stopping changes what the tests look at.
		done = done[:0]
		for i, u := range users {
			if !stopped[i] && u.most/u.weight <= water*(1+slack) {
				done = append(done, i)
			}
		}
		for _, l := range links {
			if max(0, f.left[l])/f.active[l] <= water*(1+slack) {
				done = append(done, f.on[l]...)
			}
		}
		for _, i := range done {
			if stopped[i] {
				continue
			}
			u := users[i]
			stopped[i], level[i] = true, min(water*u.weight, u.most)
			for _, x := range u.uses {
				if x.by > 0 && f.rising[x.link] > 0 {
					f.left[x.link] -= x.by * level[i]
					f.active[x.link] -= x.by * u.weight
					f.rising[x.link]--
				}
			}
		}
	}
	return level
}
