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

// The credentials of the SNMP agents. They guard nothing: the management network ends in its namespace.
const (
	SNMPCommunity   = "public"    // v2c, read only
	SNMPUser        = "trainyard" // v3, SHA-256 and AES-128, read only
	SNMPAuthPass    = "auth-pass-lab"
	SNMPPrivPass    = "priv-pass-lab"
	snmpRWCommunity = "lab-only" // answers on loopback only: sets the cache time
)
