// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Reading is what an onlooker who sees everything knows of a job. The control side never gets it.
type Reading struct {
	Steps       []Step        // of rank 0, in order of time
	Longest     time.Duration // longest time in which a connection with data waiting delivered nothing, since ResetGaps
	Retransmits float64       // packets, since the job's start
}

// Job reads a running job.
func (p *Plant) Job(id string) (Reading, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.ring(id)
	if r == nil {
		return Reading{}, fmt.Errorf("plant %s runs no job %q", p.cfg.Fabric, id)
	}
	out := Reading{Steps: slices.Clone(r.ranks[0].steps)}
	r.each(func(w *flow) {
		out.Longest = max(out.Longest, w.longest(p.now))
		out.Retransmits += w.retrans
	})
	return out, nil
}

// ResetGaps forgets the longest gaps of all connections.
func (p *Plant) ResetGaps() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.flows {
		w.gap, w.progress = 0, p.now
	}
}

// Stream is the payload that a job has moved from one node to the next on a rail, and the spine it takes (0 within a leaf).
func (p *Plant) Stream(job string, rail, from int) (bytes float64, spine int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.ring(job); r != nil {
		for _, k := range r.ranks {
			if k.node == from {
				return k.sent(rail), k.out[rail][0].spine, nil
			}
		}
	}
	return 0, 0, fmt.Errorf("plant %s has no stream of job %q from n%d", p.cfg.Fabric, job, from)
}

// Sent is the number of bytes that a port has transmitted, as the hardware counts, not as the agent shows it.
func (p *Plant) Sent(port ident.Port) float64 {
	return locked(p, func() float64 { return p.fabric.links[port].sentBytes })
}

func (r *ring) each(f func(*flow)) {
	for _, k := range r.ranks {
		for rail := range rails {
			for _, w := range k.out[rail] {
				f(w)
			}
		}
	}
}

// longest is the longest gap so far, the one that lasts included.
func (w *flow) longest(now time.Time) time.Duration {
	waits := w.backlog > 0
	for _, q := range w.waiting {
		waits = waits || q > 0
	}
	if waits && !w.progress.IsZero() {
		return max(w.gap, now.Sub(w.progress))
	}
	return w.gap
}
