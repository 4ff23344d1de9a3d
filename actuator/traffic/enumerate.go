// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trainyard/trainyard/actuator/topo"
)

// enumerate walks over all placements of a group, biggest flows first, and leaves a branch as soon as a link has
// too much or can no longer get enough. It returns false when the group is too large to finish. With requiredOnly,
// links that need not be explained do not count.
func (e *explainer) enumerate(grp group, requiredOnly bool) (solution, bool) {
	order := slices.Clone(grp.flows)
	slices.SortStableFunc(order, func(a, b int) int {
		switch d := e.flows[b].BytesPerSecond - e.flows[a].BytesPerSecond; {
		case d > 0:
			return 1
		case d < 0:
			return -1
		}
		return a - b
	})
	place := map[int]int{} // flow -> its place in grp.flows
	for k, i := range grp.flows {
		place[i] = k
	}
	w := walker{e: e, requiredOnly: requiredOnly, place: place, order: order, load: slices.Clone(e.base), room: make([]float64, e.g.Len()), rng: rand.New(rand.NewPCG(e.o.Seed, 0xe11))}
	size := 0.0
	for _, i := range order {
		f := e.flows[i]
		opts := spreads(max(1, f.Connections), f.Allowed(), f.Weight)
		if opts == nil {
			return solution{}, false
		}
		size += math.Log10(float64(len(opts)))
		w.options = append(w.options, opts)
		for _, id := range e.choices(f) {
			w.room[id] += f.BytesPerSecond
		}
	}
	if size > exactLog10 {
		return solution{}, false
	}
	w.chosen = make([]spread, len(order))
	if !w.walk(0) {
		return solution{}, false
	}
	return solution{placements: w.kept, count: w.count, exact: true}, true
}

// choices lists the links that some allowed path of the flow crosses between its first and its last, each once.
func (e *explainer) choices(f Routed) []topo.LinkID {
	var out []topo.LinkID
	for _, a := range f.Allowed() {
		for _, id := range middle(f.Paths[a]) {
			if !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// spread is one way to put the connections of a flow on its paths.
type spread struct {
	paths  []int // by connection, ascending
	weight float64
}

// spreads lists all of them: the ways to divide q connections among the paths, with how often hashing would do so
// (multinomial). Nil when there are more than 512.
func spreads(q int, allowed []int, weight []float64) []spread {
	if q == 1 {
		out := make([]spread, len(allowed))
		for i, a := range allowed {
			out[i] = spread{[]int{a}, weight[a]}
		}
		return out
	}
	const most = 512
	var out []spread
	var rec func(from, left int, sofar []int, w float64) bool
	rec = func(from, left int, sofar []int, w float64) bool {
		if from == len(allowed)-1 {
			for n := 1; n <= left; n++ {
				w *= weight[allowed[from]] / float64(n)
			}
			if len(out) >= most {
				return false
			}
			out = append(out, spread{append(slices.Clone(sofar), slices.Repeat([]int{allowed[from]}, left)...), w})
			return true
		}
		for n := 0; n <= left; n++ {
			v := w
			for k := 1; k <= n; k++ {
				v *= weight[allowed[from]] / float64(k)
			}
			if !rec(from+1, left-n, append(slices.Clone(sofar), slices.Repeat([]int{allowed[from]}, n)...), v) {
				return false
			}
		}
		return true
	}
	if !rec(0, q, nil, 1) {
		return nil
	}
	return out
}

type walker struct {
	e            *explainer
	requiredOnly bool
	place        map[int]int
	order        []int
	options      [][]spread
	chosen       []spread
	load         []float64 // by link: placed so far, with base
	room         []float64 // by link: what flows not yet placed could add
	nodes        int
	count        int
	kept         []placement
	rng          *rand.Rand
}

func (w *walker) walk(k int) bool {
	if k == len(w.order) {
		w.keep()
		return true
	}
	if w.nodes++; w.nodes > maxNodes {
		return false
	}
	f := w.e.flows[w.order[k]]
	links := w.e.choices(f)
	for _, id := range links {
		w.room[id] -= f.BytesPerSecond
	}
	complete := true
	for _, s := range w.options[k] {
		w.put(f, s, 1)
		if w.possible(links) {
			w.chosen[k] = s
			complete = w.walk(k + 1)
		}
		w.put(f, s, -1)
		if !complete {
			break
		}
	}
	for _, id := range links {
		w.room[id] += f.BytesPerSecond
	}
	return complete
}

func (w *walker) put(f Routed, s spread, sign float64) {
	for _, p := range s.paths {
		for _, id := range middle(f.Paths[p]) {
			w.load[id] += sign * f.PerConnection()
		}
	}
}

// possible says whether the links can still come out right. Sums of floats in different order differ in the last
// bits, hence the little slack.
func (w *walker) possible(links []topo.LinkID) bool {
	for _, id := range links {
		m := w.e.measured[id]
		if math.IsNaN(m) || w.requiredOnly && !w.e.required[id] {
			continue
		}
		tol := w.e.tolerance(id) * (1 + 1e-9)
		if w.load[id] > m+tol || w.load[id]+w.room[id] < m-tol {
			return false
		}
	}
	return true
}

// keep stores the placement; past maxKept each one that fits has the same chance to be among those kept.
func (w *walker) keep() {
	w.count++
	slot := len(w.kept)
	if slot >= maxKept {
		if slot = w.rng.IntN(w.count); slot >= maxKept {
			return
		}
	} else {
		w.kept = append(w.kept, placement{})
	}
	p := placement{paths: make([][]int, len(w.order)), weight: 1}
	for k, s := range w.chosen {
		p.paths[w.place[w.order[k]]] = s.paths
		p.weight *= s.weight
	}
	w.kept[slot] = p
}
