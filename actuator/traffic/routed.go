// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/topo"
)

// Routed is a flow with the live paths between its NICs and what the routes in force make of them.
type Routed struct {
	Flow
	Paths  []topo.Path
	Weight []float64 // by path: 0 = not used; relative share of new connections otherwise
}

// Allowed lists the paths that may carry the flow's connections.
func (r Routed) Allowed() []int {
	var out []int
	for i, w := range r.Weight {
		if w > 0 {
			out = append(out, i)
		}
	}
	return out
}

// PerConnection is the rate of one connection: a collective splits its data evenly over them.
func (r Routed) PerConnection() float64 { return r.BytesPerSecond / float64(max(1, r.Connections)) }

// Table holds our routes by switch, longest prefix first, for look-ups while flows are placed.
type Table map[string][]plan.Route

// NewTable sorts routes; of two with the same key the later one counts, so that a plan laid over the present
// routes replaces them.
func NewTable(routes ...[]plan.Route) Table {
	byKey := map[plan.RouteKey]plan.Route{}
	for _, rs := range routes {
		for _, r := range rs {
			byKey[r.Key()] = r
		}
	}
	t := Table{}
	for _, r := range byKey {
		t[r.Switch] = append(t[r.Switch], r)
	}
	for _, rs := range t {
		slices.SortFunc(rs, func(a, b plan.Route) int {
			if a.Prefix.Bits() != b.Prefix.Bits() {
				return b.Prefix.Bits() - a.Prefix.Bits()
			}
			return a.Prefix.Addr().Compare(b.Prefix.Addr())
		})
	}
	return t
}

// Find is the route that the switch uses for the address, if one of ours matches.
func (t Table) Find(sw string, a netip.Addr) (plan.Route, bool) {
	for _, r := range t[sw] {
		if r.Prefix.Contains(a) {
			return r, true
		}
	}
	return plan.Route{}, false
}

// Weights says how a route spreads connections over the paths. A next hop whose path is dead is skipped; a route
// with no live next hop is dropped by next-hop tracking, so that traffic falls back to equal hashing.
func Weights(g *topo.Graph, paths []topo.Path, r plan.Route, has bool) []float64 {
	out := make([]float64, len(paths))
	found := false
	if has {
		for i, p := range paths {
			hop, err := g.PinNextHop(p)
			if r.Kind == plan.Weights {
				hop, err = g.DirectNextHop(p)
			}
			if err != nil {
				continue
			}
			for _, nh := range r.NextHops {
				if nh.Addr == hop {
					out[i], found = max(1, float64(nh.Weight)), true
				}
			}
		}
	}
	if !found {
		for i := range out {
			out[i] = 1
		}
	}
	return out
}

// Route gives every flow of the matrix its live paths under the routes in force. Flows that have none are left
// out and named in the second result.
func Route(g *topo.Graph, m Matrix, t Table) ([]Routed, []string) {
	var out []Routed
	var problems []string
	for _, f := range m.Flows {
		paths, err := g.Paths(f.Src, f.Dst)
		if err != nil {
			problems = append(problems, fmt.Sprintf("flow %s to %s of job %s: %v", f.Src, f.Dst, f.JobID, err))
			continue
		}
		if len(paths) == 0 {
			problems = append(problems, fmt.Sprintf("flow %s to %s of job %s: no live path", f.Src, f.Dst, f.JobID))
			continue
		}
		leaf, _ := g.Leaf(f.Src) // Paths found the NIC
		r, has := t.Find(leaf, f.Dst)
		out = append(out, Routed{Flow: f, Paths: paths, Weight: Weights(g, paths, r, has)})
	}
	return out, problems
}
