// SPDX-License-Identifier: Apache-2.0

package flow

import "time"

// The rules from the first write to the end of the verification, and those that take routes back.

// Retries of one write. Backing off doubles; removals go on longer, since leaving a route is worse than asking again.
const (
	maxWrites   = 3
	maxRemovals = 6
	writePause  = 200 * time.Millisecond
)

// issueStep orders the current step. The row of the desired-state table is written by the same record.
func (t *turn) issueStep() {
	in := t.in
	step := in.Proposal.Chosen.Steps[in.Step]
	rec := &in.Steps[in.Step]
	if rec.Issued.IsZero() {
		rec.Issued = t.now
		in.Deadline = t.now.Add(in.Policy.StepDeadline)
		t.say("step", "%d of %d: %s", in.Step+1, len(in.Steps), step.Route)
	}
	rec.Attempts++
	in.Reading, in.RetryAt = false, time.Time{}
	t.s.Desired[step.Route.Key().String()] = &Desired{step.Route, in.ID, Applying, t.now}
	t.do(Command{Kind: CmdStep, Step: in.Step, Route: &step.Route, Deadline: in.Deadline})
}

// readBack asks what the unclear write came to.
func (t *turn) readBack() {
	in := t.in
	in.Reading, in.RetryAt = true, time.Time{}
	route := in.Proposal.Chosen.Steps[in.Step].Route
	t.do(Command{Kind: CmdRead, Step: in.Step, Route: &route, Deadline: in.Deadline})
}

func (t *turn) record(o Outcome, detail string) {
	rec := &t.in.Steps[t.in.Step]
	rec.Outcome, rec.Detail, rec.At = o, detail, t.now
}

func (t *turn) stepped() {
	ev := t.ev.(Stepped)
	in := t.in
	if ev.Undo || ev.Step != in.Step || in.Reading {
		return
	}
	t.record(ev.Outcome, ev.Detail)
	t.say("step "+string(ev.Outcome), "%d of %d: %s", in.Step+1, len(in.Steps), ev.Detail)
	switch ev.Outcome {
	case Done:
		t.stepDone()
	case Transient:
		t.retryStep("transient")
	case Ambiguous:
		t.readBack()
	case Superseded:
		t.dropRow()
		t.undo(SupersededS, "a newer decision took its place: "+ev.Detail)
	case Cancelled:
		t.dropRow()
		t.undo(Undone, "cancelled before the write: "+ev.Detail)
	default: // permanent, and whatever a driver may invent: nothing was written, and nothing will be
		t.dropRow()
		t.undo(Undone, "the driver refuses: "+ev.Detail)
	}
}

// dropRow takes the current step's row out of the table: the driver says that nothing was written.
func (t *turn) dropRow() {
	delete(t.s.Desired, t.in.Proposal.Chosen.Steps[t.in.Step].Route.Key().String())
}

func (t *turn) retryStep(why string) {
	in := t.in
	if in.Steps[in.Step].Attempts >= maxWrites {
		t.undo(Undone, "step failed "+why+" each time")
		return
	}
	in.RetryAt = t.now.Add(writePause << (in.Steps[in.Step].Attempts - 1))
}

func (t *turn) read() {
	ev := t.ev.(Read)
	in := t.in
	if !in.Reading || ev.Step != in.Step {
		return
	}
	switch {
	case ev.Err != "":
		t.say("not read back", "%s", ev.Err)
		if in.Attempt++; in.Attempt >= maxWrites {
			t.undo(Undone, "what the write came to cannot be read: "+ev.Err)
			return
		}
		in.RetryAt = t.now.Add(writePause << in.Attempt)
	case ev.Present:
		t.record(Done, "read back: in force")
		t.say("read back", "step %d is in force", in.Step+1)
		t.stepDone()
	case t.s.Stopped:
		t.undo(Undone, "stopped before the step was written")
	default:
		in.Reading = false
		t.say("read back", "step %d is not in force", in.Step+1)
		t.retryStep("not in force")
	}
}

func (t *turn) stepDone() {
	in := t.in
	route := in.Proposal.Chosen.Steps[in.Step].Route
	t.s.Desired[route.Key().String()].State = InForce
	in.Attempt, in.Reading = 0, false
	if in.Step+1 < len(in.Steps) {
		in.Step++
		t.issueStep()
		return
	}
	in.SettledAt = t.now
	t.enter(Settling, t.now.Add(in.Policy.VerifyDeadline))
	t.say(string(Settling), "all steps are in force; verified by %s or undone", in.Deadline.Format(time.RFC3339))
	t.verify()
}

func (t *turn) verify() {
	t.do(Command{Kind: CmdVerify, Text: t.in.Snapshot, Deadline: t.in.Deadline})
}

func (t *turn) dueActing() {
	in := t.in
	switch {
	case in.late(t.now):
		t.undo(Undone, "step not done by its deadline")
	case in.Reading:
		t.readBack()
	default:
		t.issueStep()
	}
}

func (t *turn) verified() {
	r := t.ev.(Verified).Result
	in := t.in
	r.At = t.now
	in.Checked = &r
	t.say("verified", "%s: %s", r.Outcome, r.Reason)
	if r.Outcome != Better {
		t.undo(Undone, r.Outcome+": "+r.Reason)
		return
	}
	in.Reason = "better: " + r.Reason
	in.HoldEnd = t.now.Add(in.Policy.HoldMax)
	delete(t.s.Reservations, in.ID) // one change at a time is one unverified change: what is verified blocks nobody
	t.enter(Holding, in.HoldEnd)
	t.say(string(Holding), "until the alert is gone for %v, the job ends or the topology changes", in.Policy.Hold)
	if !in.GoneSince.IsZero() {
		t.holdTimer()
	}
	t.hold()
}

