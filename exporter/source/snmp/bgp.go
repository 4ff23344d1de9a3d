// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
)

// bgpPeer is one row of BGP4-MIB's bgpPeerTable (RFC 4273). The MIB knows IPv4 peers only.
type bgpPeer struct {
	addr        netip.Addr
	state       uint64
	remoteAS    uint64
	transitions uint64
}

const bgpEstablished = 6

var (
	bgpLocalAS = mustOID("1.3.6.1.2.1.15.2.0")
	bgpColumns = []oid{ // state, remote AS, times established
		mustOID("1.3.6.1.2.1.15.3.1.2"), mustOID("1.3.6.1.2.1.15.3.1.9"), mustOID("1.3.6.1.2.1.15.3.1.15"),
	}
)

// readBGP returns the local AS (0 = no BGP) and the peers in order of address.
func readBGP(ctx context.Context, c client) (uint64, []bgpPeer, error) {
	vbs, err := c.get(ctx, []oid{bgpLocalAS})
	if err != nil {
		return 0, nil, fmt.Errorf("read the BGP AS: %w", err)
	}
	if len(vbs) != 1 || vbs[0].value.kind != number {
		return 0, nil, nil
	}
	rows := map[[4]byte]*bgpPeer{}
	err = walk(ctx, c, bgpColumns, func(column int, index oid, v value) {
		addr, ok := ipv4(index)
		n, isNumber := v.number()
		if !ok || !isNumber {
			return
		}
		p := at(rows, addr)
		p.addr = netip.AddrFrom4(addr)
		switch column {
		case 0:
			p.state = n
		case 1:
			p.remoteAS = n
		case 2:
			p.transitions = n
		}
	})
	if err != nil {
		return 0, nil, fmt.Errorf("read the BGP peers: %w", err)
	}
	var peers []bgpPeer
	for _, p := range rows {
		peers = append(peers, *p)
	}
	slices.SortFunc(peers, func(a, b bgpPeer) int { return a.addr.Compare(b.addr) })
	return asn32(vbs[0].value.num), peers, nil
}

// asn32 undoes the sign of agents that put a 4-byte AS number into a signed INTEGER.
func asn32(n uint64) uint64 { return n & (1<<32 - 1) }
