// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// oid is an object identifier, such as 1.3.6.1.2.1.1.3.0.
type oid []uint32

// maxOIDLen is the number of sub-identifiers that RFC 2578 allows.
const maxOIDLen = 128

// parseOID reads "1.3.6.1" with or without a dot in front.
func parseOID(s string) (oid, error) {
	parts := strings.Split(strings.TrimPrefix(s, "."), ".")
	if len(parts) > maxOIDLen {
		return nil, fmt.Errorf("OID has %d parts, at most %d", len(parts), maxOIDLen)
	}
	o := make(oid, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("OID %.80q: part %d is not a number", s, i+1)
		}
		o[i] = uint32(n)
	}
	return o, nil
}

func mustOID(s string) oid {
	o, err := parseOID(s)
	if err != nil {
		panic(err) // only for our own constants
	}
	return o
}

func (o oid) String() string {
	var b strings.Builder
	for i, n := range o {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strconv.FormatUint(uint64(n), 10))
	}
	return b.String()
}

func (o oid) compare(p oid) int { return slices.Compare(o, p) }

// under returns what follows prefix, and whether o begins with it.
func (o oid) under(prefix oid) (oid, bool) {
	if len(o) < len(prefix) || !slices.Equal(o[:len(prefix)], prefix) {
		return nil, false
	}
	return o[len(prefix):], true
}

func (o oid) child(n ...uint32) oid { return append(slices.Clone(o), n...) }
