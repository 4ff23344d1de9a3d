// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"context"
	"errors"
	"fmt"
)

// client is what a poll needs of an SNMP library. A client belongs to one goroutine.
type client interface {
	get(ctx context.Context, oids []oid) ([]varbind, error)
	getBulk(ctx context.Context, oids []oid, repetitions int) ([]varbind, error)
	close() error
}

// varbind is one variable of an answer.
type varbind struct {
	oid   oid
	value value
}

// value is the part of the SNMP types that we read. Exactly one field beside kind is meant.
type value struct {
	kind  kind
	num   uint64 // number; a negative integer in two's complement
	bytes []byte // text, and IP addresses
}

// kind is the type of a value.
type kind int

// The kinds. Everything that we do not read, the exceptions of RFC 3416 among it, is absent; endOfMIB is apart, since
// it ends a walk.
const (
	absent kind = iota
	endOfMIB
	number
	text
)

func (v value) number() (uint64, bool) { return v.num, v.kind == number }

// errTooBig is the agent's answer to a request for more than it can put into a message.
var errTooBig = errors.New("the answer would be too big")

// errNotIncreasing ends a walk of an agent whose answers go back or stand still: it would never end by itself.
var errNotIncreasing = errors.New("the agent's OIDs do not increase")

// errTooMany ends a walk that goes on beyond what a switch can have.
var errTooMany = errors.New("the agent's table does not end")

// Bounds of a walk. 60 variables of counters fit into one Ethernet frame.
const (
	varbindsPerRequest = 60
	maxVarbinds        = 1 << 18 // of one walk: more than 20,000 ports with 12 columns
)

// walk reads whole columns of a table side by side, so that a row is read at one moment or nearly so, and calls visit
// with the number of the column and the row's index. Agents may answer with fewer variables than asked for.
func walk(ctx context.Context, c client, columns []oid, visit func(column int, index oid, v value)) error {
	type cursor struct {
		column int
		at     oid
	}
	active := make([]cursor, len(columns))
	for i, col := range columns {
		active[i] = cursor{i, col}
	}
	repetitions := max(1, varbindsPerRequest/len(columns))
	for seen := 0; len(active) > 0; {
		oids := make([]oid, len(active))
		for i, a := range active {
			oids[i] = a.at
		}
		answer, err := c.getBulk(ctx, oids, repetitions)
		if errors.Is(err, errTooBig) && repetitions > 1 {
			repetitions /= 2
			continue
		}
		if err != nil {
			return fmt.Errorf("walk %v: %w", columns[active[0].column], err)
		}
		if len(answer) < len(active) {
			return fmt.Errorf("walk %v: %d variables in the answer to a request for %d", columns[active[0].column], len(answer), len(active))
		}
		if seen += len(answer); seen > maxVarbinds {
			return fmt.Errorf("walk %v: %w", columns[active[0].column], errTooMany)
		}
		done := make([]bool, len(active))
		for i, vb := range answer {
			a := &active[i%len(active)]
			if done[i%len(active)] {
				continue
			}
			index, inside := vb.oid.under(columns[a.column])
			if vb.value.kind == endOfMIB || !inside {
				if vb.value.kind != endOfMIB && vb.oid.compare(a.at) <= 0 {
					return fmt.Errorf("walk %v: %v after %v: %w", columns[a.column], vb.oid, a.at, errNotIncreasing)
				}
				done[i%len(active)] = true
				continue
			}
			if vb.oid.compare(a.at) <= 0 {
				return fmt.Errorf("walk %v: %v after %v: %w", columns[a.column], vb.oid, a.at, errNotIncreasing)
			}
			a.at = vb.oid
			visit(a.column, index, vb.value)
		}
		var rest []cursor
		for i, a := range active {
			if !done[i] {
				rest = append(rest, a)
			}
		}
		active = rest
	}
	return nil
}
