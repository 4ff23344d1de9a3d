// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
)

// Permit is the right to write under the lease of one run (field rule 2). It is valid while less than TTL has passed
// since the last renewal, by the monotonic clock and by the wall clock: the first stands still while a machine is
// suspended, the second can be set. Once it has lapsed it never comes back: a process that slept past its lease writes
// nothing.
type Permit struct {
	clock func() time.Time
	ttl   time.Duration

	mu      sync.Mutex
	renewed time.Time // zero = never granted
	epoch   uint64
	dead    error
}

// NewPermit makes a permit that is not granted yet. ttl must be longer than a read-back takes, and shorter than the time
// after which another process may take the lease.
func NewPermit(clock func() time.Time, ttl time.Duration) *Permit {
	if clock == nil {
		clock = time.Now
	}
	return &Permit{clock: clock, ttl: ttl}
}

// Valid implements act.Permit. It reads the clock itself: the caller's now may be old.
func (p *Permit) Valid(time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.valid(p.clock())
}

func (p *Permit) valid(now time.Time) error {
	switch {
	case p.dead != nil:
		return p.dead
	case p.renewed.IsZero():
		return errors.New("no lease yet")
	}
	if gone := elapsed(p.renewed, now); gone >= p.ttl {
		p.dead = fmt.Errorf("%w: %v since its renewal, it lasts %v", ErrLapsed, gone.Round(time.Millisecond), p.ttl)
		return p.dead
	}
	return nil
}

// elapsed is the longer of the two clocks' answers; a wall clock that was set back does not shorten it.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// grant begins the permit of one run.
func (p *Permit) grant(epoch uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.renewed, p.epoch, p.dead = p.clock(), epoch, nil
}

// renew prolongs a permit that is still valid, and only such a one.
func (p *Permit) renew() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	if err := p.valid(now); err != nil {
		return err
	}
	p.renewed = now
	return nil
}

// revoke ends the permit for good.
func (p *Permit) revoke(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead == nil {
		p.dead = why
	}
}

// left is how long the permit will be valid without a renewal.
func (p *Permit) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	if p.valid(now) != nil {
		return 0
	}
	return p.ttl - elapsed(p.renewed, now)
}

// drift says how far wall and monotonic clock went apart since the last renewal.
func (p *Permit) drift() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.renewed.IsZero() {
		return 0
	}
	now := p.clock()
	return (now.Round(0).Sub(p.renewed.Round(0)) - now.Sub(p.renewed)).Abs()
}

// once is the permit of one write: the run's permit, the stop switch if it blocks this kind of write, and the question
// whether the decision behind it still stands.
type once struct {
	run     *Permit
	stop    func() error // nil = this write is never stopped: it takes something back
	revoked atomic.Bool
}

// Valid implements act.Permit.
func (o *once) Valid(now time.Time) error {
	if o.revoked.Load() {
		return act.ErrSuperseded
	}
	if err := o.run.Valid(now); err != nil {
		return err
	}
	if o.stop != nil {
		return o.stop()
	}
	return nil
}
