// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// The sender's control loop, after DCTCP (RFC 8257): once a round trip it cuts its rate by half the smoothed share of
// marked packets, or else adds a little; after a pause or a loss it doubles until the first mark.
const (
	roundTrip    = 6 * time.Millisecond
	markGain     = 1.0 / 4
	addShare     = 0.02 // of the NIC's speed per round trip
	restartShare = 0.25 // of the last rate after a silence longer than idleReset
	leastShare   = 0.002
	idleReset    = 200 * time.Millisecond
)

// Queues of switch ports, in seconds at line rate: nothing is marked below the first, everything above the second, and
// beyond the third packets are lost.
const (
	markFrom = 1 * time.Millisecond
	markAll  = 6 * time.Millisecond
	queueMax = 20 * time.Millisecond
)

// onWire is the size of a full TCP segment on the wire over its payload (1514 and 1448 bytes).
const onWire = 1514.0 / 1448.0

// segment is the payload of one packet in bytes.
const segment = 1448.0

// flow is one transport connection between two NICs.
type flow struct {
	src, dst *nic
	key      uint64 // what switches hash: stands for the five-tuple
	spine    int    // 0 within one leaf, or when there is no way
	path     []*link
	waiting  []float64 // bytes of this flow in the queue of each link of the path
	dead     bool      // routing has no way, or the way has a dead link that routing does not know of yet

	limit      float64 // the application's ceiling in bytes a second; 0 = none
	rate       float64 // wire bytes a second that the sender now allows itself
	marks      float64 // smoothed share of marked packets
	sampled    float64 // share seen during this round trip
	lost       bool    // during this round trip
	slowStart  bool
	nextUpdate time.Time
	lastActive time.Time
	stalled    time.Time // no delivery before this: after a move, what waits on the old way comes first

	backlog   float64 // wire bytes that the application has handed over and that have not left
	delivered float64 // payload bytes, from the beginning
	retrans   float64 // packets sent again
	progress  time.Time
	gap       time.Duration // longest time without progress with data waiting, since it was asked last
}

// offer is what the sender puts on its NIC in this step, in wire bytes.
func (w *flow) offer(now time.Time, dt time.Duration) float64 {
	if w.backlog <= 0 {
		return 0
	}
	if now.Sub(w.lastActive) > idleReset {
		w.slowStart = true
		w.rate *= restartShare
	}
	w.lastActive = now
	w.rate = max(w.rate, leastShare*w.src.out.capacity)
	rate := w.rate
	if w.limit > 0 {
		rate = min(rate, w.limit*onWire)
	}
	out := min(rate*dt.Seconds(), w.backlog)
	w.backlog -= out
	return out
}

// control runs the sender's loop once a round trip.
func (w *flow) control(now time.Time, noise float64, rng *rand.Rand) {
	unmarked := 1.0
	for _, l := range w.path {
		unmarked *= 1 - l.mark
	}
	w.sampled = max(w.sampled, 1-unmarked)
	if now.Before(w.nextUpdate) {
		return
	}
	w.nextUpdate = now.Add(time.Duration(float64(roundTrip) * (1 + 0.2*(rng.Float64()-0.5))))
	w.marks += markGain * (w.sampled - w.marks)
	speed := w.src.out.capacity
	switch {
	case w.lost:
		w.rate, w.slowStart = w.rate/2, false
	case w.sampled > 0:
		w.rate, w.slowStart = w.rate*(1-w.marks/2), false
	case w.slowStart:
		w.rate *= 2
	default:
		w.rate += addShare * speed
	}
	w.rate *= 1 + noise*(rng.Float64()-0.5)
	w.rate = min(w.rate, speed)
	w.sampled, w.lost = 0, false
}

// arrive books what reached the receiver in this step.
func (w *flow) arrive(now time.Time, wire float64) {
	waits := w.backlog > 0
	for _, q := range w.waiting {
		waits = waits || q > 0
	}
	if wire > 0 || !waits {
		if wire > 0 && !w.progress.IsZero() {
			w.gap = max(w.gap, now.Sub(w.progress))
		}
		w.progress = now
	}
	w.delivered += wire / onWire
}

// lose books bytes that a queue or a damaged frame took: they are sent again.
func (w *flow) lose(wire float64) {
	w.backlog += wire
	w.retrans += math.Ceil(wire / onWire / segment)
	w.lost = true
}
