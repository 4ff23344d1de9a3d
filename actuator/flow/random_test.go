// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
)

// yard is a random world around flow: it answers commands late, twice, never, or wrongly; starts again from the journal
// at any moment; and has a switch of its own, so that what is really in force can be compared with what flow believes.
type yard struct {
	t       *rapid.T
	s       State
	now     time.Time
	journal []recorded
	pending []Command
	real    map[plan.RouteKey]bool // routes on switches
	writes  map[string]int         // first step of an incident, by target and firing episodes: never twice
	taken   map[ID]time.Time       // reservations, as the test counts them

	policy policy.Policy
}

type recorded struct {
	now  time.Time
	kind Kind
	text []byte
	cmds map[ID]string
}

func newYard(t *rapid.T, mode policy.Mode) *yard {
	p := testPolicy(mode)
	p.Budgets.MaxConcurrent = rapid.IntRange(1, 3).Draw(t, "max concurrent")
	p.Budgets.PerHour = rapid.IntRange(1, 6).Draw(t, "per hour")
	y := &yard{t: t, s: New(), now: epoch, real: map[plan.RouteKey]bool{}, writes: map[string]int{}, taken: map[ID]time.Time{}, policy: p}
	y.step(Policies{policy.Set{Policies: []policy.Policy{p}}})
	y.step(Started{Epoch: 1})
	return y
}

func (y *yard) step(ev Event) {
	text, err := EncodeEvent(ev)
	if err != nil {
		y.t.Fatal(err)
	}
	before := map[ID]IncidentState{}
	for id, in := range y.s.Incidents {
		before[id] = in.State
	}
	var cmds []Command
	y.s, cmds = Step(y.s, y.now, ev)
	y.journal = append(y.journal, recorded{y.s.Now, ev.Kind(), text, Digest(cmds)})
	for _, c := range cmds {
		switch c.Kind {
		case CmdWithdrawAll:
			clear(y.real)
		case CmdPut:
			y.real[c.Route.Key()] = true
		case CmdRemove:
			delete(y.real, *c.Key)
		case CmdStep:
			y.firstWrite(c)
			y.pending = append(y.pending, c)
		case CmdTell, CmdInput, CmdHold:
		default:
			y.pending = append(y.pending, c)
		}
	}
	for id, was := range before {
		in := y.s.Incidents[id]
		if in != nil && was.Terminal() && in.State != was && was != Handed {
			y.t.Fatalf("%s left its end %s for %s", id, was, in.State)
		}
	}
	y.invariants()
}

// firstWrite counts how often something was begun for the same episodes of the same target.
func (y *yard) firstWrite(c Command) {
	in := y.s.Incidents[c.Incident]
	if c.Step != 0 || in.Steps[0].Attempts != 1 {
		return
	}
	for _, e := range y.s.episodes(in.Key) {
		if !e.Firing {
			continue
		}
		key := fmt.Sprint(in.Key, e.Alert.Fingerprint, e.Alert.StartsAt.Unix())
		if y.writes[key]++; y.writes[key] > 1 {
			y.t.Fatalf("%s: acted twice on episode %s", c.Incident, key)
		}
	}
}

