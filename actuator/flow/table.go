// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"slices"
	"strings"
)

// IncidentState is what an incident waits in. What happens on the way (decided, verified) is in its timeline.
type IncidentState string

// The states that wait for something.
const (
	Opened    IncidentState = "opened"    // for a snapshot
	ObservedS IncidentState = "observed"  // for diagnosis and candidates
	ProposedS IncidentState = "proposed"  // for the facts of the verdict
	JudgedS   IncidentState = "judged"    // allowed and reserved; for the facts just before the first write
	Asked     IncidentState = "asked"     // for a human
	Acting    IncidentState = "acting"    // for the outcome of step i
	Settling  IncidentState = "settling"  // for the verification
	Holding   IncidentState = "holding"   // for a reason to take the routes back
	Releasing IncidentState = "releasing" // for the removal of routes that did their work
	Undoing   IncidentState = "undoing"   // for the removal of routes that did not
	Watching  IncidentState = "watching"  // in mode watch: for the follow-up
)

// The named ends.
const (
	Watched     IncidentState = "watched"    // mode watch: what would have been done is recorded, and what happened without it
	Refused     IncidentState = "refused"    // nothing better, a check objects, or a human denied
	Resolved    IncidentState = "resolved"   // the alert went away before anything was written
	Expired     IncidentState = "expired"    // a deadline passed before anything was written
	Released    IncidentState = "released"   // verified, held, taken back
	Undone      IncidentState = "undone"     // taken back without success
	SupersededS IncidentState = "superseded" // a newer decision took its place; taken back
	Handed      IncidentState = "handed"     // to a human
)

// States lists all states in the order of the story.
var States = []IncidentState{
	Opened, ObservedS, ProposedS, JudgedS, Asked, Acting, Settling, Holding, Releasing, Undoing, Watching,
	Watched, Refused, Resolved, Expired, Released, Undone, SupersededS, Handed,
}

var (
	terminal = []IncidentState{Watched, Refused, Resolved, Expired, Released, Undone, SupersededS, Handed}
	before   = []IncidentState{Opened, ObservedS, ProposedS, JudgedS, Asked} // nothing is written
	removing = []IncidentState{Releasing, Undoing}
)

// Terminal says that a state is a named end.
func (s IncidentState) Terminal() bool { return slices.Contains(terminal, s) }

// Kinds lists the events that the table has rows for.
var Kinds = []Kind{
	KindFiring, KindGone, KindDue, KindStarted, KindStopped, KindResumed, KindObserved, KindProposed, KindJudged, KindRechecked,
	KindAnswered, KindStepped, KindRead, KindVerified, KindChanged, KindLost, KindLetGo, KindWeakened, KindDiverged,
}

// row is one line of the table: in any of states, on kind, do what the function says and end in one of next, or stay.
type row struct {
	on   Kind
	in   []IncidentState
	do   func(*turn)
	next []IncidentState // besides staying
	why  string
}

func one(s ...IncidentState) []IncidentState { return s }

func all(but ...IncidentState) []IncidentState {
	return slices.DeleteFunc(slices.Clone(States), func(s IncidentState) bool { return slices.Contains(but, s) })
}

