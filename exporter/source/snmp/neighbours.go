// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// topology is what changes seldom: who hangs on which port, and the addresses of the ports.
type topology struct {
	chassis    string
	neighbours []neighbour
	addresses  map[uint32][]netip.Prefix // by ifIndex; the address, not the network
}

// neighbour is one row of LLDP-MIB's lldpRemTable with our own port's name.
type neighbour struct {
	port     string // our port's ifName; "" if LLDP's name for it is not one of our ports
	local    string // LLDP's name for our port, for messages
	chassis  string
	sysName  string
	peerPort string // name of the peer's port; "" if LLDP gives no name
}

// LLDP-MIB is IEEE 802.1AB's, 1.0.8802.1.1.2.
var (
	lldpLocalChassis = []oid{mustOID("1.0.8802.1.1.2.1.3.1.0"), mustOID("1.0.8802.1.1.2.1.3.2.0")}
	lldpLocalPorts   = []oid{ // subtype, id, description
		mustOID("1.0.8802.1.1.2.1.3.7.1.2"), mustOID("1.0.8802.1.1.2.1.3.7.1.3"), mustOID("1.0.8802.1.1.2.1.3.7.1.4"),
	}
	lldpRemote = []oid{ // chassis subtype, chassis id, port subtype, port id, port description, system name
		mustOID("1.0.8802.1.1.2.1.4.1.1.4"), mustOID("1.0.8802.1.1.2.1.4.1.1.5"), mustOID("1.0.8802.1.1.2.1.4.1.1.6"),
		mustOID("1.0.8802.1.1.2.1.4.1.1.7"), mustOID("1.0.8802.1.1.2.1.4.1.1.8"), mustOID("1.0.8802.1.1.2.1.4.1.1.9"),
	}
	addressColumns = []oid{mustOID("1.3.6.1.2.1.4.20.1.2"), mustOID("1.3.6.1.2.1.4.20.1.3")} // ifIndex, mask
)

// Subtypes of LldpPortId and LldpChassisId.
const (
	portIfName         = 5
	chassisMAC         = 4
	chassisNetworkAddr = 5
)

// tlv is a pair of subtype and id, with a description beside it.
type tlv struct {
	subtype  uint64
	id, desc []byte
}

// name is the ifName in a port TLV: the id if it says that it is one, else the description, which every agent that we
// met fills with the ifName. Whoever uses it checks that such a port exists.
func (t tlv) name() string {
	if t.subtype == portIfName {
		return clean(t.id)
	}
	return clean(t.desc)
}

func (t tlv) chassis() string {
	switch {
	case t.subtype == chassisMAC && len(t.id) == 6:
		parts := make([]string, 6)
		for i, b := range t.id {
			parts[i] = hex.EncodeToString([]byte{b})
		}
		return strings.Join(parts, ":")
	case t.subtype == chassisNetworkAddr && len(t.id) > 1: // the first byte is the address family
		if a, ok := netip.AddrFromSlice(t.id[1:]); ok {
			return a.String()
		}
	}
	s := clean(t.id)
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }) {
		return hex.EncodeToString(t.id)
	}
	return s
}

