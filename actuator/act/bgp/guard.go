// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
)

// guard answers one question for all sessions: may something be written now? It is asked before a connection is made
// and before each message that announces routes. It says no
//   - until the desired routes have been given (Prime): what to replay is somebody's decision, never a left-over;
//   - when the permit says no;
//   - after the process stood still for longer than maxPause (SIGSTOP, a suspended machine), even if the permit says
//     yes: the world went on meanwhile. Only the next Prime opens it again.
//
// The check is made in the goroutine that writes. A process that is stopped between check and write for longer than the hold
// time writes into a connection that the switch has closed; so the hold time has to be below the lease.
type guard struct {
	permit   act.Permit
	maxPause time.Duration

	mu      sync.Mutex
	beat    time.Time // last time at which this process was seen running
	closed  error     // why nothing may be written; nil = open
	noLease time.Time // since when the permit has been saying no; zero = it says yes
}

var errNotPrimed = errors.New("the desired routes have not been given yet")

func newGuard(p act.Permit, maxPause time.Duration) *guard {
	return &guard{permit: p, maxPause: maxPause, beat: time.Now(), closed: errNotPrimed}
}

// check returns nil if something may be written now. Once it has said no, it says no until prime is called.
func (g *guard) check() error { return g.checkAt(time.Now()) }

func (g *guard) checkAt(now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.see(now)
	if g.closed != nil {
		return g.closed
	}
	if err := g.valid(now); err != nil {
		g.closed = err
		return err
	}
	return nil
}

// prime opens the guard if the permit is valid.
func (g *guard) prime() error {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.see(now)
	if err := g.valid(now); err != nil {
		g.closed = err
		return err
	}
	g.closed = nil
	return nil
}

// tick is called a few times a second. It returns for how long the permit has been invalid, and the reason if the guard is closed.
func (g *guard) tick(now time.Time) (orphan time.Duration, closed error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.see(now)
	// Asking here, too, notices a lost permit when nothing is being written. That alone closes nothing: routes stand until
	// orphan_after, and the next write asks anyway.
	if err := g.valid(now); err != nil {
		orphan = now.Sub(g.noLease)
	}
	return orphan, g.closed
}

// close shuts the guard for good reason until the next prime.
func (g *guard) close(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = why
}

// see notices a standstill between the last call and now.
func (g *guard) see(now time.Time) {
	if d := elapsed(g.beat, now); d > g.maxPause {
		g.closed = fmt.Errorf("this process stood still for %s, longer than %s", d.Round(100*time.Millisecond), g.maxPause)
	}
	g.beat = now
}

func (g *guard) valid(now time.Time) error {
	if err := g.permit.Valid(now); err != nil {
		if g.noLease.IsZero() {
			g.noLease = now
		}
		return fmt.Errorf("no permit to write: %w", err)
	}
	g.noLease = time.Time{}
	return nil
}

// elapsed is the longer of the monotonic and the wall clock difference: the monotonic clock stands still while a machine
// is suspended, the wall clock may be set back.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