// committed is the table. Every pair of state and event stands in it exactly once; a test counts them.
func committed() []row {
	over := "the incident is over"
	late := "not awaited in this state: a late or repeated result"
	ignore := func(on Kind, why string, in ...IncidentState) row { return row{on, in, (*turn).ignore, nil, why} }
	rows := []row{
		// Alerts.
		{KindFiring, before, (*turn).join, nil, "evidence"},
		{KindFiring, one(Acting, Settling, Releasing, Undoing, Watching), (*turn).join, nil, "evidence"},
		{KindFiring, one(Holding), (*turn).firesAgain, nil, "evidence; the release timer is stopped"},
		{KindGone, before, (*turn).resolved, one(Resolved), "it went away before anything was written; a reservation is given back"},
		{KindGone, one(Acting, Settling), (*turn).gone, nil, "a resolved alert alone proves nothing"},
		{KindGone, one(Holding), (*turn).gone, nil, "the release timer starts"},
		{KindGone, one(Releasing, Undoing, Watching), (*turn).gone, nil, "recorded"},

		// Thinking.
		{KindObserved, one(Opened), (*turn).observed, one(ObservedS, Refused), "propose; without a snapshot try again; refuse a target that is not one object of the inventory"},
		{KindProposed, one(ObservedS), (*turn).proposed, one(Opened, ProposedS, Refused), "gather facts; look again if the picture does not fit together; refuse if the cause is no route's business, or nothing is better"},
		{KindJudged, one(ProposedS), (*turn).judged, one(Opened, JudgedS, Asked, Watching, Refused), "allow reserves the budget in this record; ask; look again if only data is missing; deny; in mode watch record what would be done"},
		{KindRechecked, one(JudgedS), (*turn).rechecked, one(Acting, Refused), "judged again just before the first write"},
		{KindAnswered, one(Asked), (*turn).answered, one(Opened, Refused), "approved: everything is looked at again, and the approval holds for the same plan only"},

		// Writing.
		{KindStepped, one(Acting), (*turn).stepped, one(Settling, Undoing, Undone, SupersededS, Refused), "next step, or settle; unclear: read back; failed: undo, or the end at once if nothing is left to undo"},
		{KindRead, one(Acting), (*turn).read, one(Settling, Undoing), "there: as done; not there: as transient"},
		{KindVerified, one(Settling), (*turn).verified, one(Holding, Undoing), "better holds, anything else is undone"},
		{KindVerified, one(Watching), (*turn).followedUp, one(Watched), "the follow-up is recorded"},
		{KindStepped, removing, (*turn).removed, one(Released, Undone, SupersededS, Refused, Handed), "the one before it, or the end; a removal that keeps failing is handed to a human and goes on as drift"},
		{KindChanged, one(Settling), (*turn).changedWhileSettling, one(Undoing), "the comparison is worth nothing: inconclusive"},
		{KindChanged, one(Holding), (*turn).changedWhileHolding, one(Releasing), "the plan was made for another world"},
		{KindLost, one(Settling, Holding), (*turn).lost, one(Undoing, Releasing), "written again, level-triggered; after the third time taken back"},
		{KindLetGo, before, (*turn).letGoEarly, one(Refused), "a human takes it"},
		{KindLetGo, one(Watching), (*turn).letGoWatching, one(Watched), "a human takes it"},
		{KindLetGo, one(Acting, Settling), (*turn).letGoActing, one(Undoing), "a human takes it: taken back"},
		{KindLetGo, one(Holding), (*turn).letGoHolding, one(Releasing), "a human ends the holding"},
		{KindLetGo, one(Handed), (*turn).letGoHanded, one(Releasing), "the human is done: the lock is given back, routes that were left are removed"},

		// Time.
		{KindDue, one(Opened), (*turn).dueOpened, one(Expired), "observe again, or too late"},
		{KindDue, one(ObservedS, ProposedS, JudgedS), (*turn).expire, one(Expired), "too late; a reservation is given back"},
		{KindDue, one(Asked), (*turn).expire, one(Expired), "nobody answered"},
		{KindDue, one(Acting), (*turn).dueActing, one(Undoing), "try the step again, or too late: undo"},
		{KindDue, one(Settling), (*turn).dueSettling, one(Undoing), "commit-confirm: not verified in time is undone"},
		{KindDue, one(Holding), (*turn).dueHolding, one(Releasing), "the alert was gone for long enough, or held for long enough"},
		{KindDue, removing, (*turn).issueRemoval, nil, "try the removal again"},
		{KindDue, one(Watching), (*turn).dueWatching, one(Watched), "no follow-up could be measured"},

		// Starts and stops.
		{KindStarted, one(Opened), (*turn).restartThinking, nil, "observe again"},
		{KindStarted, one(ObservedS, ProposedS, JudgedS), (*turn).restartThinking, one(Opened), "old pictures decide nothing: observe again; a reservation is given back"},
		{KindStarted, one(Asked), (*turn).note, nil, "the question stands"},
		{KindStarted, one(Acting), (*turn).restartActing, one(Undoing), "the step in flight is read back, never repeated blind; undo if a stop came between"},
		{KindStarted, one(Settling), (*turn).restartSettling, one(Undoing), "go on verifying; undo if switches dropped the routes while nobody was there"},
		{KindStarted, one(Holding), (*turn).restartHolding, one(Releasing), "go on holding; release if switches dropped the routes while nobody was there"},
		{KindStarted, removing, (*turn).issueRemoval, nil, "go on removing"},
		{KindStarted, one(Watching), (*turn).restartWatching, nil, "the follow-up is asked for again"},
		{KindStopped, before, (*turn).stoppedEarly, one(Refused), "nothing was written and nothing will be"},
		{KindStopped, one(Watching), (*turn).note, nil, "watching writes nothing"},
		{KindStopped, one(Acting), (*turn).stoppedActing, one(Undoing), "no further step; what was written is taken back"},
		{KindStopped, one(Settling), (*turn).stoppedSettling, one(Undoing), "verification goes on; with withdraw: taken back"},
		{KindStopped, one(Holding), (*turn).stoppedHolding, one(Releasing), "routes stay; with withdraw: taken back"},
		{KindStopped, removing, (*turn).note, nil, "removal is never stopped"},
		{KindStopped, one(Handed), (*turn).stoppedHanded, nil, "with withdraw: the routes that were left are removed too"},
		{KindWeakened, one(Acting), (*turn).weakened, one(Undoing), "no further step in mode watch; what was written is taken back"},
		{KindDiverged, all(terminal...), (*turn).diverged, one(Handed), "changed code decides nothing about an old story: a human does, and its routes are left as they are"},

		// What is not awaited.
		ignore(KindResumed, "a stop ended incidents or left them as they were; new ones open by themselves", all(terminal...)...),
		ignore(KindObserved, late, all(append(slices.Clone(terminal), Opened)...)...),
		ignore(KindProposed, late, all(append(slices.Clone(terminal), ObservedS)...)...),
		ignore(KindJudged, late, all(append(slices.Clone(terminal), ProposedS)...)...),
		ignore(KindRechecked, late, all(append(slices.Clone(terminal), JudgedS)...)...),
		ignore(KindAnswered, "there is no question", all(append(slices.Clone(terminal), Asked)...)...),
		ignore(KindStepped, late, all(append(slices.Clone(terminal), Acting, Releasing, Undoing)...)...),
		ignore(KindRead, late, all(append(slices.Clone(terminal), Acting)...)...),
		ignore(KindVerified, late, all(append(slices.Clone(terminal), Settling, Watching)...)...),
		ignore(KindChanged, "nothing rests on it", all(append(slices.Clone(terminal), Settling, Holding)...)...),
		ignore(KindLost, "no route is in force", all(append(slices.Clone(terminal), Settling, Holding)...)...),
		ignore(KindWeakened, "the verdict to come is made in the mode in force; what is in force stays until its end", all(append(slices.Clone(terminal), Acting)...)...),
		ignore(KindLetGo, "already being taken back", removing...),
	}
	for _, k := range Kinds {
		in := terminal
		if k == KindLetGo || k == KindStopped {
			in = slices.DeleteFunc(slices.Clone(terminal), func(s IncidentState) bool { return s == Handed })
		}
		rows = append(rows, ignore(k, over, in...))
	}
	return rows
}

