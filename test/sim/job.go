// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Job describes a training job: a ring all-reduce over its nodes in rank order, on both rails, after each compute phase.
type Job struct {
	ID           string
	Nodes        []int         // in rank order, 1..8
	Compute      time.Duration // of one step of one rank
	ComputeNoise float64       // spread of it, as a share; 0.02 is usual
	BytesPerStep float64       // payload that each rank sends on each rail in one step
	Connections  int           // between each pair of NICs; at least 1
	SlowRank     int           // rank that computes longer, if SlowFactor > 1: a straggler
	SlowFactor   float64
	Via          func(rail, from, to int) int // spine that the flow from one node to another shall hash to; 0 or nil = as it comes
}

// chunks is how many pieces a rank's payload of a step travels in: a piece is sent on when the one before has arrived.
const chunks = 16

// Step is one finished step of a rank.
type Step struct {
	At         time.Time
	Seconds    float64
	Compute    float64
	Collective float64
}

// ring is a job that runs.
type ring struct {
	Job
	ranks   []*rank
	started time.Time
}

// rank is one process: it computes, then takes part in the collective on each rail.
type rank struct {
	index, node int
	out         [rails][]*flow // to the next rank; connections share the payload evenly

	round     int // steps begun, from 1
	stepStart time.Time
	computed  time.Time // when the compute phase of this round ends
	handed    [rails]float64
	steps     []Step
	stepSecs  float64
	compSecs  float64
	collSecs  float64
	finished  int
}

func (r *ring) next(i int) int { return (i + 1) % len(r.ranks) }
func (r *ring) prev(i int) int { return (i + len(r.ranks) - 1) % len(r.ranks) }

// sent is the payload that rank i has delivered to its neighbour on a rail, over all connections.
func (k *rank) sent(rail int) float64 {
	sum := 0.0
	for _, w := range k.out[rail] {
		sum += w.delivered
	}
	return sum
}

// launch makes the ring's flows. Source ports are free to choose, so a flow can be made to hash to a spine by trying ports,
// as the lab does; which spine a port leads to, only the plant knows.
func (p *Plant) launch(j Job) (*ring, error) {
	if len(j.Nodes) < 2 || j.BytesPerStep <= 0 || j.Compute < 0 {
		return nil, fmt.Errorf("start job %s: needs two nodes, bytes per step and a compute time", j.ID)
	}
	r := &ring{Job: j, started: p.now}
	r.Connections = max(1, j.Connections)
	for i, n := range j.Nodes {
		if n < 1 || n > nodes {
			return nil, fmt.Errorf("start job %s: no node n%d", j.ID, n)
		}
		r.ranks = append(r.ranks, &rank{index: i, node: n})
	}
	for i, k := range r.ranks {
		to := r.ranks[r.next(i)]
		for rail := range rails {
			spine := 0
			if j.Via != nil {
				spine = j.Via(rail, k.node, to.node)
			}
			for range r.Connections {
				w, err := p.connect(p.fabric.byPos[k.node][rail], p.fabric.byPos[to.node][rail], spine)
				if err != nil {
					return nil, fmt.Errorf("start job %s: %w", j.ID, err)
				}
				k.out[rail] = append(k.out[rail], w)
			}
		}
		p.beginStep(r, k)
	}
	return r, nil
}

// connect opens a flow whose hash leads to the given spine with the routes as they stand (0: any).
func (p *Plant) connect(src, dst *nic, spine int) (*flow, error) {
	for range 1000 {
		w := &flow{src: src, dst: dst, key: p.rng.Uint64(), progress: p.now, lastActive: p.now, slowStart: true}
		p.steer(w)
		if spine == 0 || src.leaf == dst.leaf || w.spine == spine {
			p.flows = append(p.flows, w)
			return w, nil
		}
	}
	return nil, fmt.Errorf("connect %s to %s: no source port leads over s%d", src.addr, dst.addr, spine)
}

func (p *Plant) beginStep(r *ring, k *rank) {
	k.round++
	k.stepStart = p.now
	d := float64(r.Compute) * (1 + r.ComputeNoise*(2*p.rng.Float64()-1))
	if r.SlowFactor > 1 && k.index == r.SlowRank {
		d *= r.SlowFactor
	}
	k.computed = p.now.Add(time.Duration(d))
}

// drive hands over what the ring allows to send now, and begins the next step of each rank that is through.
func (p *Plant) drive(r *ring) {
	for i, k := range r.ranks {
		if p.now.Before(k.computed) {
			continue
		}
		before := r.ranks[r.prev(i)]
		done := true
		for rail := range rails {
			end := float64(k.round) * r.BytesPerStep
			start := end - r.BytesPerStep
			// The first piece is the rank's own; each further one is what arrived from the rank before.
			allowed := min(end, start+r.BytesPerStep/chunks+max(0, before.sent(rail)-start))
			if more := allowed - k.handed[rail]; more > 0 {
				k.handed[rail] = allowed
				for _, w := range k.out[rail] {
					w.backlog += more * onWire / float64(len(k.out[rail]))
				}
			}
			done = done && k.sent(rail) >= end-1 && before.sent(rail) >= end-1
		}
		if done {
			p.endStep(r, k)
		}
	}
}

// endStep books the step. The queue of the last packets is over by now; bytes are exact to one packet.
func (p *Plant) endStep(r *ring, k *rank) {
	s := Step{At: p.now, Seconds: p.now.Sub(k.stepStart).Seconds()}
	s.Compute = k.computed.Sub(k.stepStart).Seconds()
	s.Collective = s.Seconds - s.Compute
	k.steps = append(k.steps, s)
	k.finished++
	k.stepSecs += s.Seconds
	k.compSecs += s.Compute
	k.collSecs += s.Collective
	p.beginStep(r, k)
}

// seeded returns the generator of everything that is random in the plant.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, scramble(seed))) }
