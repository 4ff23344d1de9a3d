// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"fmt"
	"net/netip"
)

// Leaf is the switch that the NIC hangs on: the one that a route for its traffic is written to.
func (g *Graph) Leaf(a netip.Addr) (string, error) {
	n, err := g.NIC(a)
	return n.Attached.Device, err
}

// PinNextHop is the next hop that makes the source leaf send traffic along the path: the address at the far end of
// the last fabric link, which the leaf resolves recursively. Next-hop tracking then drops the route by itself when
// that far link dies, with the controller alive or dead. A pin can only say paths over one tier
// of spines with a single link up and a single link down: with more, a switch on the way still chooses by hash.
func (g *Graph) PinNextHop(p Path) (netip.Addr, error) {
	first, last, err := g.fabricEnds(p)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, l := range []Link{first, last} {
		if n := g.parallel(l); n > 1 {
			return netip.Addr{}, fmt.Errorf("%d parallel links from %s to %s: a pin cannot choose among them", n, l.From.Device, l.To.Device)
		}
	}
	return g.address(last)
}

// DirectNextHop is the address at the far end of the first fabric link of the path: what weighted routes need,
// because weights do not pass through recursive next hops.
func (g *Graph) DirectNextHop(p Path) (netip.Addr, error) {
	first, _, err := g.fabricEnds(p)
	if err != nil {
		return netip.Addr{}, err
	}
	return g.address(first)
}

func (g *Graph) fabricEnds(p Path) (first, last Link, err error) {
	switch len(p.Links) {
	case 4:
		return g.links[p.Links[1]], g.links[p.Links[2]], nil
	case 2:
		return first, last, fmt.Errorf("path inside leaf %s: no fabric link to choose", p.Via)
	default:
		return first, last, fmt.Errorf("path over %s has %d fabric links: only paths over one spine can be pinned", p.Via, max(0, len(p.Links)-2))
	}
}

// parallel counts the live links that lead from the same switch to the same switch.
func (g *Graph) parallel(l Link) int {
	n := 0
	for _, id := range g.out[l.From.Device] {
		if o := g.links[id]; o.To.Device == l.To.Device && o.Up {
			n++
		}
	}
	return n
}

func (g *Graph) address(l Link) (netip.Addr, error) {
	a, ok := g.Fabric.Addresses[l.To]
	if !ok {
		return netip.Addr{}, fmt.Errorf("address of port %s, the far end of link %s: not known", l.To, l.From)
	}
	return a.Addr(), nil
}

// PathsLeft counts the live paths between two NICs that remain for the traffic when the given one dies and a route
// over it is dropped.
func (g *Graph) PathsLeft(src, dst netip.Addr, pinned Path) (int, error) {
	paths, err := g.Paths(src, dst)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range paths {
		if p.Via != pinned.Via {
			n++
		}
	}
	return n, nil
}