type pair struct {
	in IncidentState
	on Kind
}

// table is the committed table by pair. It is written once, here, and never changed.
var table = func() map[pair]row {
	m := map[pair]row{}
	for _, r := range committed() {
		for _, s := range r.in {
			if _, twice := m[pair{s, r.on}]; twice {
				panic(fmt.Sprintf("flow table: two rows for %s on %s", s, r.on))
			}
			m[pair{s, r.on}] = r
		}
	}
	return m
}()

// Markdown writes the table for the documentation.
func Markdown() string {
	var b strings.Builder
	b.WriteString("<!-- Generated by `go test ./actuator/flow -update` from actuator/flow/table.go; do not edit. -->\n\n# The states of an incident\n\n")
	b.WriteString("A state is what an incident waits in; *decided*, *verified* and the like are lines of its timeline. ")
	b.WriteString("The ends are: ")
	for i, s := range terminal {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("`" + string(s) + "`")
	}
	b.WriteString(".\n\nEvery pair of state and event has a row. \"Next\" lists where it can lead besides staying.\n")
	for _, s := range States {
		fmt.Fprintf(&b, "\n## %s\n\n", s)
		if s.Terminal() {
			b.WriteString("An end. ")
		}
		b.WriteString("\n| event | next | why |\n|---|---|---|\n")
		var ignored []string
		for _, k := range Kinds {
			r := table[pair{s, k}]
			if len(r.next) == 0 && (r.why == "the incident is over" || strings.HasPrefix(r.why, "not awaited")) {
				ignored = append(ignored, string(k))
				continue
			}
			next := make([]string, len(r.next))
			for i, n := range r.next {
				next[i] = string(n)
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", k, strings.Join(next, ", "), r.why)
		}
		if ignored != nil {
			fmt.Fprintf(&b, "| %s | | ignored |\n", strings.Join(ignored, ", "))
		}
	}
	return b.String()
}
