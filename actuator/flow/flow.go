// SPDX-License-Identifier: Apache-2.0

// Package flow is the state machine of the whole yard: Step(State, now, Event) gives the next State and the Commands
// that follow from it. It is pure: no clock, no I/O, no chance; replaying the same events gives the same states and
// the same commands. State is also the ledger: target locks, cooldowns, reservations and the desired-state table of
// routes. Flow never carries anything out; loop does, and feeds the results back as events.
package flow

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Version is the version of the rules in this package. A journal written under a newer version is not replayed.
const Version = 1

// ID names an incident: "inc-<hash of goal and target>-<number>". The number counts over the whole yard.
type ID string

// Key is the identity of what an incident is about (contract 4): never a fingerprint.
type Key struct {
	Goal   policy.Goal `json:"goal"`
	Target ident.Port  `json:"target"`
}

// String spells the key; it is also the key in the maps of State.
func (k Key) String() string { return string(k.Goal) + " " + k.Target.String() }

func (k Key) id(n uint64) ID {
	sum := sha256.Sum256([]byte(k.String()))
	return ID(fmt.Sprintf("inc-%s-%d", strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:5])), n))
}

// AlertEvent is one alert as intake or the poll normalised it. A target that could not be read from the labels is
// zero, and TargetError says why.
type AlertEvent struct {
	Fingerprint string            `json:"fingerprint"`
	StartsAt    time.Time         `json:"starts_at"`
	Firing      bool              `json:"firing"`
	Suppressed  bool              `json:"suppressed,omitempty"` // silenced or inhibited: no reason to open, no sign of the end either
	Name        string            `json:"name"`
	Cluster     string            `json:"cluster,omitempty"`
	Target      ident.Port        `json:"target,omitzero"`
	TargetError string            `json:"target_error,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Summary     string            `json:"summary,omitempty"`
	Source      string            `json:"source"` // "webhook" or "poll"
}

// Episode is one firing of one alert: fingerprint and startsAt. The table keeps the newest episode of a fingerprint.
type Episode struct {
	Alert     AlertEvent `json:"alert"`
	Firing    bool       `json:"firing"`
	GoneBy    string     `json:"gone_by,omitempty"` // source that said that it is over
	SeenAt    time.Time  `json:"seen_at"`
	ChangedAt time.Time  `json:"changed_at"`
	Acted     bool       `json:"acted,omitempty"` // something was written for it: never again in this episode
}

// Target is what the ledger knows of one (goal, target).
type Target struct {
	Key           Key       `json:"key"`
	Open          ID        `json:"open,omitempty"` // the incident that holds the lock
	CooldownUntil time.Time `json:"cooldown_until,omitzero"`
	ReopenAt      time.Time `json:"reopen_at,omitzero"` // when a refused and still firing alert is looked at again
	Refusals      int       `json:"refusals,omitempty"` // in a row, for the back-off
}

// Reservation is a slot of the budgets, taken by the record that decides to act.
type Reservation struct {
	Pool string    `json:"pool"`
	At   time.Time `json:"at"`
}

// Attempt counts against the hourly budget. It stays when its reservation is given back, unless nothing was written.
type Attempt struct {
	Incident ID        `json:"incident"`
	Pool     string    `json:"pool"`
	At       time.Time `json:"at"`
}

// RouteState says how far a desired route is.
type RouteState string

// Only a route in force is reconciled: one on its way is its incident's business.
const (
	Applying RouteState = "applying"
	InForce  RouteState = "in force"
	Removing RouteState = "removing"
)

// Desired is one row of the desired-state table (contract 1).
type Desired struct {
	Route    plan.Route `json:"route"`
	Incident ID         `json:"incident"`
	State    RouteState `json:"state"`
	Since    time.Time  `json:"since"`
}

// State is the whole yard. Step takes it over and gives it back: whoever needs the old one clones it first.
type State struct {
	Version      int                     `json:"version"`
	Now          time.Time               `json:"now"` // of the newest record: never goes back
	Epoch        uint64                  `json:"epoch"`
	Count        uint64                  `json:"count"` // incidents ever opened
	Policies     policy.Set              `json:"policies"`
	Stopped      bool                    `json:"stopped,omitempty"`
	StoppedBy    string                  `json:"stopped_by,omitempty"`
	Incidents    map[ID]*Incident        `json:"incidents"`
	Targets      map[string]*Target      `json:"targets"`
	Episodes     map[string]*Episode     `json:"episodes"`
	Desired      map[string]*Desired     `json:"desired"`
	Reservations map[ID]*Reservation     `json:"reservations"`
	Attempts     []Attempt               `json:"attempts,omitempty"`
	Inputs       map[InputOutcome]uint64 `json:"inputs"`            // journalled inputs by what became of them
	Problem      string                  `json:"problem,omitempty"` // why the ledger cannot be trusted; "" = it can
	CollectAt    time.Time               `json:"collect_at,omitzero"`

	byTarget map[ident.Port]map[string]bool // fingerprints of Episodes; made again when a State is decoded
}

// New is the empty yard.
func New() State {
	return State{
		Version: Version, Incidents: map[ID]*Incident{}, Targets: map[string]*Target{}, Episodes: map[string]*Episode{},
		Desired: map[string]*Desired{}, Reservations: map[ID]*Reservation{}, Inputs: map[InputOutcome]uint64{},
		byTarget: map[ident.Port]map[string]bool{},
	}
}

// Encode writes a State for a checkpoint.
func (s State) Encode() ([]byte, error) { return json.Marshal(s) }

// DecodeState reads what Encode wrote.
func DecodeState(text []byte) (State, error) {
	s := New()
	if err := json.Unmarshal(text, &s); err != nil {
		return State{}, fmt.Errorf("decode state: %w", err)
	}
	if s.Version > Version {
		return State{}, fmt.Errorf("decode state: version %d, this program knows version %d: %w", s.Version, Version, ErrNewer)
	}
	for _, e := range s.Episodes {
		s.index(e.Alert)
	}
	return s, nil
}

// Clone copies a State in depth.
func (s State) Clone() State {
	text, err := s.Encode()
	if err == nil {
		if c, err := DecodeState(text); err == nil {
			return c
		}
	}
	panic(fmt.Sprintf("clone state: %v", err)) // own types only: cannot happen
}

// Entry is one line of an incident's story.
type Entry struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	Why  string    `json:"why,omitempty"`
}

// Proposal is what decide came to, as flow keeps it. Long lists may be cut; Blob then has the whole.
type Proposal struct {
	Diagnosis    fault.Diagnosis `json:"diagnosis"`
	MatrixSource string          `json:"matrix_source"`
	Explains     bool            `json:"explains"`
	Candidates   []plan.Plan     `json:"candidates"`
	Chosen       *plan.Plan      `json:"chosen,omitempty"`
	Reason       string          `json:"reason"`
	Blob         string          `json:"blob,omitempty"`
}

// Figure is one measured number of a verification.
type Figure struct {
	What     string  `json:"what"`
	Before   float64 `json:"before"`
	Forecast float64 `json:"forecast,omitempty"`
	After    float64 `json:"after"`
	Unit     string  `json:"unit"`
}

// Verification outcomes (field rule 9).
const (
	Better       = "better"
	NoChange     = "no change"
	Harm         = "harm"
	Inconclusive = "inconclusive"
)

// Verification is the answer of verify, or of the follow-up of an incident in watch mode.
type Verification struct {
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason"`
	Figures []Figure  `json:"figures,omitempty"`
	At      time.Time `json:"at"`
}

