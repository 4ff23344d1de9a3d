// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
)

// Kind names an event in the journal and in the table.
type Kind string

// The kinds of events. Those of the first group are about the yard; Step turns them into events of the second group,
// which are about one incident and are what the table has rows for.
const (
	KindAlert    Kind = "alert"    // an alert fires or is over
	KindStarted  Kind = "started"  // the program started, under a new epoch
	KindTick     Kind = "tick"     // a timer came due
	KindStopped  Kind = "stopped"  // stop, with or without withdrawing
	KindResumed  Kind = "resumed"  // the stop is lifted
	KindPolicies Kind = "policies" // the policy file in force
	KindDrift    Kind = "drift"    // the routes in force are not the desired ones

	KindFiring    Kind = "firing"    // an alert of the target fires
	KindGone      Kind = "gone"      // no alert of the target fires any more
	KindDue       Kind = "due"       // a deadline or a retry of the incident came due
	KindObserved  Kind = "observed"  // a snapshot, or why there is none
	KindProposed  Kind = "proposed"  // diagnosis, candidates and choice
	KindJudged    Kind = "judged"    // the facts for the verdict
	KindRechecked Kind = "rechecked" // the facts just before the first write
	KindAnswered  Kind = "answered"  // a human approved or denied
	KindStepped   Kind = "stepped"   // what a write came to
	KindRead      Kind = "read"      // what reading back after an unclear write showed
	KindVerified  Kind = "verified"  // the effect, or the follow-up in watch mode
	KindChanged   Kind = "changed"   // the world that the plan was made for is gone
	KindLost      Kind = "lost"      // a switch lost a route of the incident
	KindLetGo     Kind = "let go"    // a human takes the incident over or ends the holding
	KindWeakened  Kind = "weakened"  // the policies in force allow less than when it was judged
	KindDiverged  Kind = "diverged"  // a replay came to other commands than were recorded
)

// Event is one journalled input.
type Event interface{ Kind() Kind }

// Outcome is what a write came to (contract 5); the words are those of package act.
type Outcome string

// The outcomes of a write.
const (
	Done       Outcome = "done"
	Transient  Outcome = "transient"
	Permanent  Outcome = "permanent"
	Ambiguous  Outcome = "ambiguous"
	Superseded Outcome = "superseded"
	Cancelled  Outcome = "cancelled"
)

// The events. Turn repeats the turn of the command that is answered.
type (
	// Alert is one alert from the webhook or the poll.
	Alert struct {
		Alert AlertEvent `json:"alert"`
	}
	// Started is the first record of every run. Away is how long no run held the lease; Grace is how long switches keep
	// routes of a controller that is away.
	Started struct {
		Epoch   uint64        `json:"epoch"`
		Away    time.Duration `json:"away"`
		Grace   time.Duration `json:"grace"`
		Problem string        `json:"problem,omitempty"` // a torn tail that was dropped, for the story
	}
	// Tick says that a timer came due.
	Tick struct{}
	// Stopped blocks new steps, never an undo.
	Stopped struct {
		Withdraw bool   `json:"withdraw"`
		Actor    string `json:"actor"`
	}
	// Resumed lifts a stop.
	Resumed struct {
		Actor string `json:"actor"`
	}
	// Policies puts a policy set in force.
	Policies struct {
		Set policy.Set `json:"set"`
	}
	// Drift is the difference between read-back and the desired-state table.
	Drift struct {
		Missing []plan.Route    `json:"missing,omitempty"`
		Extra   []plan.RouteKey `json:"extra,omitempty"`
	}
	// Observed answers CmdObserve.
	Observed struct {
		Incident ID        `json:"incident"`
		Turn     int       `json:"turn"`
		Snapshot string    `json:"snapshot,omitempty"` // blob
		At       time.Time `json:"at"`                 // evaluation time at Prometheus
		Problems []string  `json:"problems,omitempty"`
		Err      string    `json:"err,omitempty"`
		Refused  string    `json:"refused,omitempty"` // the target is not exactly one object of the inventory
	}
	// Proposed answers CmdPropose.
	Proposed struct {
		Incident ID        `json:"incident"`
		Turn     int       `json:"turn"`
		Proposal *Proposal `json:"proposal,omitempty"`
		Err      string    `json:"err,omitempty"`
	}
	// Judged answers CmdJudge with the facts; the verdict follows from them and the ledger.
	Judged struct {
		Incident ID          `json:"incident"`
		Turn     int         `json:"turn"`
		Facts    guard.Facts `json:"facts"`
	}
	// Rechecked answers CmdRecheck.
	Rechecked struct {
		Incident ID          `json:"incident"`
		Turn     int         `json:"turn"`
		Facts    guard.Facts `json:"facts"`
	}
	// Answered is a human's answer to a question.
	Answered struct {
		Incident ID     `json:"incident"`
		Approve  bool   `json:"approve"`
		Actor    string `json:"actor"`
	}
	// Stepped answers CmdStep and CmdUndo.
	Stepped struct {
		Incident ID      `json:"incident"`
		Turn     int     `json:"turn"`
		Step     int     `json:"step"`
		Undo     bool    `json:"undo,omitempty"`
		Outcome  Outcome `json:"outcome"`
		Detail   string  `json:"detail,omitempty"`
	}
	// Read answers CmdRead.
	Read struct {
		Incident ID     `json:"incident"`
		Turn     int    `json:"turn"`
		Step     int    `json:"step"`
		Present  bool   `json:"present"` // the route is in force as planned
		Err      string `json:"err,omitempty"`
	}
	// Verified answers CmdVerify and CmdFollowUp.
	Verified struct {
		Incident ID           `json:"incident"`
		Turn     int          `json:"turn"`
		Result   Verification `json:"result"`
	}
	// Changed says that a job ended or the topology is another one.
	Changed struct {
		Incident ID     `json:"incident"`
		Why      string `json:"why"`
	}
	// LetGo is a human's word that an incident is theirs, or that holding may end.
	LetGo struct {
		Incident ID     `json:"incident"`
		Actor    string `json:"actor"`
	}
	// Diverged hands an incident to a human: the replay differs from the record.
	Diverged struct {
		Incident ID     `json:"incident"`
		Why      string `json:"why"`
	}
)