// readTopology reads LLDP and the addresses. An agent without LLDP-MIB has no neighbours; that is no error.
func readTopology(ctx context.Context, c client, ports []port) (topology, error) {
	t := topology{addresses: map[uint32][]netip.Prefix{}}
	own, err := c.get(ctx, lldpLocalChassis)
	if err != nil {
		return t, fmt.Errorf("read the LLDP chassis id: %w", err)
	}
	if len(own) == 2 {
		t.chassis = tlv{subtype: own[0].value.num, id: own[1].value.bytes}.chassis()
	}
	local := map[uint32]*tlv{} // by lldpLocPortNum
	err = walk(ctx, c, lldpLocalPorts, func(column int, index oid, v value) {
		if len(index) == 1 {
			at(local, index[0]).set(column, v)
		}
	})
	if err != nil {
		return t, fmt.Errorf("read the LLDP ports: %w", err)
	}
	if t.neighbours, err = readNeighbours(ctx, c, local, ports); err != nil {
		return t, fmt.Errorf("read the LLDP neighbours: %w", err)
	}
	type row struct {
		index uint32
		mask  []byte
	}
	rows := map[[4]byte]*row{}
	err = walk(ctx, c, addressColumns, func(column int, index oid, v value) {
		addr, ok := ipv4(index)
		if !ok {
			return
		}
		r := at(rows, addr)
		if n, isNumber := v.number(); column == 0 && isNumber {
			r.index = uint32(n) //nolint:gosec // an InterfaceIndex has 31 bits
		} else if column == 1 && v.kind == text {
			r.mask = v.bytes
		}
	})
	if err != nil {
		return t, fmt.Errorf("read the addresses: %w", err)
	}
	for addr, r := range rows {
		if bits, ok := maskBits(r.mask); ok {
			t.addresses[r.index] = append(t.addresses[r.index], netip.PrefixFrom(netip.AddrFrom4(addr), bits))
		}
	}
	for _, prefixes := range t.addresses {
		slices.SortFunc(prefixes, netip.Prefix.Compare)
	}
	return t, nil
}

// readNeighbours joins the rows of lldpRemTable, indexed by time mark, local port number and a running number, with
// our ports.
func readNeighbours(ctx context.Context, c client, local map[uint32]*tlv, ports []port) ([]neighbour, error) {
	type remote struct {
		chassis, port tlv
		sysName       string
	}
	rows := map[[3]uint32]*remote{}
	err := walk(ctx, c, lldpRemote, func(column int, index oid, v value) {
		if len(index) != 3 {
			return
		}
		r := at(rows, [3]uint32(index))
		switch column {
		case 0, 1:
			r.chassis.set(column, v)
		case 2, 3, 4:
			r.port.set(column-2, v)
		case 5:
			r.sysName = clean(v.bytes)
		}
	})
	if err != nil {
		return nil, err
	}
	var neighbours []neighbour
	for index, r := range rows {
		n := neighbour{chassis: r.chassis.chassis(), sysName: r.sysName, peerPort: r.port.name()}
		if l := local[index[1]]; l != nil {
			n.local = l.name()
		}
		if slices.ContainsFunc(ports, func(p port) bool { return p.name == n.local }) {
			n.port = n.local
		}
		if n.local == "" {
			n.local = fmt.Sprintf("number %d", index[1])
		}
		neighbours = append(neighbours, n)
	}
	// The time mark is no part of a neighbour: a row may stand twice while it changes.
	slices.SortFunc(neighbours, func(a, b neighbour) int {
		return slices.Compare([]string{a.port, a.local, a.sysName, a.chassis, a.peerPort}, []string{b.port, b.local, b.sysName, b.chassis, b.peerPort})
	})
	return slices.Compact(neighbours), nil
}

// set takes the value of a column: subtype, id, description.
func (t *tlv) set(column int, v value) {
	switch column {
	case 0:
		t.subtype = v.num
	case 1:
		t.id = slices.Clone(v.bytes)
	case 2:
		t.desc = slices.Clone(v.bytes)
	}
}

// at returns the row of a table that is being put together, and makes it if it is new.
func at[K comparable, R any](rows map[K]*R, key K) *R {
	r := rows[key]
	if r == nil {
		r = new(R)
		rows[key] = r
	}
	return r
}

// ipv4 reads an address out of the four sub-identifiers of an index.
func ipv4(index oid) ([4]byte, bool) {
	var a [4]byte
	if len(index) != 4 {
		return a, false
	}
	for i, n := range index {
		if n > 255 {
			return a, false
		}
		a[i] = byte(n)
	}
	return a, true
}

// maskBits is the prefix length of a netmask that has no holes.
func maskBits(mask []byte) (int, bool) {
	if len(mask) != 4 {
		return 0, false
	}
	m := uint32(mask[0])<<24 | uint32(mask[1])<<16 | uint32(mask[2])<<8 | uint32(mask[3])
	for bits := range 33 {
		if m == ^uint32(0)<<(32-bits) {
			return bits, true
		}
	}
	return 0, false
}
