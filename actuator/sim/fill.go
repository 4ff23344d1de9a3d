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
		users[i].most = math.Inf(1)
		if f.Demand > 0 {
			users[i].most = f.Demand / w
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
			users[i].uses = append(users[i].uses, use{id, w})
		}
	}
	rates := fill(users, caps)
	for i, f := range flows {
		if f.Weight != 0 {
			rates[i] *= f.Weight
		}
	}
	return rates, nil
}

// use is how much of a link's capacity a user takes per unit of its level.
type use struct {
	link int
	by   float64
}

// user is whoever shares links: a flow, or a whole job whose flows keep one pace.
type user struct {
	uses []use
	most float64 // level that it does not pass
}

// fill raises the levels of all users together and returns where each one stops. A user who is stopped by one of
// its links leaves its share of all its other links to the rest: that is the coupling of a collective.
func fill(users []user, capacity []float64) []float64 {
	level := make([]float64, len(users))
	left := append([]float64(nil), capacity...)
	active := make([]float64, len(capacity)) // sum of the uses of users that still rise
	on := make([][]int, len(capacity))
	var links []int
	rising := 0
	stopped := make([]bool, len(users))
	for i, u := range users {
		rising++
		for _, x := range u.uses {
			if x.by <= 0 {
				continue
			}
			if on[x.link] == nil {
				links = append(links, x.link)
			}
			active[x.link] += x.by
			on[x.link] = append(on[x.link], i)
		}
	}
	stop := func(i int, at float64) {
		if stopped[i] {
			return
		}
		stopped[i], level[i] = true, at
		rising--
		for _, x := range users[i].uses {
			left[x.link] -= x.by * at
			active[x.link] -= x.by
		}
	}
	const slack = 1e-12 // relative: links that fill up at the same level are stopped in the same round
	for rising > 0 {
		at := math.Inf(1)
		for i, u := range users {
			if !stopped[i] {
				at = min(at, u.most)
			}
		}
		keep := links[:0]
		for _, l := range links {
			if !anyRising(on[l], stopped) {
				continue
			}
			keep = append(keep, l)
			at = min(at, max(0, left[l])/active[l])
		}
		links = keep
		if math.IsInf(at, 1) { // nothing bounds the rest; MaxMin refuses this before
			return level
		}
		// Collect first, stop after: stopping changes what the test below looks at.
		var done []int
		for i, u := range users {
			if !stopped[i] && u.most <= at*(1+slack) {
				done = append(done, i)
			}
		}
		for _, l := range links {
			if max(0, left[l])/active[l] <= at*(1+slack) {
				for _, i := range on[l] {
					if !stopped[i] {
						done = append(done, i)
					}
				}
			}
		}
		for _, i := range done {
			stop(i, min(at, users[i].most))
		}
	}
	return level
}

func anyRising(users []int, stopped []bool) bool {
	for _, i := range users {
		if !stopped[i] {
			return true
		}
	}
	return false
}