// Kind implements Event.
func (Alert) Kind() Kind { return KindAlert }

// Kind implements Event.
func (Started) Kind() Kind { return KindStarted }

// Kind implements Event.
func (Tick) Kind() Kind { return KindTick }

// Kind implements Event.
func (Stopped) Kind() Kind { return KindStopped }

// Kind implements Event.
func (Resumed) Kind() Kind { return KindResumed }

// Kind implements Event.
func (Policies) Kind() Kind { return KindPolicies }

// Kind implements Event.
func (Drift) Kind() Kind { return KindDrift }

// Kind implements Event.
func (Observed) Kind() Kind { return KindObserved }

// Kind implements Event.
func (Proposed) Kind() Kind { return KindProposed }

// Kind implements Event.
func (Judged) Kind() Kind { return KindJudged }

// Kind implements Event.
func (Rechecked) Kind() Kind { return KindRechecked }

// Kind implements Event.
func (Answered) Kind() Kind { return KindAnswered }

// Kind implements Event.
func (Stepped) Kind() Kind { return KindStepped }

// Kind implements Event.
func (Read) Kind() Kind { return KindRead }

// Kind implements Event.
func (Verified) Kind() Kind { return KindVerified }

// Kind implements Event.
func (Changed) Kind() Kind { return KindChanged }

// Kind implements Event.
func (LetGo) Kind() Kind { return KindLetGo }

// Kind implements Event.
func (Diverged) Kind() Kind { return KindDiverged }

// ErrUnknown is wrapped when a record has a type that this program does not know.
var ErrUnknown = errors.New("unknown record type")

// ErrNewer is wrapped when state or record was written by a newer program.
var ErrNewer = errors.New("written by a newer version")

func decode[E Event](text []byte) (Event, error) {
	var e E
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, err
	}
	return e, nil
}

var decoders = map[Kind]func([]byte) (Event, error){
	KindAlert: decode[Alert], KindStarted: decode[Started], KindTick: decode[Tick], KindStopped: decode[Stopped],
	KindResumed: decode[Resumed], KindPolicies: decode[Policies], KindDrift: decode[Drift], KindObserved: decode[Observed],
	KindProposed: decode[Proposed], KindJudged: decode[Judged], KindRechecked: decode[Rechecked], KindAnswered: decode[Answered],
	KindStepped: decode[Stepped], KindRead: decode[Read], KindVerified: decode[Verified], KindChanged: decode[Changed],
	KindLetGo: decode[LetGo], KindDiverged: decode[Diverged],
}

// EncodeEvent writes an event's payload; its kind stands beside it.
func EncodeEvent(e Event) ([]byte, error) { return json.Marshal(e) }

// DecodeEvent is the inverse of EncodeEvent.
func DecodeEvent(kind Kind, text []byte) (Event, error) {
	d, ok := decoders[kind]
	if !ok {
		return nil, fmt.Errorf("decode event %q: %w", kind, ErrUnknown)
	}
	e, err := d(text)
	if err != nil {
		return nil, fmt.Errorf("decode event %q: %w", kind, err)
	}
	return e, nil
}
