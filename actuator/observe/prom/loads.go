// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/topo"
)

// linkLoads joins rates, errors and ages to the links. A link without a rate has no entry: absent is not zero. The
// host's direction has no switch counter of its own and is the receive side of the leaf port.
func (b *builder) linkLoads() {
	transmit := positive(b, PortTransmit, b.byPort)
	portAge := values(b, PortAge, b.byPort)
	receive := positive(b, PortReceive, b.byPort)
	errors := positive(b, LinkErrors, b.byLink)
	flaps := positive(b, LinkFlaps, b.byLink)
	for p, link := range b.s.Fabric.Links {
		rate, port := transmit, p // where the counters stand, and the errors of the cable
		if link.Direction == topo.Host {
			rate, port = receive, link.To
		}
		v, ok := rate[port]
		if !ok {
			b.problem("link %s: its load is not reported", p)
			continue
		}
		age, ok := portAge[port]
		if !ok {
			b.problem("link %s: the age of its counters is not known", p)
			continue
		}
		load := fleet.LinkLoad{BytesPerSecond: v, AgeSeconds: age}
		load.ErrorsPerSecond, ok = errors[port]
		if !ok {
			b.problem("link %s: its errors are not reported", p)
		}
		load.Flaps, ok = flaps[port]
		if !ok {
			b.problem("link %s: its flaps are not reported", p)
		}
		b.stale("link "+p.String(), "its load", age)
		b.s.Links[p] = load
	}
}

// nicKey keys node-side series, which know no fabric.
type nicKey struct{ node, device string }

// String spells the key for problems.
func (k nicKey) String() string { return "NIC " + clip(k.node) + ":" + clip(k.device) }

func (b *builder) nicLoads() {
	known := map[nicKey]bool{}
	for _, n := range b.s.Fabric.NICs {
		known[nicKey{n.Node, n.Device}] = true
		b.nodesHere[n.Node] = true
	}
	byNIC := func(l map[string]string) (nicKey, bool) {
		k := nicKey{l["node"], l["device"]}
		return k, known[k]
	}
	transmit, receive := positive(b, NICTransmit, byNIC), positive(b, NICReceive, byNIC)
	age, pause := values(b, NICAge, byNIC), positive(b, NICPause, byNIC)
	ecn := positive(b, NodeECN, b.byNode)
	for addr, n := range b.s.Fabric.NICs {
		k := nicKey{n.Node, n.Device}
		tx, ok1 := transmit[k]
		rx, ok2 := receive[k]
		a, ok3 := age[k]
		if !ok1 || !ok2 || !ok3 {
			b.problem("%s: its load is not reported", k)
			continue
		}
		b.stale(k, "its load", a)
		b.s.NICs[addr] = fleet.NICLoad{
			TransmitBytesPerSecond: tx, ReceiveBytesPerSecond: rx, AgeSeconds: a,
			PauseRatio: pause[k], // absent where the driver does not report
			// The kernel counts marks per network namespace, so each NIC of a node shows the node's figure: an
			// upper bound.
			ECNPerSecond: ecn[nodeKey(n.Node)],
		}
	}
}

// nodeKey keys series of a whole node.
type nodeKey string

// String spells the key for problems.
func (k nodeKey) String() string { return "node " + clip(string(k)) }

// byNode keeps the nodes that have a NIC in the fabric.
func (b *builder) byNode(l map[string]string) (nodeKey, bool) {
	return nodeKey(l["node"]), b.nodesHere[l["node"]]
}

// nodes takes the signals that tell a slow receiver from a congested link. Without them that cause could not be
// excluded, so their absence is a problem.
func (b *builder) nodes() {
	zero, retrans := positive(b, NodeZeroWin, b.byNode), positive(b, NodeRetrans, b.byNode)
	for _, n := range b.s.Fabric.NICs {
		if _, done := b.s.Nodes[n.Node]; done {
			continue
		}
		z, ok1 := zero[nodeKey(n.Node)]
		r, ok2 := retrans[nodeKey(n.Node)]
		if !ok1 || !ok2 {
			b.problem("node %s: zero windows or retransmits are not reported", n.Node)
			continue
		}
		b.s.Nodes[n.Node] = fleet.NodeSignals{ZeroWindowsPerSecond: z, RetransmitsPerSecond: r}
	}
}