func (y *yard) invariants() {
	s := y.s
	if len(s.Reservations) > y.policy.Budgets.MaxConcurrent {
		y.t.Fatalf("%d reservations, at most %d", len(s.Reservations), y.policy.Budgets.MaxConcurrent)
	}
	n := 0
	for _, a := range s.Attempts {
		if s.Now.Sub(a.At) < time.Hour {
			n++
		}
	}
	if n > y.policy.Budgets.PerHour {
		y.t.Fatalf("%d attempts within an hour, at most %d", n, y.policy.Budgets.PerHour)
	}
	open := map[string]ID{}
	for id, in := range s.Incidents {
		switch {
		case in.State.Terminal():
			if in.Reason == "" || s.Reservations[id] != nil {
				y.t.Fatalf("%s ended %s for reason %q, reservation %v", id, in.State, in.Reason, s.Reservations[id])
			}
		case open[in.Key.String()] != "":
			y.t.Fatalf("%s and %s are open for one target", id, open[in.Key.String()])
		case s.Targets[in.Key.String()].Open != id:
			y.t.Fatalf("%s is open and does not hold its target", id)
		default:
			open[in.Key.String()] = id
			if in.wake().IsZero() && len(y.awaited(in)) == 0 {
				y.t.Fatalf("%s is %s and waits for nothing", id, in.State)
			}
		}
		if slices.Contains([]IncidentState{JudgedS, Acting, Settling}, in.State) && s.Reservations[id] == nil {
			y.t.Fatalf("%s is %s without a reservation", id, in.State)
		}
	}
	for key, d := range s.Desired {
		if in := s.Incidents[d.Incident]; in == nil || in.State.Terminal() && in.State != Handed {
			y.t.Fatalf("%s is desired by %s, which is over", key, d.Incident)
		}
	}
}

func (y *yard) awaited(in *Incident) []Command {
	return slices.DeleteFunc(slices.Clone(y.pending), func(c Command) bool { return c.Incident != in.ID || c.Turn != in.Turn })
}

// answer carries a command out on the fake switch, with a random result.
func (y *yard) answer(c Command, lucky bool) {
	draw := func(name string, of ...string) string {
		if lucky {
			return of[0]
		}
		return rapid.SampledFrom(of).Draw(y.t, name)
	}
	in := y.s.Incidents[c.Incident]
	if in == nil {
		return
	}
	facts := func() guard.Facts {
		f := goodFacts(y.s, y.now)
		switch draw("facts", "good", "good", "good", "stale", "stop file", "no lease") {
		case "stale":
			f.DataAge = 1e6
		case "stop file":
			f.StopPresent = true
		case "no lease":
			f.LeaseHeld = false
		}
		return f
	}
	switch c.Kind {
	case CmdObserve:
		ev := Observed{Incident: c.Incident, Turn: c.Turn, Snapshot: "blob", At: y.now}
		switch draw("observed", "good", "good", "error", "refused") {
		case "error":
			ev.Err = "no answer"
		case "refused":
			ev.Refused = "not in the inventory"
		}
		y.step(ev)
	case CmdPropose:
		p := testProposal(in.Key.Target, rapid.IntRange(1, 3).Draw(y.t, "steps"))
		switch draw("proposed", "good", "good", "good", "nothing", "unexplained", "receiver") {
		case "nothing":
			p.Chosen = nil
		case "unexplained":
			p.Explains = false
		case "receiver":
			p.Diagnosis.Cause = "slow receiver"
		}
		y.step(Proposed{Incident: c.Incident, Turn: c.Turn, Proposal: p})
	case CmdJudge:
		y.step(Judged{c.Incident, c.Turn, facts()})
	case CmdRecheck:
		y.step(Rechecked{c.Incident, c.Turn, facts()})
	case CmdStep:
		o := Outcome(draw("step", "done", "done", "transient", "permanent", "ambiguous", "superseded", "cancelled"))
		if o == Done || o == Ambiguous && draw("written", "yes", "no") == "yes" {
			if in.Turn == c.Turn { // a superseded write has no permit any more
				y.real[c.Route.Key()] = true
			}
		}
		y.step(Stepped{Incident: c.Incident, Turn: c.Turn, Step: c.Step, Outcome: o, Detail: "random"})
	case CmdUndo:
		o := Outcome(draw("undo", "done", "done", "transient", "ambiguous", "cancelled"))
		if o == Done || o == Ambiguous && draw("removed", "yes", "no") == "yes" {
			delete(y.real, *c.Key)
		}
		y.step(Stepped{Incident: c.Incident, Turn: c.Turn, Step: c.Step, Undo: true, Outcome: o, Detail: "random"})
	case CmdRead:
		ev := Read{Incident: c.Incident, Turn: c.Turn, Step: c.Step, Present: y.real[c.Route.Key()]}
		if draw("read", "good", "good", "error") == "error" {
			ev.Err = "no answer"
		}
		y.step(ev)
	case CmdVerify, CmdFollowUp:
		y.step(Verified{c.Incident, c.Turn, Verification{Outcome: draw("verified", Better, Better, NoChange, Harm, Inconclusive), Reason: "random"}})
	}
}

