// SPDX-License-Identifier: Apache-2.0

// Package loop is where the state machine meets the world, and the only place in the actuator's core with goroutines.
// It journals each event before anybody relies on it, steps flow, carries the commands out over small interfaces, and
// feeds the results back as events. A start is a replay. It decides nothing itself.
//
// Usage:
//
//	permit := loop.NewPermit(time.Now, 10*time.Second)           // give it to the driver, too
//	l, err := loop.New(loop.Config{Store: store, Permit: permit, ...})
//	go l.Run(ctx)                                                // returns nil after ctx, ErrLapsed after a lost lease
//	err = l.Deliver(ctx, alerts)                                 // returns after the fsync: then answer 200
//	err = l.Poll(ctx, alerts)                                    // everything that Alertmanager shows
//	l.Views(); l.View(id); l.Status()
//	l.Approve(ctx, id, actor); l.Deny(ctx, id, actor); l.LetGo(ctx, id, actor)
//	l.Stop(ctx, withdraw, actor); l.Resume(ctx, actor); l.SetPolicies(ctx, set)
package loop

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/journal"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Observer reads the yard at one moment.
type Observer interface {
	Observe(ctx context.Context) (fleet.Snapshot, error)
}

// Question is what a proposal is asked for.
type Question struct {
	Incident flow.ID
	Snapshot fleet.Snapshot
	Target   ident.Port
	Policy   policy.Policy
	Current  []plan.Route // of ours, in force or on their way
	Seed     uint64       // the same for the same incident and picture
}

// Trial is what a verification is asked about: one plan between two pictures.
type Trial struct {
	Incident flow.ID
	Target   ident.Port
	Policy   policy.Policy
	Chosen   plan.Plan
	Before   fleet.Snapshot // the plan rests on it
	After    fleet.Snapshot // now
	Started  time.Time      // the last step was in force; in a follow-up: when the verdict was made
	Now      time.Time
	Last     bool // no later picture will come before the deadline: answer, at least with "inconclusive"
}

// Hooks are called for metrics and logs, in the loop's own goroutine: they must not block. Each may be nil.
type Hooks struct {
	Input    func(outcome flow.InputOutcome, n int)            // what became of delivered alerts, also of those not journalled
	Appended func(records int, took time.Duration)             // one fsync
	Ended    func(v flow.View)                                 // an incident came to its end
	Routes   func(desired, installed int)                      // after each read-back
	Outcome  func(kind string, outcome act.Outcome)            // each write: "step", "undo", "put", "remove"
	Verified func(forecast plan.Forecast, v flow.Verification) // forecast against measured
}

// Config is everything that a loop needs. Store, Observer, Propose and Verify are required.
type Config struct {
	Store    journal.Store
	Observer Observer
	// Propose thinks; it is pure and may take long.
	Propose func(ctx context.Context, q Question) (flow.Proposal, error)
	// Verify compares; an empty outcome means: wait for another picture.
	Verify func(t Trial) flow.Verification
	// FollowUp compares without anything having been done (mode watch); nil = Verify.
	FollowUp func(t Trial) flow.Verification
	Driver   act.Driver // nil = none: every plan is refused, since nobody can say its routes
	Permit   *Permit    // nil = a new one; give the driver the same
	Lease    Lease      // nil = no other process can exist
	Policies policy.Set
	// StopFile looks for the stop switch: a file, so that it needs no interface of ours. nil = there is none.
	StopFile func() (StopSwitch, error)
	Notify   func(text string, v flow.View) // tell a human; called in a goroutine of its own
	Logger   *slog.Logger
	Hooks    Hooks
	Clock    func() time.Time // nil = time.Now

	ObserveEvery   time.Duration // pictures for verification, holding and follow-up; 0 = 5 s
	ReconcileEvery time.Duration // read-backs; 0 = 5 s
	Timeout        time.Duration // of one observation, one proposal or one read-back; 0 = 10 s
	Grace          time.Duration // how long switches keep routes of a controller that is away; 0 = 30 s (contract 2)
	CheckpointEach int           // records between checkpoints; 0 = 2000
}

// StopSwitch is what the stop file says.
type StopSwitch struct {
	Present  bool
	Withdraw bool // and take every route back
}

// Status is the loop's health, for REST and readiness.
type Status struct {
	Running   bool      `json:"running"`
	ReadOnly  string    `json:"read_only,omitempty"` // why nothing is acted on; "" = it is
	Epoch     uint64    `json:"epoch"`
	Seq       uint64    `json:"seq"`
	Stopped   bool      `json:"stopped"`
	StoppedBy string    `json:"stopped_by,omitempty"`
	Policies  string    `json:"policies"` // hash of the set in force
	Open      int       `json:"open"`
	Desired   int       `json:"routes_desired"`
	Installed int       `json:"routes_installed"` // at the last read-back
	ReadBack  time.Time `json:"read_back,omitzero"`
	Torn      string    `json:"torn,omitempty"` // dropped from the end of the journal at this start
	Notes     []string  `json:"notes,omitempty"`
}

// The errors that callers branch on.
var (
	// ErrLapsed says that the lease ran out while this process was not looking. It wrote nothing since; start again.
	ErrLapsed = errors.New("the lease ran out")
	// ErrJournal says that an event could not be made durable: answer 503, so that it is sent again.
	ErrJournal = errors.New("the journal cannot be written")
	// ErrNotRunning says that Run has not begun or has ended.
	ErrNotRunning = errors.New("the loop is not running")
	// ErrNoIncident says that there is no incident of that ID.
	ErrNoIncident = errors.New("no such incident")
	// ErrNotAsked says that the incident is not waiting for an answer.
	ErrNotAsked = errors.New("the incident is not waiting for an answer")
)
