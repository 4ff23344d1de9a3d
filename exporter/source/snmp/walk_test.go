// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var (
	columnA = mustOID("1.3.1")
	columnB = mustOID("1.3.2")
)

func table(rows int, more string) string {
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, "1.3.1.%d number %d\n1.3.2.%d number %d\n", i+1, i, i+1, 2*i)
	}
	return b.String() + more
}

func collect(t *testing.T, a *agent) ([]string, error) {
	t.Helper()
	var got []string
	err := walk(t.Context(), a, []oid{columnA, columnB}, func(column int, index oid, v value) {
		got = append(got, fmt.Sprintf("%d.%v=%d", column, index, v.num))
	})
	slices.Sort(got)
	return got, err
}

// The same table comes out whatever the agent is like: something behind the table or nothing, short answers, answers
// that must not be big.
func TestWalkReadsWholeColumns(t *testing.T) {
	for _, rows := range []int{0, 1, 29, 30, 31, 200} {
		var want []string
		for i := range rows {
			want = append(want, fmt.Sprintf("0.%d=%d", i+1, i), fmt.Sprintf("1.%d=%d", i+1, 2*i))
		}
		slices.Sort(want)
		for name, change := range map[string]func(*agent){
			"plain": func(*agent) {}, "short": func(a *agent) { a.most = 7 }, "two": func(a *agent) { a.most = 2 }, "small": func(a *agent) { a.tooBig = 5 },
		} {
			for _, behind := range []string{"", "1.3.3.1 number 1\n1.4 text x\n"} {
				a, err := parseAgent(table(rows, behind))
				if err != nil {
					t.Fatal(err)
				}
				change(a)
				if got, err := collect(t, a); err != nil || !slices.Equal(got, want) {
					t.Errorf("%d rows, %s: %v, %v", rows, name, got, err)
				}
			}
		}
	}
}

// Columns of unlike length: a hole in one must not shift the other.
func TestWalkWithHoles(t *testing.T) {
	a, err := parseAgent("1.3.1.1 number 1\n1.3.1.5 number 5\n1.3.2.5 number 50\n1.3.2.7 number 70\n1.3.2.9 number 90\n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := collect(t, a)
	if want := []string{"0.1=1", "0.5=5", "1.5=50", "1.7=70", "1.9=90"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

// loop answers every request with the same OIDs (field case E3: .1, .2, .1, .2).
type loop struct{ agent }

func (l *loop) getBulk(_ context.Context, oids []oid, _ int) ([]varbind, error) {
	var out []varbind
	for _, n := range []uint32{1, 2, 1, 2} {
		for range oids {
			out = append(out, varbind{columnA.child(n), value{kind: number}})
		}
	}
	return out, nil
}

// endless has another row after each row.
type endless struct{ agent }

func (e *endless) getBulk(_ context.Context, oids []oid, repetitions int) ([]varbind, error) {
	e.asked++
	var out []varbind
	for r := range repetitions {
		for i := range oids {
			out = append(out, varbind{[]oid{columnA, columnB}[i].child(uint32(e.asked), uint32(r)), value{kind: number}}) //nolint:gosec // small
		}
	}
	return out, nil
}

type mute struct{ agent }

func (*mute) getBulk(context.Context, []oid, int) ([]varbind, error) { return nil, nil }

func TestWalkEnds(t *testing.T) {
	nothing := func(int, oid, value) {}
	if err := walk(t.Context(), &loop{}, []oid{columnA}, nothing); !errors.Is(err, errNotIncreasing) {
		t.Errorf("OIDs that repeat: %v", err)
	}
	if err := walk(t.Context(), &endless{}, []oid{columnA, columnB}, nothing); !errors.Is(err, errTooMany) {
		t.Errorf("a table without end: %v", err)
	}
	if err := walk(t.Context(), &mute{}, []oid{columnA}, nothing); err == nil {
		t.Error("an empty answer is no error")
	}
	a := &agent{tooBig: 1, err: nil}
	a.vars = []varbind{{columnA.child(1), value{kind: number}}}
	if err := walk(t.Context(), a, []oid{columnA, columnB}, nothing); !errors.Is(err, errTooBig) {
		t.Errorf("one row is too big: %v", err)
	}
}

func TestParseOID(t *testing.T) {
	for s, ok := range map[string]bool{"1.3.6": true, ".1.3.6": true, "": false, "1..3": false, "1.x": false, "1.4294967296": false, strings.Repeat("1.", 200) + "1": false} {
		o, err := parseOID(s)
		if (err == nil) != ok || ok && o.String() != strings.TrimPrefix(s, ".") {
			t.Errorf("%q: %v, %v", s, o, err)
		}
	}
}
