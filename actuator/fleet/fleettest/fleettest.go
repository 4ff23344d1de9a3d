// SPDX-License-Identifier: Apache-2.0

// Package fleettest makes snapshots for tests: jobs on a fabric whose hash decisions the test knows and the code
// under test does not. Rates and step times come from a simulation of its own, event by event, that shares no code
// with the product's model.
package fleettest

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/traffic"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Job is a ring job.
type Job struct {
	ID          string
	Nodes       []string // in rank order
	Compute     float64  // seconds a step
	Slow        map[int]float64
	Bytes       float64 // payload that each rank sends a step, on each rail
	Connections int
	NoBaseline  bool
	Start       float64 // seconds after which its first step begins: how the jobs' turns fall
}

// Stream is constant traffic that no job announces.
type Stream struct {
	Src, Dst netip.Addr
	Via      string
	Rate     float64 // bytes/s on the wire
}

// Yard is the truth.
type Yard struct {
	Fabric  topo.Fabric
	Jobs    []Job
	Streams []Stream
	// Via names the spine of each connection of a flow, in order; missing ones follow the last. Key: Key.
	Via map[string][]string
}

// Key names a flow: "job src>dst rail".
func Key(job, src, dst string, rail int) string {
	return fmt.Sprintf("%s %s>%s %d", job, src, dst, rail)
}

// efficiency of the links of the truth: what a wire carries of its speed.
const efficiency = 0.97

type conn struct {
	job   int
	bytes float64 // on the wire, a step
	links []topo.LinkID
}

// Snapshot lives through the yard for many steps and reports the means, as exporters and rules would.
func (y Yard) Snapshot() fleet.Snapshot { return y.snapshot(y.run) }

func (y Yard) snapshot(run func([]conn, []float64) []float64) fleet.Snapshot {
	g := topo.NewGraph(y.Fabric)
	s := fleet.Snapshot{
		At: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Fabric: y.Fabric,
		Links: map[ident.Port]fleet.LinkLoad{}, NICs: map[netip.Addr]fleet.NICLoad{}, Nodes: map[string]fleet.NodeSignals{},
	}
	capacity := make([]float64, g.Len())
	load := make([]float64, g.Len())
	for id := range capacity {
		capacity[id] = efficiency * g.Link(topo.LinkID(id)).BytesPerSecond
	}
	for _, st := range y.Streams {
		for _, id := range way(g, st.Src, st.Dst, st.Via).Links {
			capacity[id] -= st.Rate
			load[id] += st.Rate
		}
	}
	conns := y.connections(g)
	steps := run(conns, capacity)
	for j, jb := range y.Jobs {
		alone := steps[j]
		if !jb.NoBaseline {
			alone = y.alone(g, j, conns)
		}
		tj := traffic.Job{
			ID: jb.ID, Gang: jb.ID, Collective: "ring", Connections: max(1, jb.Connections), StepSeconds: steps[j],
			BaselineStepSeconds: alone, CollectiveSeconds: steps[j] - jb.longest(), StepsPerSecond: 1 / steps[j],
			StepsTotal: 1000, StepSecondsTotal: 1000 * steps[j],
		}
		if jb.NoBaseline {
			tj.BaselineStepSeconds = 0
		}
		rails := 0
		for r, n := range jb.Nodes {
			rank := traffic.Rank{Rank: r, Node: n, Addrs: map[int]netip.Addr{}, ComputeSeconds: jb.compute(r)}
			for _, nic := range y.Fabric.NICs {
				if nic.Node == n {
					rank.Addrs[nic.Rail] = nic.Addr
					rails = max(rails, nic.Rail+1)
				}
			}
			tj.Ranks = append(tj.Ranks, rank)
		}
		tj.BytesPerSecondByRail = slices.Repeat([]float64{jb.Bytes / steps[j]}, rails)
		s.Jobs = append(s.Jobs, tj)
	}
	for _, c := range conns {
		for _, id := range c.links {
			load[id] += c.bytes / steps[c.job]
		}
	}
	for id, l := range load {
		s.Links[g.Link(topo.LinkID(id)).From] = fleet.LinkLoad{BytesPerSecond: l, AgeSeconds: 0.5}
	}
	for a, n := range y.Fabric.NICs {
		tx, _ := g.ID(n.Port())
		rx, _ := g.ID(n.Attached)
		s.NICs[a] = fleet.NICLoad{TransmitBytesPerSecond: load[tx], ReceiveBytesPerSecond: load[rx], AgeSeconds: 0.5}
		s.Nodes[n.Node] = fleet.NodeSignals{}
	}
	return s
}

