// SPDX-License-Identifier: Apache-2.0

package flow

//go:generate go test . -run TestDocumentation -update

import (
	"flag"
	"os"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Every pair of state and event has exactly one row, every row leads only to states that exist, and every state can be
// reached. (Step itself panics when a rule leads where its row does not say; the random runs would find that.)
func TestTableIsComplete(t *testing.T) {
	count := map[pair]int{}
	for _, r := range committed() {
		for _, s := range r.in {
			count[pair{s, r.on}]++
		}
		for _, n := range r.next {
			if !slices.Contains(States, n) {
				t.Errorf("%s leads to %q, which is no state", r.on, n)
			}
		}
		if r.why == "" || r.do == nil {
			t.Errorf("row of %s in %v has no reason or no rule", r.on, r.in)
		}
	}
	for _, s := range States {
		for _, k := range Kinds {
			if n := count[pair{s, k}]; n != 1 {
				t.Errorf("%d rows for %s on %s", n, s, k)
			}
		}
	}
	if len(count) != len(States)*len(Kinds) {
		t.Errorf("%d pairs, want %d", len(count), len(States)*len(Kinds))
	}
	reached := map[IncidentState]bool{Opened: true}
	for range States {
		for p, r := range table {
			if reached[p.in] {
				for _, n := range r.next {
					reached[n] = true
				}
			}
		}
	}
	for _, s := range States {
		if !reached[s] {
			t.Errorf("%s cannot be reached", s)
		}
	}
}

// From every state that waits there is a way to an end by time and results alone: nothing waits for ever.
func TestEveryStateHasAWayOut(t *testing.T) {
	for _, s := range States {
		if s.Terminal() {
			continue
		}
		if s == Releasing || s == Undoing { // the number of tries is bounded, whatever the driver answers
			if !slices.Contains(table[pair{s, KindStepped}].next, Handed) {
				t.Errorf("%s has no way to a human", s)
			}
			continue
		}
		if len(table[pair{s, KindDue}].next) == 0 {
			t.Errorf("%s has no way out by time", s)
		}
	}
}

func TestDocumentation(t *testing.T) {
	const name = "../../docs/flow.md"
	got := Markdown()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what the table says (%v): go test ./actuator/flow -update", name, err)
	}
}
