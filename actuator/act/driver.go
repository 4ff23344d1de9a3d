// SPDX-License-Identifier: Apache-2.0

// Package act is the door through which the actuator changes switches: the interface that every driver has, what a
// write can come to, and the reconciler that makes a driver's routes equal to the desired ones. It never decides
// which routes are wanted, and it never writes without a permit; only withdrawing everything needs none.
package act

import (
	"context"
	"errors"
	"time"

	"github.com/trainyard/trainyard/actuator/plan"
)

// Permit is the right to write: a lease that has not run out and an epoch that is still ours. A driver asks it
// immediately before each write, not when the work was queued, since the process may have slept in between.
type Permit interface {
	// Valid returns nil if a write may start at now, and else the reason why not. A reason that wraps
	// ErrSuperseded says that a newer decision took the place of this one.
	Valid(now time.Time) error
}

// PermitFunc is a Permit made of one function.
type PermitFunc func(now time.Time) error

// Valid calls the function.
func (f PermitFunc) Valid(now time.Time) error { return f(now) }

// ErrSuperseded is wrapped by a permit's reason when a newer decision took the place of the one being carried out.
var ErrSuperseded = errors.New("superseded by a newer decision")

// Outcome is what a write came to.
type Outcome string

// The outcomes of a write (contract 5).
const (
	Done       Outcome = "done"       // the driver's state is what was asked for, by this write or already before
	Transient  Outcome = "transient"  // nothing was written; the same write may succeed later
	Permanent  Outcome = "permanent"  // nothing was written; the same write will never succeed
	Ambiguous  Outcome = "ambiguous"  // something may have been written: read back, never retry blind
	Superseded Outcome = "superseded" // nothing was written: a newer decision took its place
	Cancelled  Outcome = "cancelled"  // nothing was written: permit or context ended before the write
)

// Result is an outcome with its reason in words.
type Result struct {
	Outcome Outcome
	Detail  string
	Changed bool // true if the switch was told something; false if it was so already or nothing was written
}

// OK says that the driver's state is what was asked for.
func (r Result) OK() bool { return r.Outcome == Done }

// Refuse turns a permit's reason into the result of a write that was not started.
func Refuse(reason error) Result {
	if errors.Is(reason, ErrSuperseded) {
		return Result{Outcome: Superseded, Detail: reason.Error()}
	}
	return Result{Outcome: Cancelled, Detail: "no permit to write: " + reason.Error()}
}

// Driver writes routes to switches. All methods may be called from several goroutines; writes to one prefix of one
// switch are serialised by the driver.
type Driver interface {
	// Name says which driver this is, for the journal and for people.
	Name() string
	// Can returns nil if the driver can say r, and else the reason why it cannot.
	Can(r plan.Route) error
	// Read returns our own routes as the driver has them in force now, in the order of switch and prefix.
	Read(ctx context.Context) ([]plan.Route, error)
	// Apply makes r the route for its key, replacing any that stands there. It asks first whether that is so already.
	Apply(ctx context.Context, p Permit, r plan.Route) Result
	// Withdraw removes the route with key k. A route that is not there is Done.
	Withdraw(ctx context.Context, p Permit, k plan.RouteKey) Result
	// WithdrawAll removes every route of ours. It is the stop switch and needs no permit.
	WithdrawAll(ctx context.Context) Result
	// Close ends the driver. With keep, routes are left to graceful restart: the switches hold them until the next
	// process takes them over or the restart time runs out. Without keep they are withdrawn first.
	Close(ctx context.Context, keep bool) error
}

// Primer is a Driver with sessions that replay routes when they come up: after a restart of the process or of a switch.
// Reconcile tells it first what is desired, so that a session never replays what is no longer wanted, and so that a driver
// that has just been made starts its sessions with the routes in hand (contract 2). Nothing is written by Prime itself.
type Primer interface {
	Prime(ctx context.Context, desired []plan.Route) error
}
