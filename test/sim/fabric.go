// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// The fabric of the plant is the one of the lab: two spines, four leaves, eight nodes with two rails, rail-optimised
// pods (n1-n4 on leaves 1 and 2, n5-n8 on leaves 3 and 4).
const (
	spines = 2
	leaves = 4
	nodes  = 8
	rails  = 2
)

// link is one direction of a cable; queue and marks are those of the transmitting port.
type link struct {
	from, to ident.Port
	dir      string // up, down, access or host
	group    string // ECMP group, "" if none
	capacity float64
	up       bool
	nic      *nic // behind an access link

	queued  float64 // bytes waiting
	mark    float64 // probability that a packet is marked in this step
	offered float64 // bytes that came in during this step, with what was queued
	paused  float64 // share of this step in which the receiver forbids to send

	errorRate float64 // share of frames that arrive damaged
	sentBytes float64
	lostBytes float64 // at the queue: output discards
	errors    float64 // frames received damaged, at the far port
	flaps     float64
	changed   float64 // seconds on the plant's clock of the last change of state
}

// nic is an end point of traffic.
type nic struct {
	node, rail   int // node from 1, rail from 0
	addr         netip.Addr
	leaf         int
	out, in      *link // node to leaf, leaf to node
	pauseSeconds float64
	marked       float64 // packets received with a congestion mark
}

// name of the node.
func (n *nic) name() string { return fmt.Sprintf("n%d", n.node) }

// device of the NIC.
func (n *nic) device() string { return fmt.Sprintf("rail%d", n.rail) }

// fabric holds the links by transmitting port, and the NICs by address.
type fabric struct {
	name  string
	links map[ident.Port]*link
	order []*link // sorted, so that floating point sums are the same in each run
	nics  map[netip.Addr]*nic
	byPos [nodes + 1][rails]*nic
}

func spineName(j int) string { return fmt.Sprintf("s%d", j) }
func leafName(i int) string  { return fmt.Sprintf("l%d", i) }

// linkSubnet of leaf i and spine j is a /31: the leaf has the even address, the spine the odd one.
func leafSide(i, j int) netip.Addr  { return netip.AddrFrom4([4]byte{10, 0, byte(10*i + j), 0}) }
func spineSide(i, j int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(10*i + j), 1}) }

func leafOf(node, rail int) int {
	if node <= nodes/2 {
		return 1 + rail
	}
	return 3 + rail
}

// build makes the fabric with all links up. Speeds are in bytes a second.
func build(name string, speed float64) *fabric {
	f := &fabric{name: name, links: map[ident.Port]*link{}, nics: map[netip.Addr]*nic{}}
	port := func(device, p string) ident.Port { return ident.Port{Fabric: name, Device: device, Name: p} }
	add := func(from, to ident.Port, dir, group string) *link {
		l := &link{from: from, to: to, dir: dir, group: group, capacity: speed, up: true}
		f.links[from] = l
		f.order = append(f.order, l)
		return l
	}
	for i := 1; i <= leaves; i++ {
		for j := 1; j <= spines; j++ {
			leafPort, spinePort := port(leafName(i), fmt.Sprintf("sp%d", j)), port(spineName(j), fmt.Sprintf("lf%d", i))
			add(leafPort, spinePort, "up", fmt.Sprintf("%s/%s:up", name, leafName(i)))
			add(spinePort, leafPort, "down", fmt.Sprintf("%s/%s:down", name, leafName(i)))
		}
	}
	for k := 1; k <= nodes; k++ {
		for r := range rails {
			leaf := leafOf(k, r)
			n := &nic{node: k, rail: r, leaf: leaf, addr: netip.AddrFrom4([4]byte{10, byte(leaf), byte(k), 2})}
			host, access := port(n.name(), n.device()), port(leafName(leaf), fmt.Sprintf("h%d", k))
			n.out, n.in = add(host, access, "host", ""), add(access, host, "access", "")
			n.in.nic = n
			f.nics[n.addr], f.byPos[k][r] = n, n
		}
	}
	slices.SortFunc(f.order, func(a, b *link) int { return a.from.Compare(b.from) })
	return f
}

// up returns the link of leaf i to spine j, down the one of spine j to leaf i.
func (f *fabric) up(i, j int) *link {
	return f.links[ident.Port{Fabric: f.name, Device: leafName(i), Name: fmt.Sprintf("sp%d", j)}]
}

func (f *fabric) down(j, i int) *link {
	return f.links[ident.Port{Fabric: f.name, Device: spineName(j), Name: fmt.Sprintf("lf%d", i)}]
}

// reverse is the other direction of the cable.
func (f *fabric) reverse(l *link) *link { return f.links[l.to] }