// start is a crash and a start: the State is made again from the journal, and must be the same; commands in flight are
// lost.
func (y *yard) start() {
	s := New()
	for i, r := range y.journal {
		ev, err := DecodeEvent(r.kind, r.text)
		if err != nil {
			y.t.Fatal(err)
		}
		var cmds []Command
		s, cmds = Step(s, r.now, ev)
		if !maps.Equal(Digest(cmds), r.cmds) {
			y.t.Fatalf("record %d (%s): the replay commands something else", i, r.kind)
		}
	}
	if a, b := encode(y.t, s), encode(y.t, y.s); a != b {
		y.t.Fatalf("the replay differs:\n%s\n%s", a, b)
	}
	if back, err := DecodeState([]byte(encode(y.t, s))); err != nil || encode(y.t, back) != encode(y.t, s) {
		y.t.Fatalf("a checkpoint does not come back as it was (%v)", err)
	}
	y.s, y.pending = s, nil
	y.step(Started{Epoch: y.s.Epoch + 1, Away: time.Duration(rapid.IntRange(0, 60).Draw(y.t, "away")) * time.Second, Grace: 30 * time.Second})
}

func encode(t *rapid.T, s State) string {
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// drift compares the fake switch with the table, as loop does.
func (y *yard) drift() {
	want, leave := Routes(y.s)
	var d Drift
	wanted := map[plan.RouteKey]bool{}
	for _, r := range want {
		wanted[r.Key()] = true
		if !y.real[r.Key()] {
			d.Missing = append(d.Missing, r)
		}
	}
	for k := range y.real {
		if !wanted[k] && !leave[k] {
			d.Extra = append(d.Extra, k)
		}
	}
	slices.SortFunc(d.Extra, func(a, b plan.RouteKey) int { return a.Prefix.Addr().Compare(b.Prefix.Addr()) })
	if d.Missing != nil || d.Extra != nil {
		y.step(d)
	}
}

func (y *yard) tick(until time.Time) {
	for {
		at := NextWake(y.s)
		if at.IsZero() || at.After(until) {
			y.now = later(y.now, until)
			return
		}
		y.now = later(y.now, at)
		y.step(Tick{})
		if again := NextWake(y.s); !again.IsZero() && !again.After(at) && y.s.Now.Equal(at) {
			y.t.Fatalf("a timer at %v does not go away", at)
		}
	}
}

// settle answers everything and lets time pass, until nothing is open: every input must come to its end.
func (y *yard) settle() {
	if y.s.Stopped {
		y.step(Resumed{"ada"})
	}
	for _, fp := range slices.Sorted(maps.Keys(y.s.Episodes)) {
		a := y.s.Episodes[fp].Alert
		a.Firing, a.Source = false, "poll"
		y.step(Alert{a})
	}
	for range 400 {
		if y.s.open() == 0 {
			break
		}
		if len(y.pending) > 0 {
			c := y.pending[0]
			y.pending = y.pending[1:]
			y.answer(c, true)
			continue
		}
		y.drift()
		y.tick(y.now.Add(30 * time.Second))
	}
	for _, in := range y.s.incidents() {
		if !in.State.Terminal() {
			y.t.Fatalf("%s is still %s", in.ID, in.State)
		}
		if in.State == Handed {
			y.step(LetGo{in.ID, "ada"})
			for len(y.pending) > 0 {
				c := y.pending[0]
				y.pending = y.pending[1:]
				y.answer(c, true)
			}
		}
	}
	y.drift()
	if len(y.s.Desired) != 0 || len(y.real) != 0 || len(y.s.Reservations) != 0 {
		y.t.Fatalf("all is over, and %d routes are desired, %d in force, %d reservations taken", len(y.s.Desired), len(y.real), len(y.s.Reservations))
	}
}

func TestRandomYards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := newYard(t, rapid.SampledFrom([]policy.Mode{policy.Act, policy.Act, policy.Act, policy.Advise, policy.Watch}).Draw(t, "mode"))
		t.Repeat(map[string]func(*rapid.T){
			"alert": func(t *rapid.T) {
				n := rapid.IntRange(1, 3).Draw(t, "target")
				fp := fmt.Sprintf("%d%d", n, rapid.IntRange(1, 2).Draw(t, "fingerprint"))
				a := testAlert(fp, fmt.Sprintf("sp%d", n), epoch.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "starts"))*time.Hour), rapid.Bool().Draw(t, "firing"))
				a.Source = rapid.SampledFrom([]string{"webhook", "webhook", "poll"}).Draw(t, "source")
				y.step(Alert{a})
			},
			"answer": func(t *rapid.T) {
				if len(y.pending) == 0 {
					t.Skip("nothing is pending")
				}
				i := 0
				if rapid.IntRange(0, 4).Draw(t, "out of order") == 0 {
					i = rapid.IntRange(0, len(y.pending)-1).Draw(t, "which")
				}
				c := y.pending[i]
				if rapid.IntRange(0, 5).Draw(t, "twice") > 0 {
					y.pending = slices.Delete(y.pending, i, i+1)
				}
				y.answer(c, rapid.Bool().Draw(t, "lucky"))
			},
			"answers": func(t *rapid.T) {
				for range 6 {
					if len(y.pending) > 0 {
						c := y.pending[0]
						y.pending = y.pending[1:]
						y.answer(c, true)
					}
				}
			},
			"time": func(t *rapid.T) {
				y.tick(y.now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 20, 100, 1000, 5000}).Draw(t, "seconds")) * time.Second))
			},
			"clock back": func(t *rapid.T) {
				y.now = y.now.Add(-time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
				y.step(Tick{})
				y.now = later(y.now, y.s.Now)
			},
			"start": func(*rapid.T) { y.start() },
			"drift": func(*rapid.T) { y.drift() },
			"a switch forgets": func(t *rapid.T) {
				clear(y.real)
				y.drift()
			},
			"human": func(t *rapid.T) {
				in := y.s.incidents()
				if len(in) == 0 {
					t.Skip("no incident")
				}
				id := in[rapid.IntRange(0, len(in)-1).Draw(t, "incident")].ID
				switch rapid.SampledFrom([]string{"approve", "approve", "deny", "let go", "changed", "diverged", "stop", "withdraw", "resume"}).Draw(t, "what") {
				case "approve":
					y.step(Answered{id, true, "ada"})
				case "deny":
					y.step(Answered{id, false, "ada"})
				case "let go":
					y.step(LetGo{id, "ada"})
				case "changed":
					y.step(Changed{id, "job ended"})
				case "diverged":
					y.step(Diverged{id, "changed code"})
				case "stop":
					y.step(Stopped{Actor: "ada"})
				case "withdraw":
					y.step(Stopped{Withdraw: true, Actor: "ada"})
				case "resume":
					y.step(Resumed{"ada"})
				}
			},
			"downgrade": func(t *rapid.T) {
				p := y.policy
				p.Mode = rapid.SampledFrom([]policy.Mode{policy.Watch, policy.Advise, policy.Act}).Draw(t, "mode")
				y.step(Policies{policy.Set{Policies: []policy.Policy{p}}})
			},
		})
		y.settle()
	})
}
