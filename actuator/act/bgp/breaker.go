// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"fmt"
	"sync"
	"time"
)

// breaker stops new routes to a leaf after one flap of a session with it (field rule 7): a route that comes and goes
// with a session hurts more than the congestion that it cures. Routes that the leaf still holds are kept alive.
type breaker struct {
	leaf  string
	reset time.Duration

	mu     sync.Mutex
	opened time.Time // zero = closed
	reason string
}

// trip opens the breaker, or keeps it open for longer.
func (b *breaker) trip(now time.Time, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened, b.reason = now, reason
}

// check returns nil if new routes may be written, and else why not and until when.
func (b *breaker) check(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened.IsZero() {
		return nil
	}
	until := b.opened.Add(b.reset)
	if !now.Before(until) {
		b.opened = time.Time{}
		return nil
	}
	return fmt.Errorf("no new routes on %s until %s or a reset: %s", b.leaf, until.UTC().Format(time.TimeOnly+" UTC"), b.reason)
}

func (b *breaker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = time.Time{}
}
