// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"fmt"
	"io"
)

// Config says how to build a lab. The zero value is a good lab.
type Config struct {
	FabricMbit int // every leaf-spine direction; default 100, which two cores carry with room for everything else
	HostMbit   int // every host-leaf direction; default FabricMbit

	// MTU of every cable but the management network's, in bytes; default 1500. Training fabrics run jumbo frames, and so do
	// labs that have to carry traffic on few cores: most of the work is per packet.
	MTU int

	// Fair replaces the drop-tail queues of the leaf-spine ports by an HTB tree with one class per flow (by TCP
	// destination port, see FairPorts): the per-flow-fair switch that the max-min model describes.
	Fair bool

	// ECN lets hosts negotiate ECN and has the leaf-spine and leaf-host ports mark packets while their queue is long.
	ECN bool

	SharedSpineAS bool // both spines in AS 65100

	// HashSeed is the ECMP hash seed of each switch by name; default 1000 + a number per switch, so that runs are alike.
	HashSeed map[string]uint32

	// NoAgents leaves out snmpd and lldpd (for tests that only route). NoBGP leaves out FRR: then no routes either.
	NoAgents bool
	NoBGP    bool

	// BGPConfig renders bgpd.conf of a switch in place of the package's own text; nil = BGPConfig of this package.
	BGPConfig func(FRRInput) (string, error)

	Log io.Writer // progress, one line a stage; nil = silent
}

func (c Config) withDefaults() (Config, error) {
	if c.FabricMbit == 0 {
		c.FabricMbit = 100
	}
	if c.HostMbit == 0 {
		c.HostMbit = c.FabricMbit
	}
	if c.MTU == 0 {
		c.MTU = 1500
	}
	if c.MTU < 1280 || c.MTU > 9000 {
		return c, fmt.Errorf("MTU %d: want 1280..9000", c.MTU)
	}
	if c.FabricMbit < 1 || c.FabricMbit > 1000 || c.HostMbit < 1 || c.HostMbit > 1000 {
		return c, fmt.Errorf("link rates %d and %d Mbit/s: want 1..1000", c.FabricMbit, c.HostMbit)
	}
	if c.BGPConfig == nil {
		c.BGPConfig = BGPConfig
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	return c, nil
}

// PayloadShare is the part of a full Ethernet frame that TCP carries as payload, IP and TCP headers with time stamps paid
// for: 1448 of 1514 bytes at an MTU of 1500, which is how the kernel's counters and its rate limits count.
func (c Config) PayloadShare() float64 { return float64(c.MTU-52) / float64(c.MTU+14) }

// The credentials of the SNMP agents. They guard nothing: the management network ends in its namespace.
const (
	SNMPCommunity   = "public"    // v2c, read only
	SNMPUser        = "trainyard" // v3, SHA-256 and AES-128, read only
	SNMPAuthPass    = "auth-pass-lab"
	SNMPPrivPass    = "priv-pass-lab"
	snmpRWCommunity = "lab-only" // answers on loopback only: sets the cache time
)
