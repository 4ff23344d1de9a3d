// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/policy"
)

// The rules up to the first write.

// maxObservations and retryPause bound how often a failed observation is repeated within the decide deadline.
const (
	maxObservations = 4
	retryPause      = time.Second
)

// maxLooks is how often the yard is looked at for one decision, spread over a good part of the decide deadline: a picture
// taken while the load changes mixes two presents, since rates reach back over a window, and a scrape may be lost.
const maxLooks = 8

func lookPause(p policy.Policy) time.Duration { return p.DecideDeadline / 20 }

// unclear says that the proposal rests on a picture that does not fit together.
func unclear(p *Proposal) bool {
	return p.Diagnosis.Cause == fault.UnexplainedTraffic || p.Diagnosis.Cause == fault.NotCongested || !p.Explains
}

// dataChecks are the checks of guard whose objection the next picture may not have.
var dataChecks = []string{"data", "explains the present"}

// lookAgain goes back to observing after a pause, unless there is no time left or there were enough looks.
func (t *turn) lookAgain() bool {
	in := t.in
	at := t.now.Add(lookPause(in.Policy))
	if in.Looks++; in.Looks >= maxLooks || !at.Before(in.Deadline) {
		return false
	}
	t.say("unclear", "looking again (%d of %d)", in.Looks+1, maxLooks)
	in.Proposal, in.Verdict = nil, nil
	t.enter(Opened, in.Deadline)
	in.RetryAt = at
	return true
}

// maxQuestions is how often a human is asked again because the plan changed between question and approval.
const maxQuestions = 3

func (t *turn) join() {
	a := t.ev.(Alert).Alert
	t.evidence(a)
	t.in.GoneSince = time.Time{}
	t.say("alert", "%s fires too (%s)", a.Name, a.Fingerprint)
}

func (t *turn) gone() {
	t.in.GoneSince = t.now
	t.say("alert gone", "no alert of the target fires any more")
	if t.in.State == Holding {
		t.holdTimer()
	}
}

func (t *turn) resolved() { t.end(Resolved, "the alert went away before anything was written") }

// observeAgain starts the thinking afresh, without stretching the deadline.
func (t *turn) observeAgain() {
	in := t.in
	deadline := in.Deadline
	delete(t.s.Reservations, in.ID)
	in.Proposal, in.Verdict = nil, nil
	t.enter(Opened, deadline)
	t.do(Command{Kind: CmdObserve, Deadline: deadline})
}

func (t *turn) observed() {
	ev := t.ev.(Observed)
	in := t.in
	switch {
	case ev.Err != "":
		in.Attempt++
		t.say("not observed", "%s", ev.Err)
		if in.Attempt >= maxObservations {
			t.end(Refused, "no picture of the yard: %s", ev.Err)
			return
		}
		in.RetryAt = t.now.Add(retryPause)
		return
	case ev.Refused != "":
		t.end(Refused, "target: %s", ev.Refused)
		return
	}
	in.Snapshot, in.ObservedAt = ev.Snapshot, ev.At
	why := "at " + ev.At.UTC().Format(time.RFC3339Nano)
	if len(ev.Problems) > 0 {
		why += "; missing: " + strings.Join(ev.Problems, ", ")
	}
	t.enter(ObservedS, in.Deadline)
	t.say(string(ObservedS), "%s", why)
	t.do(Command{Kind: CmdPropose, Text: in.Snapshot, Deadline: in.Deadline})
}

func (t *turn) dueOpened() {
	if t.in.late(t.now) {
		t.expire()
		return
	}
	t.in.RetryAt = time.Time{}
	t.do(Command{Kind: CmdObserve, Deadline: t.in.Deadline})
}

func (t *turn) expire() {
	t.end(Expired, "no decision by %s (in state %s)", t.in.Deadline.Format(time.RFC3339), t.in.State)
}

func (t *turn) proposed() {
	ev := t.ev.(Proposed)
	in := t.in
	if ev.Err != "" || ev.Proposal == nil {
		t.end(Refused, "no proposal: %s", ev.Err)
		return
	}
	in.Proposal = ev.Proposal
	p := ev.Proposal
	t.say("decided", "%s: %s", p.Diagnosis.Cause, p.Diagnosis.Reason)
	switch {
	case unclear(p) && t.lookAgain():
		return
	case !p.Diagnosis.Cause.Reroutable():
		t.end(Refused, "%s: moving routes does not cure it. %s", p.Diagnosis.Cause, p.Diagnosis.Reason)
		return
	case !p.Explains:
		t.end(Refused, "does not explain the present: %s", p.Reason)
		return
	case p.Chosen == nil || p.Chosen.DoesNothing():
		t.end(Refused, "nothing better than doing nothing: %s", p.Reason)
		return
	}
	in.PlanHash = planHash(p.Chosen)
	t.enter(ProposedS, in.Deadline)
	t.say(string(ProposedS), "%s (gain %.1f %%): %s", p.Chosen.Summary, 100*p.Chosen.Forecast.Gain, p.Reason)
	t.do(Command{Kind: CmdJudge, Deadline: in.Deadline})
}

