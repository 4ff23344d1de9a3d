// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/policy"
)

// A story is a text file: commands, "----", and what flow says to them. `go test -update` writes the answers anew; they
// are reviewed like prose.
//
//	policy act [key=value ...]      max_concurrent, per_hour, hold, cooldown
//	fire|resolve fp port [start]    start in seconds after the beginning (default 0)
//	after 5s                        let time pass, and fire the timers that come due
//	observed|proposed N|judged|rechecked|stepped OUTCOME|read yes|no|error|verified OUTCOME    answer the newest command
//	approve|deny|let go|stop|stop withdraw|resume|start [away]|changed WHY|lost|diverged
//	show                            state of all incidents
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.story")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".story"), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got := retell(t, string(text))
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("the story goes otherwise now:\n%s", got)
			}
		})
	}
}

func retell(t *testing.T, text string) string {
	var out strings.Builder
	n := newNarrator()
	sc := bufio.NewScanner(strings.NewReader(text))
	answer := false
	for sc.Scan() {
		line := sc.Text()
		switch {
		case line == "----":
			answer = true
		case line == "":
			answer = false
		case answer:
		case strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
		default:
			said, err := n.do(strings.Fields(line))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			out.WriteString(line + "\n----\n" + said + "\n")
		}
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

type narrator struct {
	s       State
	now     time.Time
	last    []Command // newest command of each incident that awaits an answer
	facts   func(guard.Facts) guard.Facts
	stories map[ID]int // lines told
}

func newNarrator() *narrator {
	n := &narrator{s: New(), now: epoch, stories: map[ID]int{}, facts: func(f guard.Facts) guard.Facts { return f }}
	n.step(Started{Epoch: 1})
	return n
}

func (n *narrator) step(ev Event) string {
	var cmds []Command
	n.s, cmds = Step(n.s, n.now, ev)
	var b strings.Builder
	for _, in := range n.s.incidents() {
		for _, e := range in.Timeline[n.stories[in.ID]:] {
			fmt.Fprintf(&b, "%s %s: %s: %s\n", e.At.Sub(epoch), in.ID, e.What, e.Why)
		}
		n.stories[in.ID] = len(in.Timeline)
	}
	for _, c := range cmds {
		fmt.Fprintf(&b, "  > %s", c.Kind)
		switch {
		case c.Kind == CmdInput:
			fmt.Fprintf(&b, " %s %s", c.Input, c.Text)
		case c.Route != nil:
			fmt.Fprintf(&b, " %s", c.Route)
		case c.Key != nil:
			fmt.Fprintf(&b, " %s", c.Key)
		case c.Kind == CmdTell:
			fmt.Fprintf(&b, " %s", c.Text)
		}
		b.WriteString("\n")
		if c.Turn > 0 {
			n.last = append(n.last, c)
		}
	}
	return b.String()
}

// open is the newest command of the oldest incident that awaits an answer of this kind.
func (n *narrator) open(kinds ...CommandKind) (Command, error) {
	for _, c := range n.last {
		if in := n.s.Incidents[c.Incident]; in != nil && in.Turn == c.Turn && slices.Contains(kinds, c.Kind) {
			return c, nil
		}
	}
	return Command{}, fmt.Errorf("no incident awaits %v", kinds)
}

func (n *narrator) answer(f func(Command) Event, kinds ...CommandKind) (string, error) {
	c, err := n.open(kinds...)
	if err != nil {
		return "", err
	}
	return n.step(f(c)), nil
}

func (n *narrator) newest() ID {
	in := n.s.incidents()
	if len(in) == 0 {
		return ""
	}
	for _, i := range slices.Backward(in) {
		if !i.State.Terminal() {
			return i.ID
		}
	}
	return in[len(in)-1].ID
}

func (n *narrator) do(w []string) (string, error) {
	arg := func(i int, def string) string {
		if i < len(w) {
			return w[i]
		}
		return def
	}
	switch w[0] {
	case "policy":
		p := testPolicy(policy.Mode(w[1]))
		for _, kv := range w[2:] {
			k, v, _ := strings.Cut(kv, "=")
			d, _ := time.ParseDuration(v)
			i, _ := strconv.Atoi(v)
			switch k {
			case "max_concurrent":
				p.Budgets.MaxConcurrent = i
			case "per_hour":
				p.Budgets.PerHour = i
			case "storm":
				p.Budgets.Storm = i
			case "hold":
				p.Hold = d
			case "cooldown":
				p.Cooldown = d
			default:
				return "", fmt.Errorf("no such bound: %s", k)
			}
		}
		return n.step(Policies{policy.Set{Policies: []policy.Policy{p}}}), nil
	case "fire", "resolve":
		at, _ := strconv.Atoi(arg(3, "0"))
		a := testAlert(w[1], arg(2, "sp1"), epoch.Add(time.Duration(at)*time.Second), w[0] == "fire")
		a.Source = arg(4, "webhook")
		return n.step(Alert{a}), nil
	case "after":
		d, err := time.ParseDuration(w[1])
		if err != nil {
			return "", err
		}
		var said string
		for end := n.now.Add(d); ; {
			at := NextWake(n.s)
			if at.IsZero() || at.After(end) {
				n.now = end
				return said, nil
			}
			n.now = later(n.now, at)
			said += n.step(Tick{})
		}
	case "observed":
		return n.answer(func(c Command) Event {
			ev := Observed{Incident: c.Incident, Turn: c.Turn, Snapshot: "blob", At: n.now}
			switch arg(1, "") {
			case "error":
				ev.Err = "no answer from Prometheus"
			case "unknown":
				ev.Refused = "not a link of the fabric"
			}
			return ev
		}, CmdObserve)
	case "proposed":
		return n.answer(func(c Command) Event {
			steps, err := strconv.Atoi(w[1])
			p := testProposal(n.s.Incidents[c.Incident].Key.Target, steps)
			if err != nil {
				p.Diagnosis.Cause, p.Chosen = "slow receiver", nil
			}
			if steps == 0 {
				p.Chosen = nil
			}
			p.Explains = arg(2, "") != "unexplained"
			return Proposed{Incident: c.Incident, Turn: c.Turn, Proposal: p}
		}, CmdPropose)
	case "judged":
		return n.answer(func(c Command) Event {
			f := goodFacts(n.s, n.now)
			if arg(1, "") == "stale" {
				f.DataAge = 1000
			}
			return Judged{c.Incident, c.Turn, f}
		}, CmdJudge)
	case "rechecked":
		return n.answer(func(c Command) Event {
			f := goodFacts(n.s, n.now)
			if arg(1, "") == "stopped" {
				f.StopPresent = true
			}
			return Rechecked{c.Incident, c.Turn, f}
		}, CmdRecheck)
	case "stepped":
		return n.answer(func(c Command) Event {
			return Stepped{Incident: c.Incident, Turn: c.Turn, Step: c.Step, Undo: c.Kind == CmdUndo, Outcome: Outcome(w[1]), Detail: "the driver says so"}
		}, CmdStep, CmdUndo)
	case "read":
		return n.answer(func(c Command) Event {
			ev := Read{Incident: c.Incident, Turn: c.Turn, Step: c.Step, Present: w[1] == "yes"}
			if w[1] == "error" {
				ev.Err = "no answer"
			}
			return ev
		}, CmdRead)
	case "verified":
		return n.answer(func(c Command) Event {
			return Verified{c.Incident, c.Turn, Verification{Outcome: strings.Join(w[1:], " "), Reason: "measured"}}
		}, CmdVerify, CmdFollowUp)
	case "act": // the usual way from an opened incident to settling
		var said string
		for _, line := range []string{"observed", "proposed " + arg(1, "1"), "judged", "rechecked"} {
			s, err := n.do(strings.Fields(line))
			if err != nil {
				return "", err
			}
			said += s
		}
		return said, nil
	case "approve", "deny":
		return n.step(Answered{n.newest(), w[0] == "approve", "ada"}), nil
	case "let":
		return n.step(LetGo{n.newest(), "ada"}), nil
	case "stop":
		return n.step(Stopped{Withdraw: arg(1, "") == "withdraw", Actor: "ada"}), nil
	case "resume":
		return n.step(Resumed{"ada"}), nil
	case "start":
		away, _ := time.ParseDuration(arg(1, "1s"))
		return n.step(Started{Epoch: n.s.Epoch + 1, Away: away, Grace: 30 * time.Second}), nil
	case "changed":
		return n.step(Changed{n.newest(), strings.Join(w[1:], " ")}), nil
	case "lost":
		want, _ := Routes(n.s)
		return n.step(Drift{Missing: want}), nil
	case "extra":
		return n.step(Drift{Extra: slices.Concat(testProposal(testAlert("", "other", epoch, true).Target, 1).keys())}), nil
	case "diverged":
		return n.step(Diverged{n.newest(), "at record 7"}), nil
	case "show":
		var b strings.Builder
		for _, in := range n.s.incidents() {
			fmt.Fprintf(&b, "%s %s %s: %s\n", in.ID, in.Key.Target, in.State, in.Reason)
		}
		fmt.Fprintf(&b, "desired %d, reservations %d, attempts %d\n", len(n.s.Desired), len(n.s.Reservations), len(n.s.Attempts))
		return b.String(), nil
	}
	return "", fmt.Errorf("no such command")
}
