// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"net/netip"
	"slices"
)

// The size of the fabric. Everything else follows from these and from the address plan below.
const (
	Spines = 2
	Leaves = 4
	Hosts  = 8
	Rails  = 2
)

// Mgmt is the short name of the management namespace, where everything that controls the fabric runs.
const Mgmt = "mgmt"

// The addresses of a controller in the management network. Two, because pins are carried by a session with graceful
// restart and weights by one without (field rules 1 and 2).
var (
	ControllerPins    = netip.MustParseAddr("10.255.0.254")
	ControllerWeights = netip.MustParseAddr("10.255.0.253")
)

// Switch is one switch of the lab.
type Switch struct {
	Name  string     // "s1", "l3"
	Tier  int        // 0 = leaf, 1 = spine
	Index int        // 1-based within its tier
	Mgmt  netip.Addr // in the management network
	ASN   uint32
}

// NIC is one rail of one host.
type NIC struct {
	Host     string
	Rail     int
	Device   string // "rail0"
	Addr     netip.Addr
	Gateway  netip.Addr // the leaf's side
	Leaf     string
	LeafPort string
}

// Host is one training node with its NICs in rail order.
type Host struct {
	Name  string
	Index int
	Mgmt  netip.Addr
	NICs  [Rails]NIC
}

// Cable joins two ports.
type Cable struct {
	A, APort         string // the leaf's side
	B, BPort         string // the spine's or the host's side
	AAddr, BAddr     netip.Prefix
	Fabric           bool // leaf to spine; false: leaf to host
	leafIdx, peerIdx int
}

// Topology is the address plan: a value that needs no root and no kernel.
type Topology struct {
	Switches []Switch
	Hosts    []Host
	Cables   []Cable
}

// Plan computes the topology. With sharedSpineAS both spines are AS 65100, else 65101 and 65102.
func Plan(sharedSpineAS bool) Topology {
	var t Topology
	for j := 1; j <= Spines; j++ {
		asn := uint32(65100 + j)
		if sharedSpineAS {
			asn = 65100
		}
		t.Switches = append(t.Switches, Switch{fmt.Sprintf("s%d", j), 1, j, mgmtAddr(j), asn})
	}
	for i := 1; i <= Leaves; i++ {
		t.Switches = append(t.Switches, Switch{fmt.Sprintf("l%d", i), 0, i, mgmtAddr(Spines + i), uint32(65000 + i)})
		for j := 1; j <= Spines; j++ {
			net := LinkSubnet(i, j)
			t.Cables = append(t.Cables, Cable{
				A: fmt.Sprintf("l%d", i), APort: fmt.Sprintf("sp%d", j), AAddr: net,
				B: fmt.Sprintf("s%d", j), BPort: fmt.Sprintf("lf%d", i), BAddr: netip.PrefixFrom(net.Addr().Next(), 31),
				Fabric: true, leafIdx: i, peerIdx: j,
			})
		}
	}
	for k := 1; k <= Hosts; k++ {
		h := Host{Name: fmt.Sprintf("n%d", k), Index: k, Mgmt: mgmtAddr(10 + k)}
		for r := range Rails {
			leaf := LeafOf(k, r)
			n := NIC{
				Host: h.Name, Rail: r, Device: fmt.Sprintf("rail%d", r), Addr: hostAddr(leaf, k, 2), Gateway: hostAddr(leaf, k, 1),
				Leaf: fmt.Sprintf("l%d", leaf), LeafPort: fmt.Sprintf("h%d", k),
			}
			h.NICs[r] = n
			t.Cables = append(t.Cables, Cable{
				A: n.Leaf, APort: n.LeafPort, AAddr: netip.PrefixFrom(n.Gateway, 24),
				B: h.Name, BPort: n.Device, BAddr: netip.PrefixFrom(n.Addr, 24), leafIdx: leaf, peerIdx: k,
			})
		}
		t.Hosts = append(t.Hosts, h)
	}
	return t
}

// LeafOf is the number of the leaf that host k's rail hangs on: n1-n4 are pod A (l1, l2), n5-n8 pod B (l3, l4).
func LeafOf(k, rail int) int {
	if k <= Hosts/2 {
		return 1 + rail
	}
	return 3 + rail
}

// LinkSubnet is the /31 between leaf i and spine j; its own address is the leaf's, the next one the spine's.
func LinkSubnet(i, j int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(10*i + j), 0}), 31)
}

func mgmtAddr(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 255, 0, byte(n)}) }

func hostAddr(leaf, k, last int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(leaf), byte(k), byte(last)})
}

// Places lists the short names of all namespaces: mgmt, switches, hosts.
func (t Topology) Places() []string {
	places := []string{Mgmt}
	for _, s := range t.Switches {
		places = append(places, s.Name)
	}
	for _, h := range t.Hosts {
		places = append(places, h.Name)
	}
	return places
}

// Switch finds a switch by name.
func (t Topology) Switch(name string) (Switch, bool) {
	i := slices.IndexFunc(t.Switches, func(s Switch) bool { return s.Name == name })
	if i < 0 {
		return Switch{}, false
	}
	return t.Switches[i], true
}

// Host finds a host by name.
func (t Topology) Host(name string) (Host, bool) {
	i := slices.IndexFunc(t.Hosts, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return Host{}, false
	}
	return t.Hosts[i], true
}

// NIC finds a NIC by address.
func (t Topology) NIC(addr netip.Addr) (NIC, bool) {
	for _, h := range t.Hosts {
		for _, n := range h.NICs {
			if n.Addr == addr {
				return n, true
			}
		}
	}
	return NIC{}, false
}

// Cable finds the cable between two devices; where a host has one per rail, to that leaf.
func (t Topology) Cable(a, b string) (Cable, bool) {
	i := slices.IndexFunc(t.Cables, func(c Cable) bool { return c.A == a && c.B == b || c.A == b && c.B == a })
	if i < 0 {
		return Cable{}, false
	}
	return t.Cables[i], true
}

// Ports lists the fabric-side ports of a device with the cable that each belongs to, in the order they were made.
func (t Topology) Ports(device string) []string {
	var ports []string
	for _, c := range t.Cables {
		if c.A == device {
			ports = append(ports, c.APort)
		}
		if c.B == device {
			ports = append(ports, c.BPort)
		}
	}
	return ports
}

// PortToSpine is the leaf port that leads to a spine: "s2" -> "sp2".
func PortToSpine(spine string) string { return "sp" + spine[1:] }
