// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Results are the answers to all queries, evaluated at one time.
type Results struct {
	At       time.Time
	Vectors  map[Query][]Sample
	Failures map[Query]string // queries that gave no answer, with the reason
	Warnings []string         // what Prometheus itself doubts, e.g. a partial answer
}

// Limits say what Build must accept and refuse.
type Limits struct {
	Fabric string        // "" = there must be exactly one
	MaxAge time.Duration // older data is a problem
}

// maxProblems bounds the list: a fabric that is wrong everywhere need not say so ten thousand times.
const maxProblems = 200

// Build makes a snapshot of the answers. It is pure. What it refuses, it leaves out of the snapshot and names in
// Problems with its place; the order of Problems is stable.
func Build(r Results, l Limits) fleet.Snapshot {
	b := builder{r: r, limits: l, problems: map[string]bool{}, nodesHere: map[string]bool{}}
	b.s = fleet.Snapshot{
		At:    r.At.UTC(),
		Links: map[ident.Port]fleet.LinkLoad{},
		NICs:  map[netip.Addr]fleet.NICLoad{},
		Nodes: map[string]fleet.NodeSignals{},
		Fabric: topo.Fabric{
			Switches:  map[string]topo.Switch{},
			Links:     map[ident.Port]topo.Link{},
			NICs:      map[netip.Addr]topo.NIC{},
			Addresses: map[ident.Port]netip.Prefix{},
		},
	}
	for q, reason := range r.Failures {
		b.problem("query %q failed: %s", q, reason)
	}
	for _, w := range r.Warnings {
		b.problem("Prometheus warns: %s", clip(w))
	}
	b.fabric()
	b.switches()
	b.links()
	b.nics()
	b.addresses()
	b.linkLoads()
	b.nicLoads()
	b.nodes()
	b.jobs()
	b.s.Problems = slices.Sorted(maps.Keys(b.problems))
	if n := len(b.s.Problems); n > maxProblems {
		b.s.Problems = append(b.s.Problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more problems", n-maxProblems))
	}
	return b.s
}

// builder fills one snapshot; its methods run in the order in which Build calls them, each on what stands before.
type builder struct {
	r         Results
	limits    Limits
	s         fleet.Snapshot
	problems  map[string]bool
	nodesHere map[string]bool // nodes with a NIC in the fabric
}

func (b *builder) problem(format string, args ...any) {
	b.problems[fmt.Sprintf(format, args...)] = true
}

// fabric settles which fabric the snapshot is of.
func (b *builder) fabric() {
	b.s.Fabric.Name = b.limits.Fabric
	if b.s.Fabric.Name != "" {
		return
	}
	seen := map[string]bool{}
	for _, x := range b.r.Vectors[SwitchInfo] {
		seen[x.Labels["fabric"]] = true
	}
	switch names := slices.Sorted(maps.Keys(seen)); len(names) {
	case 0:
		b.problem("no switch of any fabric is reported")
	case 1:
		b.s.Fabric.Name = names[0]
	default:
		b.problem("%d fabrics are reported (%q, %q, ...) and none is configured", len(names), clip(names[0]), clip(names[1]))
	}
}

// ours says whether a sample is of our fabric; with no fabric settled nothing is.
func (b *builder) ours(x Sample) bool {
	return b.s.Fabric.Name != "" && x.Labels["fabric"] == b.s.Fabric.Name
}

// rows are the samples of a query that belong to our fabric, in a stable order.
func (b *builder) rows(q Query) []Sample {
	var out []Sample
	for _, x := range b.r.Vectors[q] {
		if b.ours(x) {
			out = append(out, x)
		}
	}
	sortSamples(out)
	return out
}

func sortSamples(s []Sample) {
	slices.SortFunc(s, func(x, y Sample) int {
		a, c := slices.Sorted(maps.Keys(x.Labels)), slices.Sorted(maps.Keys(y.Labels))
		if n := slices.Compare(a, c); n != 0 {
			return n
		}
		for _, k := range a {
			if n := cmp.Compare(x.Labels[k], y.Labels[k]); n != 0 {
				return n
			}
		}
		return 0
	})
}

// values indexes the samples of a query. A value that is no finite number is left out, and so is a key that two
// samples share: nobody could say which is right. keep says which keys matter; others are not even complained of.
func values[K comparable](b *builder, q Query, key func(map[string]string) (K, bool)) map[K]float64 {
	out, twice := map[K]float64{}, map[K]bool{}
	samples := slices.Clone(b.r.Vectors[q])
	sortSamples(samples)
	for _, x := range samples {
		k, ok := key(x.Labels)
		if !ok {
			continue
		}
		if math.IsNaN(x.Value) || math.IsInf(x.Value, 0) {
			b.problem("%v: %s is %g", k, q, x.Value)
			continue
		}
		if _, there := out[k]; there {
			twice[k] = true
		}
		out[k] = x.Value
	}
	for k := range twice {
		b.problem("%v: %s is reported more than once", k, q)
		delete(out, k)
	}
	return out
}

// positive is values for what cannot be below zero.
func positive[K comparable](b *builder, q Query, key func(map[string]string) (K, bool)) map[K]float64 {
	out := values(b, q, key)
	for k, v := range out {
		if v < 0 {
			b.problem("%v: %s is %g, below zero", k, q, v)
			delete(out, k)
		}
	}
	return out
}

// byPort keys a sample by its switch port.
func (b *builder) byPort(l map[string]string) (ident.Port, bool) {
	p, err := ident.NewPort(l["fabric"], l["switch"], l["port"])
	return p, err == nil && p.Fabric == b.s.Fabric.Name
}

// byLink keys a sample by its link, where that link stands in the snapshot.
func (b *builder) byLink(l map[string]string) (ident.Port, bool) {
	p, err := ident.ParsePort(l["link"])
	if err != nil {
		return p, false
	}
	_, ok := b.s.Fabric.Links[p]
	return p, ok
}

// stale names an age beyond the limit.
func (b *builder) stale(place any, what string, age float64) {
	if age > b.limits.MaxAge.Seconds() {
		b.problem("%v: %s is %.1f s old, at most %s is accepted", place, what, age, b.limits.MaxAge)
	}
}
