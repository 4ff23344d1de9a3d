// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/trainyard/trainyard/actuator/plan"
)

// CommandKind names what is to be done.
type CommandKind string

// The commands. Each but the last group is answered by one event.
const (
	CmdObserve  CommandKind = "observe"   // Observed
	CmdPropose  CommandKind = "propose"   // Proposed
	CmdJudge    CommandKind = "judge"     // Judged: gather the facts
	CmdRecheck  CommandKind = "recheck"   // Rechecked: gather the facts again
	CmdStep     CommandKind = "step"      // Stepped: write Route
	CmdUndo     CommandKind = "undo"      // Stepped: withdraw Key, or write Route again if there was one before
	CmdRead     CommandKind = "read"      // Read: is Route in force?
	CmdVerify   CommandKind = "verify"    // Verified, once there is an answer
	CmdFollowUp CommandKind = "follow up" // Verified, near Deadline

	CmdHold        CommandKind = "hold"         // look after the jobs and the topology; Changed when they are others
	CmdPut         CommandKind = "put"          // write Route again that a switch lost; the next read-back shows whether it is there
	CmdRemove      CommandKind = "remove"       // withdraw Key that nobody desires; likewise
	CmdWithdrawAll CommandKind = "withdraw all" // withdraw everything, first of all
	CmdTell        CommandKind = "tell"         // tell a human Text
	CmdInput       CommandKind = "input"        // what became of an input: nothing to do, but it is recorded and counted
)

// Command is one thing to do. Turn comes back in the answer.
type Command struct {
	Kind     CommandKind    `json:"kind"`
	Incident ID             `json:"incident,omitempty"`
	Turn     int            `json:"turn,omitempty"`
	Step     int            `json:"step,omitempty"`
	Route    *plan.Route    `json:"route,omitempty"`
	Key      *plan.RouteKey `json:"key,omitempty"`
	Deadline time.Time      `json:"deadline,omitzero"`
	Text     string         `json:"text,omitempty"`
	Input    InputOutcome   `json:"input,omitempty"`
}

// InputOutcome is the named end of one input.
type InputOutcome string

// What can become of an alert.
const (
	InputOpened       InputOutcome = "opened"        // an incident
	InputJoined       InputOutcome = "joined"        // an open incident as evidence
	InputDuplicate    InputOutcome = "duplicate"     // nothing new
	InputResolved     InputOutcome = "resolved"      // ended an episode
	InputLoneResolved InputOutcome = "lone resolved" // end of an episode that was never seen
	InputStale        InputOutcome = "stale"         // older than what is known of its fingerprint
	InputSuppressed   InputOutcome = "suppressed"    // silenced or inhibited
	InputNoPolicy     InputOutcome = "no policy"
	InputNoTarget     InputOutcome = "no target"
	InputActedBefore  InputOutcome = "acted before" // in this episode
	InputWaiting      InputOutcome = "waiting"      // refused a short time ago: looked at again later
	InputStorm        InputOutcome = "storm"        // too many incidents are open
	InputFull         InputOutcome = "table full"   // too many episodes are known; not journalled
)

// Digest names a list of commands, per incident. It stands in the journal so that a replay by changed code is noticed.
// Commands about no incident are left out: there is nobody to hand over.
func Digest(cmds []Command) map[ID]string {
	by := map[ID][]Command{}
	for _, c := range cmds {
		if c.Incident != "" {
			by[c.Incident] = append(by[c.Incident], c)
		}
	}
	digests := make(map[ID]string, len(by))
	for id, cs := range by {
		text, err := json.Marshal(cs)
		if err != nil {
			text = []byte(err.Error()) // plain values: cannot happen, and if it does the digests differ
		}
		sum := sha256.Sum256(text)
		digests[id] = hex.EncodeToString(sum[:6])
	}
	return digests
}