// Steps are the true step seconds by job, in order.
func (y Yard) Steps() []float64 {
	s := y.Snapshot()
	out := make([]float64, len(s.Jobs))
	for i, j := range s.Jobs {
		out[i] = j.StepSeconds
	}
	return out
}

func (j Job) compute(rank int) float64 {
	if v, ok := j.Slow[rank]; ok {
		return v
	}
	return j.Compute
}

func (j Job) longest() float64 {
	most := 0.0
	for r := range j.Nodes {
		most = max(most, j.compute(r))
	}
	return most
}

// alone is the step of a job that meets nobody, itself included: its slowest link at full speed. Ranks compute
// as they should.
func (y Yard) alone(g *topo.Graph, j int, conns []conn) float64 {
	jb := y.Jobs[j]
	slowest := math.Inf(1)
	for _, c := range conns {
		if c.job != j {
			continue
		}
		for _, id := range c.links {
			if d := g.Link(id).Direction; d == topo.Access || d == topo.Host {
				slowest = min(slowest, efficiency*g.Link(id).BytesPerSecond)
			}
		}
	}
	return jb.Compute + jb.Bytes*traffic.WireOverhead/slowest
}

// NIC is the address of a node on a rail.
func (y Yard) NIC(node string, rail int) netip.Addr {
	for a, n := range y.Fabric.NICs {
		if n.Node == node && n.Rail == rail {
			return a
		}
	}
	panic(fmt.Sprintf("fleettest: node %q has no nic on rail %d", node, rail))
}

// PinVia places all connections of a flow on a spine, as a pin would, and returns the changed yard.
func (y Yard) PinVia(key string, via string) Yard {
	m := map[string][]string{}
	for k, v := range y.Via {
		m[k] = v
	}
	m[key] = []string{via}
	y.Via = m
	return y
}

func (y Yard) connections(g *topo.Graph) []conn {
	type end struct {
		node string
		rail int
	}
	nics := map[end]netip.Addr{}
	for a, n := range y.Fabric.NICs {
		nics[end{n.Node, n.Rail}] = a
	}
	var out []conn
	for j, jb := range y.Jobs {
		for i, n := range jb.Nodes {
			next := jb.Nodes[(i+1)%len(jb.Nodes)]
			if n == next {
				continue
			}
			for rail := 0; ; rail++ {
				src, okSrc := nics[end{n, rail}]
				dst, okDst := nics[end{next, rail}]
				if !okSrc || !okDst {
					break
				}
				vias := y.Via[Key(jb.ID, n, next, rail)]
				q := max(1, jb.Connections)
				for k := range q {
					via := ""
					if len(vias) > 0 {
						via = vias[min(k, len(vias)-1)]
					}
					out = append(out, conn{j, jb.Bytes * traffic.WireOverhead / float64(q), way(g, src, dst, via).Links})
				}
			}
		}
	}
	return out
}

// way is the path over the spine; with none named, the first that is alive.
func way(g *topo.Graph, src, dst netip.Addr, via string) topo.Path {
	paths, err := g.Paths(src, dst)
	if err != nil || len(paths) == 0 {
		panic(fmt.Sprintf("fleettest: no path from %s to %s: %v", src, dst, err))
	}
	for _, p := range paths {
		if p.Via == via {
			return p
		}
	}
	return paths[0]
}
