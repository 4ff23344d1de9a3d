// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"
)

// steer computes a flow's path from the routes that stand now. What waits in the queues of the old path arrives over it
// while the new way has to wait: that is the gap of a move.
func (p *Plant) steer(w *flow) {
	spine := 0
	var path []*link
	if w.src.leaf == w.dst.leaf {
		path = []*link{w.src.out, w.dst.in}
	} else if spine = p.router.spineOf(w.src.leaf, w.dst, w.key); spine != 0 {
		path = []*link{w.src.out, p.fabric.up(w.src.leaf, spine), p.fabric.down(spine, w.dst.leaf), w.dst.in}
	}
	if w.path != nil && spine == w.spine {
		return
	}
	var wait float64
	for i, q := range w.waiting {
		w.path[i].sentBytes += q
		w.delivered += q / onWire
		wait = max(wait, w.path[i].queued/w.path[i].capacity)
		w.path[i].queued -= q
		w.waiting[i] = 0
	}
	if wait > 0 {
		w.stalled = p.now.Add(time.Duration(wait * float64(time.Second)))
	}
	w.spine, w.path, w.waiting = spine, path, make([]float64, len(path))
	w.dead = path == nil
}

// move carries one tick's data over all links, tier by tier, so that what leaves a link reaches the next in the same tick
// (propagation is far below a tick).
func (p *Plant) move() {
	dt := tick.Seconds()
	arriving := make([]float64, len(p.flows))
	for i, w := range p.flows {
		if p.now.Before(w.stalled) {
			continue
		}
		arriving[i] = w.offer(p.now, tick)
		if w.dead && arriving[i] > 0 {
			w.lose(arriving[i])
			p.retrans[w.src.node] += arriving[i] / onWire / segment
			arriving[i] = 0
		}
	}
	for _, tier := range []string{"host", "up", "down", "access"} {
		p.carry(tier, arriving, dt)
	}
	for i, w := range p.flows {
		w.arrive(p.now, arriving[i])
	}
}

// carry moves data over the links of one tier: arriving holds each flow's bytes before, and then those behind it.
func (p *Plant) carry(tier string, arriving []float64, dt float64) {
	for _, l := range p.fabric.order {
		if l.dir == tier {
			l.offered = l.queued
		}
	}
	at := make([]int, len(p.flows)) // position of the tier's link in the flow's path, -1 if it crosses none
	for i, w := range p.flows {
		at[i] = -1
		for n, l := range w.path {
			if l.dir == tier {
				at[i] = n
				l.offered += arriving[i]
			}
		}
	}
	for _, l := range p.fabric.order {
		if l.dir == tier {
			p.serve(l, dt)
		}
	}
	for i, w := range p.flows {
		if at[i] < 0 {
			continue
		}
		l, n := w.path[at[i]], at[i]
		have := w.waiting[n] + arriving[i]
		if have == 0 {
			continue
		}
		if !l.up {
			w.waiting[n] = 0
			p.drops(w, l, have)
			arriving[i] = 0
			continue
		}
		out := have
		if room := l.drain(dt); l.offered > room {
			out = have * room / l.offered
		}
		rest := have - out
		if over := l.offered - l.drain(dt) - l.capacity*queueMax.Seconds(); over > 0 {
			lost := rest * min(1, over/(l.offered-l.drain(dt)))
			rest -= lost
			p.drops(w, l, lost)
		}
		w.waiting[n] = rest
		l.sentBytes += out
		damaged := out * l.errorRate
		if damaged > 0 {
			l.errors += damaged / onWire / segment
			w.lose(damaged)
			p.retrans[w.src.node] += damaged / onWire / segment
		}
		packets := out / onWire / segment
		p.ecn[w.dst.node] += packets * l.mark
		w.dst.marked += packets * l.mark
		arriving[i] = out - damaged
	}
}

func (p *Plant) drops(w *flow, l *link, wire float64) {
	l.lostBytes += wire
	w.lose(wire)
	p.retrans[w.src.node] += wire / onWire / segment
}

// drain is how much the link can send in dt.
func (l *link) drain(dt float64) float64 { return l.capacity * (1 - l.paused) * dt }

// serve works out what the link's queue will be after this tick, and from it marks and pauses.
func (p *Plant) serve(l *link, dt float64) {
	p.receiver(l, dt)
	l.queued = 0
	if l.up {
		l.queued = min(max(0, l.offered-l.drain(dt)), l.capacity*queueMax.Seconds())
	}
	delay := l.queued / l.capacity
	l.mark = min(1, max(0, (delay-markFrom.Seconds())/(markAll-markFrom).Seconds()))
}

// receiver lets a slow node pause its leaf port, and a full leaf port pause the spines above it: priority flow control
// spreads the pressure to everybody who uses those links.
func (p *Plant) receiver(l *link, dt float64) {
	l.paused = 0
	switch l.dir {
	case "access":
		n := l.nic
		take, ok := p.slow[n]
		if !ok || l.offered == 0 {
			return
		}
		need := min(1, l.offered/dt/l.capacity)
		l.paused = max(0, 1-take/l.capacity)
		if need > take/l.capacity {
			n.pauseSeconds += l.paused * dt
			p.zeroWin[n.node] += 20 * l.paused * dt
		}
	case "down":
		for n := range p.slow {
			if leafName(n.leaf) == l.to.Device && n.in.queued > n.in.capacity*markAll.Seconds() {
				l.paused = math.Max(l.paused, 0.5)
			}
		}
	}
}