// judge asks guard. It is pure, so the verdict is made here, by the record that also takes the reservation.
func (t *turn) judge(f guard.Facts) guard.Verdict {
	in := t.in
	in.Mode = t.s.Policies.Mode(in.Policy)
	v := guard.Judge(guard.Input{
		Policy: in.Policy, Mode: in.Mode, Plan: in.Proposal.Chosen, Explains: in.Proposal.Explains,
		Approved: in.Approved != "" && in.Approved == in.PlanHash, Facts: f, Ledger: t.ledger(),
	})
	in.Verdict = &v
	return v
}

func (t *turn) judged() {
	in := t.in
	v := t.judge(t.ev.(Judged).Facts)
	t.say(string(JudgedS), "%s: %s", v.Decision, v.Reason)
	switch {
	case v.Would == guard.Deny && v.OnlyObjects(dataChecks...) && t.lookAgain():
	case in.Mode == policy.Watch:
		in.Reason = "mode watch: would " + string(v.Would)
		t.enter(Watching, t.now.Add(in.Policy.VerifyDeadline))
		t.say(string(Watching), "would %s", would(v))
		t.do(Command{Kind: CmdFollowUp, Text: in.Snapshot, Deadline: in.Deadline})
	case v.Decision == guard.Allow:
		t.reserve()
		t.enter(JudgedS, in.Deadline)
		t.do(Command{Kind: CmdRecheck, Deadline: in.Deadline})
	case v.Decision == guard.Ask:
		if in.Questions++; in.Questions > maxQuestions {
			t.end(Refused, "the plan changed after each of %d questions", maxQuestions)
			return
		}
		t.enter(Asked, t.now.Add(in.Policy.ApprovalTimeout))
		t.say(string(Asked), "until %s", in.Deadline.Format(time.RFC3339))
		t.tellHuman("approve or deny %s: %s (%s)", in.ID, in.Proposal.Chosen.Summary, v.Reason)
	default:
		t.end(Refused, "%s", v.Reason)
	}
}

// would puts the verdict of watch mode in words.
func would(v guard.Verdict) string {
	switch v.Would {
	case guard.Allow:
		return "act"
	case guard.Ask:
		return "ask"
	}
	return "not act: " + v.Reason
}

func (t *turn) rechecked() {
	in := t.in
	v := t.judge(t.ev.(Rechecked).Facts)
	if v.Decision != guard.Allow {
		t.say("rechecked", "%s", v.Decision)
		t.cancelAttempt()
		t.end(Refused, "just before the first write: %s", v.Reason)
		return
	}
	t.say("rechecked", "%s", v.Reason)
	in.Steps = make([]StepRecord, len(in.Proposal.Chosen.Steps))
	in.Step = 0
	t.markActed(in.Key)
	t.enter(Acting, time.Time{})
	t.issueStep()
}

func (t *turn) answered() {
	ev := t.ev.(Answered)
	in := t.in
	if !ev.Approve {
		t.end(Refused, "denied by %s", ev.Actor)
		return
	}
	in.Approved, in.ApprovedBy = in.PlanHash, ev.Actor
	t.say("approved", "by %s; looking again before acting", ev.Actor)
	in.Deadline = t.now.Add(in.Policy.DecideDeadline)
	t.observeAgain()
}

func (t *turn) restartThinking() {
	t.say(string(KindStarted), "looking again")
	t.cancelAttempt()
	t.observeAgain()
}

func (t *turn) stoppedEarly() {
	t.cancelAttempt()
	t.end(Refused, "stopped by %s", t.s.StoppedBy)
}

func (t *turn) letGoEarly() {
	t.cancelAttempt()
	t.end(Refused, "taken over by %s", t.ev.(LetGo).Actor)
}

func (t *turn) followedUp() {
	r := t.ev.(Verified).Result
	t.in.FollowUp = &r
	t.say("followed up", "%s: %s", r.Outcome, r.Reason)
	t.end(Watched, "would %s; followed up: %s", would(*t.in.Verdict), r.Reason)
}

func (t *turn) dueWatching() {
	t.end(Watched, "would %s; no follow-up could be measured", would(*t.in.Verdict))
}

func (t *turn) letGoWatching() {
	t.end(Watched, "would %s; taken over by %s", would(*t.in.Verdict), t.ev.(LetGo).Actor)
}

func (t *turn) restartWatching() {
	t.say(string(KindStarted), "the follow-up is asked for again")
	t.do(Command{Kind: CmdFollowUp, Text: t.in.Snapshot, Deadline: t.in.Deadline})
}

func (t *turn) diverged() {
	t.end(Handed, "the program was changed and decides differently now: %s", t.ev.(Diverged).Why)
}