func (t *turn) dueSettling() {
	r := Verification{Outcome: Inconclusive, Reason: "not verified by the deadline", At: t.now}
	t.in.Checked = &r
	t.undo(Undone, "inconclusive: not verified by the deadline")
}

func (t *turn) changedWhileSettling() {
	why := t.ev.(Changed).Why
	r := Verification{Outcome: Inconclusive, Reason: why, At: t.now}
	t.in.Checked = &r
	t.undo(Undone, "inconclusive: "+why)
}

// undo takes back what was written; the undo is never blocked.
func (t *turn) undo(end IncidentState, why string) { t.takeBack(Undoing, end, why) }

// takeBack removes the incident's routes in reverse order and then ends.
func (t *turn) takeBack(state, end IncidentState, why string) {
	in := t.in
	in.End, in.EndReason, in.Reading = end, why, false
	t.enter(state, time.Time{})
	t.say(string(state), "%s", why)
	t.nextRemoval()
}

// nextRemoval finds the newest step whose row still stands, and removes it; when none is left the story ends.
func (t *turn) nextRemoval() {
	in := t.in
	for i := len(in.Steps) - 1; i >= 0; i-- {
		if d := t.row(i); d != nil && !in.Steps[i].Undone {
			in.Step, in.Attempt = i, 0
			t.issueRemoval()
			return
		}
	}
	end := in.End
	if end == Undone && !in.written() {
		t.cancelAttempt()
		for _, e := range t.s.episodes(in.Key) {
			e.Acted = false
		}
		end = Refused // nothing was written at all
	}
	t.end(end, "%s", in.EndReason)
}

// row is the desired-state row of step i, if it is the incident's own.
func (t *turn) row(i int) *Desired {
	d := t.s.Desired[t.in.Proposal.Chosen.Steps[i].Route.Key().String()]
	if d == nil || d.Incident != t.in.ID {
		return nil
	}
	return d
}

func (t *turn) issueRemoval() {
	in := t.in
	step := in.Proposal.Chosen.Steps[in.Step]
	d := t.row(in.Step)
	if d == nil { // removed meanwhile, e.g. by stop --withdraw
		t.nextRemovalOrEnd()
		return
	}
	d.State, d.Since = Removing, t.now
	in.RetryAt = time.Time{}
	key := step.Route.Key()
	c := Command{Kind: CmdUndo, Step: in.Step, Key: &key, Deadline: t.now.Add(in.Policy.StepDeadline)}
	if step.Before != nil {
		c.Route = step.Before
	}
	t.do(c)
}

// nextRemovalOrEnd is only reached when the row of the current step is gone already.
func (t *turn) nextRemovalOrEnd() {
	t.in.Steps[t.in.Step].Undone = true
	t.nextRemoval()
}

func (t *turn) removed() {
	ev := t.ev.(Stepped)
	in := t.in
	if !ev.Undo || ev.Step != in.Step {
		return
	}
	t.say("undo "+string(ev.Outcome), "step %d: %s", in.Step+1, ev.Detail)
	switch ev.Outcome {
	case Done:
		in.Steps[in.Step].Undone, in.Steps[in.Step].UndoneAt = true, t.now
		delete(t.s.Desired, in.Proposal.Chosen.Steps[in.Step].Route.Key().String())
		t.nextRemoval()
		return
	case Cancelled: // no permit at this moment: not the driver's failure, so it does not count
	default:
		in.Attempt++
	}
	if in.Attempt < maxRemovals {
		in.RetryAt = t.now.Add(writePause << min(in.Attempt, 5))
		return
	}
	// The rows leave the table: whatever still stands on a switch is drift from now on, and is removed again and again.
	for i := range in.Steps {
		if t.row(i) != nil {
			delete(t.s.Desired, in.Proposal.Chosen.Steps[i].Route.Key().String())
		}
	}
	t.end(Handed, "%s; and %s could not be removed: %s", in.EndReason, in.Proposal.Chosen.Steps[in.Step].Route.Key(), ev.Detail)
}

func (t *turn) restartActing() {
	t.say(string(KindStarted), "the step in flight is read back")
	if t.s.Stopped {
		t.undo(Undone, "stopped by "+t.s.StoppedBy)
		return
	}
	t.readBack()
}

func (t *turn) restartSettling() {
	if t.droppedWhileAway() {
		t.undo(Undone, "inconclusive: nobody was there for longer than switches keep routes")
		return
	}
	t.say(string(KindStarted), "go on verifying")
	t.verify()
}

func (t *turn) stoppedActing() { t.undo(Undone, "stopped by "+t.s.StoppedBy) }

func (t *turn) stoppedSettling() {
	if t.ev.(Stopped).Withdraw {
		t.undo(Undone, "stopped and withdrawn by "+t.s.StoppedBy)
		return
	}
	t.say(string(KindStopped), "by %s; the verification goes on", t.s.StoppedBy)
}

func (t *turn) letGoActing() { t.undo(Undone, "taken over by "+t.ev.(LetGo).Actor) }

func (t *turn) weakened() {
	t.in.Mode = t.s.Policies.Mode(t.in.Policy)
	t.undo(Undone, "the policies in force put it in mode "+string(t.in.Mode))
}
