// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// agent is a fake SNMP agent: sorted variables and what may go wrong with it.
type agent struct {
	vars   []varbind
	err    error // of every request
	most   int   // variables in an answer; 0 = as many as wanted
	tooBig int   // answers "too big" to requests for more than this; 0 = never
	asked  int   // requests
	closed int
}

// parseAgent reads lines "OID TYPE VALUE"; the types are number, text, hex and ip. Lines may come in any order.
func parseAgent(lines string) (*agent, error) {
	a := &agent{}
	for i, line := range strings.Split(lines, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(line, " ", 3)
		for len(f) < 3 {
			f = append(f, "")
		}
		o, err := parseOID(f[0])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		var v value
		switch f[1] {
		case "number":
			n, err := strconv.ParseUint(f[2], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			v = value{kind: number, num: n}
		case "text":
			v = value{kind: text, bytes: []byte(f[2])}
		case "hex":
			b, err := hex.DecodeString(strings.ReplaceAll(f[2], " ", ""))
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			v = value{kind: text, bytes: b}
		case "ip":
			ip, err := netip.ParseAddr(f[2])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			v = value{kind: text, bytes: ip.AsSlice()}
		default:
			return nil, fmt.Errorf("line %d: type %q", i+1, f[1])
		}
		a.vars = append(a.vars, varbind{o, v})
	}
	slices.SortFunc(a.vars, func(x, y varbind) int { return x.oid.compare(y.oid) })
	return a, nil
}

func (a *agent) close() error { a.closed++; return nil }

func (a *agent) get(_ context.Context, oids []oid) ([]varbind, error) {
	a.asked++
	if a.err != nil {
		return nil, a.err
	}
	var out []varbind
	for _, o := range oids {
		i, ok := slices.BinarySearchFunc(a.vars, o, func(v varbind, o oid) int { return v.oid.compare(o) })
		if ok {
			out = append(out, a.vars[i])
		} else {
			out = append(out, varbind{oid: o})
		}
	}
	return out, nil
}

func (a *agent) getBulk(_ context.Context, oids []oid, repetitions int) ([]varbind, error) {
	a.asked++
	if a.err != nil {
		return nil, a.err
	}
	if a.tooBig > 0 && len(oids)*repetitions > a.tooBig {
		return nil, errTooBig
	}
	var out []varbind
	at := slices.Clone(oids)
	for range repetitions {
		for c := range at {
			i, found := slices.BinarySearchFunc(a.vars, at[c], func(v varbind, o oid) int { return v.oid.compare(o) })
			if found {
				i++
			}
			vb := varbind{oid: at[c], value: value{kind: endOfMIB}}
			if i < len(a.vars) {
				vb = a.vars[i]
			}
			at[c] = vb.oid
			out = append(out, vb)
		}
	}
	if a.most > 0 && len(out) > a.most {
		out = out[:a.most]
	}
	return out, nil
}
