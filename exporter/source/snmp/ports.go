// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// port is one row of IF-MIB's ifTable and ifXTable (RFC 2863).
type port struct {
	index     uint32
	name      string // ifName, made valid UTF-8 and unlike all other names of the switch
	loopback  bool
	admin, up bool
	hasState  bool
	changed   uint32 // ifLastChange, in hundredths of a second of sysUpTime

	// Counters by column; a column that the agent does not have is not in it.
	counters map[int]uint64
	speed    uint64 // bytes per second; 0 = not known
}

// The columns. The counters are walked together and first, so that all counters of a port are of the same moment:
// those of ten ports fit into one request. ifSpeed is not among them: it is stuck at 4.29 Gbit/s for everything faster.
const (
	ifHCInOctets = iota
	ifHCOutOctets
	ifInErrors
	ifOutErrors
	ifInDiscards
	ifOutDiscards
	counterColumns // how many there are; the others follow
)

const (
	ifName = counterColumns + iota
	ifHighSpeed
	ifType
	ifAdminStatus
	ifOperStatus
	ifLastChange
)

var portColumns = []oid{
	ifHCInOctets:  mustOID("1.3.6.1.2.1.31.1.1.1.6"),
	ifHCOutOctets: mustOID("1.3.6.1.2.1.31.1.1.1.10"),
	ifInErrors:    mustOID("1.3.6.1.2.1.2.2.1.14"),
	ifOutErrors:   mustOID("1.3.6.1.2.1.2.2.1.20"),
	ifInDiscards:  mustOID("1.3.6.1.2.1.2.2.1.13"),
	ifOutDiscards: mustOID("1.3.6.1.2.1.2.2.1.19"),
	ifName:        mustOID("1.3.6.1.2.1.31.1.1.1.1"),
	ifHighSpeed:   mustOID("1.3.6.1.2.1.31.1.1.1.15"),
	ifType:        mustOID("1.3.6.1.2.1.2.2.1.3"),
	ifAdminStatus: mustOID("1.3.6.1.2.1.2.2.1.7"),
	ifOperStatus:  mustOID("1.3.6.1.2.1.2.2.1.8"),
	ifLastChange:  mustOID("1.3.6.1.2.1.2.2.1.9"),
}

// portCounters says which metric each counter becomes.
var portCounters = map[int]string{
	ifHCInOctets:  "trainyard_switch_port_receive_bytes_total",
	ifHCOutOctets: "trainyard_switch_port_transmit_bytes_total",
	ifInErrors:    "trainyard_switch_port_receive_errors_total",
	ifOutErrors:   "trainyard_switch_port_transmit_errors_total",
	ifInDiscards:  "trainyard_switch_port_receive_discards_total",
	ifOutDiscards: "trainyard_switch_port_transmit_discards_total",
}

// Numbers of IANAifType-MIB and IF-MIB.
const (
	softwareLoopback = 24
	statusUp         = 1
)

// readPorts returns the ports with a name, by index.
func readPorts(ctx context.Context, c client) ([]port, error) {
	rows := map[uint32]*port{}
	visit := func(column int, index oid, v value) {
		if len(index) != 1 || v.kind == absent {
			return
		}
		p := rows[index[0]]
		if p == nil {
			p = &port{index: index[0], counters: map[int]uint64{}}
			rows[index[0]] = p
		}
		n, isNumber := v.number()
		switch {
		case column == ifName && v.kind == text:
			p.name = clean(v.bytes)
		case !isNumber:
		case portCounters[column] != "":
			p.counters[column] = n
		case column == ifHighSpeed:
			p.speed = n * 1_000_000 / 8 // Mbit/s
		case column == ifType:
			p.loopback = n == softwareLoopback
		case column == ifAdminStatus:
			p.admin = n == statusUp
		case column == ifOperStatus:
			p.hasState, p.up = true, n == statusUp
		case column == ifLastChange:
			p.changed = uint32(n) //nolint:gosec // TimeTicks have 32 bits
		}
	}
	if err := walk(ctx, c, portColumns[:counterColumns], visit); err != nil {
		return nil, err
	}
	err := walk(ctx, c, portColumns[counterColumns:], func(column int, index oid, v value) { visit(counterColumns+column, index, v) })
	if err != nil {
		return nil, err
	}
	var ports []port
	for _, p := range rows {
		if p.name != "" { // a row of ifTable that ifXTable does not have: an interface that just went
			ports = append(ports, *p)
		}
	}
	slices.SortFunc(ports, func(a, b port) int { return int(int64(a.index) - int64(b.index)) })
	// Two names that are one after cleaning stay apart by their index.
	count := map[string]int{}
	for _, p := range ports {
		count[p.name]++
	}
	for i := range ports {
		if count[ports[i].name] > 1 {
			ports[i].name += "#" + strconv.FormatUint(uint64(ports[i].index), 10)
		}
	}
	return ports, nil
}

// clean makes a text from an agent fit for a label: valid UTF-8, no spaces at its ends, no NUL that some agents add.
func clean(b []byte) string {
	return strings.TrimSpace(strings.ToValidUTF8(strings.TrimRight(string(b), "\x00"), "\uFFFD"))
}

// flaps follows the state of one port over polls.
type flaps struct {
	known   bool
	up      bool
	changed uint32
	count   uint64 // times it went down
}

// jitter is how far ifLastChange may move without a change, in hundredths of a second: some agents compute it from
// an age.
const jitter = 100

// next takes in one poll. A port that was up and is up, but whose ifLastChange moved, went down in between; one that
// is down both times came up and went down. After a restart of the agent ifLastChange says nothing.
func (f flaps) next(p port, restarted bool) flaps {
	n := flaps{known: true, up: p.up, changed: p.changed, count: f.count}
	switch moved := p.changed - f.changed; { // modulo 2^32, as the ticks themselves
	case !f.known:
	case f.up && !p.up:
		n.count++
	case f.up == p.up && !restarted && moved > jitter && moved < 1<<31:
		n.count++
	}
	return n
}
