// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"time"
)

// The rules of holding: a route move is a standing effect (contract 1).

// maxLosses is how often a route that switches lose is written again: a path that keeps dropping it is not sound.
const maxLosses = 3

func (t *turn) hold() { t.do(Command{Kind: CmdHold, Text: t.in.Snapshot, Deadline: t.in.HoldEnd}) }

// holdTimer sets the deadline of holding: alert gone for long enough, or held for long enough.
func (t *turn) holdTimer() {
	in := t.in
	in.Deadline = in.HoldEnd
	if at := in.GoneSince.Add(in.Policy.Hold); !in.GoneSince.IsZero() && at.Before(in.HoldEnd) {
		in.Deadline = at
	}
}

func (t *turn) firesAgain() {
	t.join()
	t.holdTimer()
}

func (t *turn) dueHolding() {
	in := t.in
	switch {
	case !in.GoneSince.IsZero() && !t.now.Before(in.GoneSince.Add(in.Policy.Hold)):
		t.release(fmt.Sprintf("the alert was gone for %v", in.Policy.Hold))
	case !t.now.Before(in.HoldEnd):
		t.release(fmt.Sprintf("held for %v", in.Policy.HoldMax))
	}
}

func (t *turn) release(why string) { t.takeBack(Releasing, Released, why) }

func (t *turn) changedWhileHolding() { t.release(t.ev.(Changed).Why) }

func (t *turn) letGoHolding() { t.release("released by " + t.ev.(LetGo).Actor) }

func (t *turn) stoppedHolding() {
	if t.ev.(Stopped).Withdraw {
		t.release("stopped and withdrawn by " + t.s.StoppedBy)
		return
	}
	t.say(string(KindStopped), "by %s; the routes stay", t.s.StoppedBy)
}

// lost writes a lost route again, unless that happens too often, or a stop forbids every write.
func (t *turn) lost() {
	in := t.in
	in.Losses++
	why := fmt.Sprintf("a switch lost a route for the %d. time", in.Losses)
	switch {
	case in.Losses > maxLosses && in.State == Settling:
		t.undo(Undone, "inconclusive: "+why)
	case in.Losses > maxLosses:
		t.release(why)
	case t.s.Stopped:
		t.say("lost", "%s; not written again while stopped", why)
	default:
		t.say("lost", "%s; written again", why)
		for _, r := range t.missing() {
			t.cmds = append(t.cmds, Command{Kind: CmdPut, Incident: in.ID, Route: &r})
		}
	}
}

// droppedWhileAway says that switches gave up the routes while no controller was there.
func (t *turn) droppedWhileAway() bool {
	ev := t.ev.(Started)
	return ev.Grace > 0 && ev.Away > ev.Grace
}

func (t *turn) restartHolding() {
	if t.droppedWhileAway() {
		t.release(fmt.Sprintf("nobody was there for %v: switches dropped the routes", t.ev.(Started).Away.Round(time.Second)))
		return
	}
	t.say(string(KindStarted), "go on holding")
	t.hold()
}

// letGoHanded is the human's word that they are done: the lock is given back, and routes that were left are removed.
func (t *turn) letGoHanded() {
	in := t.in
	actor := t.ev.(LetGo).Actor
	target := t.s.Targets[in.Key.String()]
	if target == nil || target.Open != in.ID {
		return // done before
	}
	t.say(string(KindLetGo), "by %s", actor)
	for i := range in.Steps {
		if t.row(i) != nil {
			in.EndedAt = time.Time{}
			t.release("released by " + actor)
			return
		}
	}
	target.Open = ""
	target.CooldownUntil = t.now.Add(in.Policy.Cooldown)
}

// stoppedHanded takes the routes of a handed incident out of the table when everything is withdrawn.
func (t *turn) stoppedHanded() {
	if !t.ev.(Stopped).Withdraw {
		return
	}
	for i := range t.in.Steps {
		if t.row(i) != nil {
			t.in.Steps[i].Undone, t.in.Steps[i].UndoneAt = true, t.now
			delete(t.s.Desired, t.in.Proposal.Chosen.Steps[i].Route.Key().String())
			t.say(string(KindStopped), "withdrawn by %s", t.s.StoppedBy)
		}
	}
}