// StepRecord is what became of one step.
type StepRecord struct {
	Issued   time.Time `json:"issued,omitzero"`
	Outcome  Outcome   `json:"outcome,omitempty"`
	Detail   string    `json:"detail,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Attempts int       `json:"attempts,omitempty"`
	Undone   bool      `json:"undone,omitempty"`
	UndoneAt time.Time `json:"undone_at,omitzero"`
}

// Incident is one story, from the alert to a named end.
type Incident struct {
	ID         ID             `json:"id"`
	Key        Key            `json:"key"`
	State      IncidentState  `json:"state"`
	Policy     policy.Policy  `json:"policy"` // it finishes under the policy that it was opened with
	PolicyHash string         `json:"policy_hash"`
	Mode       policy.Mode    `json:"mode"` // that bound when it was judged last
	Alerts     []AlertEvent   `json:"alerts"`
	OpenedAt   time.Time      `json:"opened_at"`
	EndedAt    time.Time      `json:"ended_at,omitzero"`
	Since      time.Time      `json:"since"` // in this state
	Deadline   time.Time      `json:"deadline,omitzero"`
	RetryAt    time.Time      `json:"retry_at,omitzero"`
	Turn       int            `json:"turn"` // of the newest command that awaits a result; older results are late
	Attempt    int            `json:"attempt,omitempty"`
	Looks      int            `json:"looks,omitempty"`       // pictures that nothing could be decided on
	Snapshot   string         `json:"snapshot,omitempty"`    // blob of the picture that the plan rests on
	ObservedAt time.Time      `json:"observed_at,omitzero"`  // evaluation time of that picture
	Proposal   *Proposal      `json:"proposal,omitempty"`    //
	PlanHash   string         `json:"plan_hash,omitempty"`   // of the chosen steps
	Approved   string         `json:"approved,omitempty"`    // hash of the plan that a human approved
	ApprovedBy string         `json:"approved_by,omitempty"` //
	Questions  int            `json:"questions,omitempty"`   // asked so far
	Verdict    *guard.Verdict `json:"verdict,omitempty"`
	Step       int            `json:"step"`
	Reading    bool           `json:"reading,omitempty"` // the outcome of the step is being read back
	Steps      []StepRecord   `json:"steps,omitempty"`
	SettledAt  time.Time      `json:"settled_at,omitzero"` // the last step was done
	GoneSince  time.Time      `json:"gone_since,omitzero"` // every alert is gone since
	HoldEnd    time.Time      `json:"hold_end,omitzero"`   // of holding, in any case
	Losses     int            `json:"losses,omitempty"`    // times that a switch lost a route while holding
	End        IncidentState  `json:"end,omitempty"`       // where undoing or releasing leads
	EndReason  string         `json:"end_reason,omitempty"`
	Checked    *Verification  `json:"verification,omitempty"`
	FollowUp   *Verification  `json:"follow_up,omitempty"`
	Reason     string         `json:"reason,omitempty"` // why it stands where it stands; the final one is the end's
	Timeline   []Entry        `json:"timeline"`
}

// planHash names the steps of a plan, so that an approval holds for exactly that plan.
func planHash(p *plan.Plan) string {
	text, err := json.Marshal(p.Steps)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
