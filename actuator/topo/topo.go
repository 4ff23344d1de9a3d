// SPDX-License-Identifier: Apache-2.0

// Package topo holds the fabric as values: switches, directed links, NICs and the up-down paths between them. It
// does no I/O and knows no time; observe fills it, the thinking packages read it.
package topo

import (
	"net/netip"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Direction says where a directed link leads in the tree of tiers.
type Direction string

// The directions of a directed link.
const (
	Up     Direction = "up"     // towards the spines
	Down   Direction = "down"   // towards the leaves
	Access Direction = "access" // leaf to node
	Host   Direction = "host"   // node to leaf
)

// Balancing says how a switch spreads traffic over equal paths (field rule 3). Only Hash may be pinned.
type Balancing string

// What the inventory may say of a switch; anything else, and nothing, is BalancingUnknown.
const (
	BalancingHash     Balancing = "hash"
	BalancingDLB      Balancing = "dlb"
	BalancingAdaptive Balancing = "adaptive"
	BalancingSpray    Balancing = "spray"
	BalancingUnknown  Balancing = "unknown"
)

// Switch is one switch of a fabric.
type Switch struct {
	Name      string    `json:"name"`
	Tier      int       `json:"tier"` // 0 = leaf, 1 = spine, ...
	ASN       uint32    `json:"asn"`
	ChassisID string    `json:"chassis_id"`
	Balancing Balancing `json:"balancing"`
	VRF       string    `json:"vrf"` // of the training prefixes; "" = unknown, "default" may be pinned
}

// Link is one direction of a cable. Its identity is From, the transmitting port.
type Link struct {
	From           ident.Port `json:"from"`
	To             ident.Port `json:"to"`
	Direction      Direction  `json:"direction"`
	ECMPGroup      string     `json:"ecmp_group"`       // links that share one hash decision or one destination; "" = no peer
	BytesPerSecond float64    `json:"bytes_per_second"` // speed of the transmitting port
	Up             bool       `json:"up"`
}

// NIC is the network interface of a node on one rail: the end point of traffic (field rule 6).
type NIC struct {
	Node     string     `json:"node"`
	Device   string     `json:"device"`
	Rail     int        `json:"rail"`
	Addr     netip.Addr `json:"addr"`
	Attached ident.Port `json:"attached"` // the leaf port that it hangs on
}

// Port is the NIC as the transmitting end of its host link.
func (n NIC) Port() ident.Port {
	return ident.Port{Fabric: n.Attached.Fabric, Device: n.Node, Name: n.Device}
}

// Fabric is one fabric at one moment. Links and NICs are keyed by identity and by address.
type Fabric struct {
	Name      string                      `json:"name"`
	Switches  map[string]Switch           `json:"switches"`
	Links     map[ident.Port]Link         `json:"links"`
	NICs      map[netip.Addr]NIC          `json:"nics"`
	Addresses map[ident.Port]netip.Prefix `json:"addresses"` // of switch ports: the address with its prefix length
}
