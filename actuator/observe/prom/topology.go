// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// tiers are the words that an inventory may use instead of a number.
var tiers = map[string]int{"leaf": 0, "spine": 1, "core": 2}

func (b *builder) switches() {
	up := values(b, SwitchUp, func(l map[string]string) (string, bool) {
		return l["fabric"] + "/" + l["switch"], l["fabric"] == b.s.Fabric.Name
	})
	twice := map[string]bool{}
	for _, x := range b.rows(SwitchInfo) {
		name := x.Labels["switch"]
		place := b.s.Fabric.Name + "/" + name
		if _, err := ident.NewPort(b.s.Fabric.Name, name, "x"); err != nil {
			b.problem("a switch is refused: %v", err)
			continue
		}
		tier, err := strconv.Atoi(x.Labels["tier"])
		if word, ok := tiers[x.Labels["tier"]]; ok {
			tier, err = word, nil
		}
		if err != nil || tier < 0 {
			b.problem("switch %s: tier %q is neither a number nor leaf, spine or core", place, clip(x.Labels["tier"]))
			continue
		}
		asn, err := strconv.ParseUint(x.Labels["asn"], 10, 32)
		if err != nil {
			b.problem("switch %s: AS number %q is none", place, clip(x.Labels["asn"]))
			continue
		}
		if _, there := b.s.Fabric.Switches[name]; there {
			twice[name] = true
		}
		b.s.Fabric.Switches[name] = topo.Switch{
			Name: name, Tier: tier, ASN: uint32(asn), ChassisID: x.Labels["chassis_id"],
			Balancing: balancing(x.Labels["balancing"]), VRF: x.Labels["vrf"],
		}
		if v, ok := up[place]; !ok {
			b.problem("switch %s: whether its agent answers is not reported", place)
		} else if v == 0 {
			b.problem("switch %s: its agent does not answer", place)
		}
	}
	for name := range twice {
		b.problem("switch %s/%s: two descriptions that differ; refused", b.s.Fabric.Name, name)
		delete(b.s.Fabric.Switches, name)
	}
	for place, v := range up {
		name := place[len(b.s.Fabric.Name)+1:]
		if _, there := b.s.Fabric.Switches[name]; !there && !twice[name] && v == 0 {
			b.problem("switch %s: its agent does not answer", clip(place))
		}
	}
}

func balancing(s string) topo.Balancing {
	switch v := topo.Balancing(s); v {
	case topo.BalancingHash, topo.BalancingDLB, topo.BalancingAdaptive, topo.BalancingSpray:
		return v
	default:
		return topo.BalancingUnknown
	}
}

// links takes the switch ports' own directions first, then adds the host's direction of each access link. A link
// stands only if its peer resolves: a switch port whose own link points back, or a node port named in full.
func (b *builder) links() {
	speed := positive(b, PortSpeed, b.byPort)
	up := positive(b, PortUp, b.byPort)
	found, twice := map[ident.Port]topo.Link{}, map[ident.Port]bool{}
	for _, x := range b.rows(LinkInfo) {
		link, kind, ok := b.link(x)
		if !ok {
			continue
		}
		if _, there := found[link.From]; there {
			twice[link.From] = true
		}
		v, ok := speed[link.From]
		if !ok || v == 0 {
			b.problem("link %s: its speed is not reported; refused", link.From)
			continue
		}
		link.BytesPerSecond = v
		v, ok = up[link.From]
		if !ok {
			b.problem("link %s: whether it is up is not reported", link.From)
		}
		link.Up = v == 1
		if (kind == "node") != (link.Direction == topo.Access) {
			b.problem("link %s: leads to a %s but its direction is %q; refused", link.From, kind, link.Direction)
			continue
		}
		found[link.From] = link
	}
	for p := range twice {
		b.problem("link %s: leads to two peers; refused", p)
		delete(found, p)
	}
	for p, link := range found {
		if link.Direction == topo.Access {
			b.s.Fabric.Links[p] = link
			b.s.Fabric.Links[link.To] = topo.Link{
				From: link.To, To: p, Direction: topo.Host, BytesPerSecond: link.BytesPerSecond, Up: link.Up,
			}
			continue
		}
		back, ok := found[link.To]
		if !ok || back.To != p {
			b.problem("link %s: its peer %s does not name it back; refused", p, link.To)
			continue
		}
		if _, ok := b.s.Fabric.Switches[p.Device]; !ok {
			b.problem("link %s: its switch is not described; refused", p)
			continue
		}
		b.s.Fabric.Links[p] = link
	}
}

// link reads one row of link info without its loads.
func (b *builder) link(x Sample) (topo.Link, string, bool) {
	l := x.Labels
	from, err := ident.NewPort(l["fabric"], l["switch"], l["port"])
	if err != nil {
		b.problem("a link is refused: %v", err)
		return topo.Link{}, "", false
	}
	if l["link"] != from.String() {
		b.problem("link %s: calls itself %q; refused", from, clip(l["link"]))
		return topo.Link{}, "", false
	}
	_, switchPeer := b.s.Fabric.Switches[l["peer"]]
	switch {
	case l["peer_link"] == "" && !switchPeer && l["direction"] == "":
		return topo.Link{}, "", false // storage, a management switch: nothing that the inventory or a job speaks of
	case l["peer_link"] != "" && l["peer_kind"] == "switch" && l["direction"] == "":
		return topo.Link{}, "", false // between switches of one tier: no path goes up or down by it
	}
	to, err := ident.ParsePort(l["peer_link"])
	if err != nil {
		b.problem("link %s: its peer %q port %q is not exactly one object of the inventory; refused", from, clip(l["peer"]), clip(l["peer_port"]))
		return topo.Link{}, "", false
	}
	if to.Fabric != from.Fabric || to.Device != l["peer"] || to.Name != l["peer_port"] {
		b.problem("link %s: peer %q port %q and peer link %q disagree; refused", from, clip(l["peer"]), clip(l["peer_port"]), clip(l["peer_link"]))
		return topo.Link{}, "", false
	}
	direction := topo.Direction(l["direction"])
	if !slices.Contains([]topo.Direction{topo.Up, topo.Down, topo.Access}, direction) {
		b.problem("link %s: direction %q is none of up, down, access; refused", from, clip(l["direction"]))
		return topo.Link{}, "", false
	}
	if l["peer_kind"] != "switch" && l["peer_kind"] != "node" {
		b.problem("link %s: its peer is a %q, neither switch nor node; refused", from, clip(l["peer_kind"]))
		return topo.Link{}, "", false
	}
	return topo.Link{From: from, To: to, Direction: direction, ECMPGroup: l["ecmp_group"]}, l["peer_kind"], true
}

// nics takes each interface that has a rail and an address, if exactly one leaf port names it.
func (b *builder) nics() {
	attached, twiceAttached := map[ident.Port]ident.Port{}, map[ident.Port]bool{}
	for p, link := range b.s.Fabric.Links {
		if link.Direction != topo.Access {
			continue
		}
		if _, there := attached[link.To]; there {
			twiceAttached[link.To] = true
		}
		attached[link.To] = p
	}
	named, twice := map[ident.Port]bool{}, map[netip.Addr]bool{}
	for _, x := range b.rows(NICInfo) {
		l := x.Labels
		if l["rail"] == "" || l["address"] == "" {
			continue // not an interface of the training network
		}
		port, err := ident.NewPort(b.s.Fabric.Name, l["node"], l["device"])
		if err != nil {
			b.problem("a NIC is refused: %v", err)
			continue
		}
		rail, err := strconv.Atoi(l["rail"])
		if err != nil || rail < 0 || rail > maxRail {
			b.problem("NIC %s: rail %q is no number from 0 to %d; refused", port, clip(l["rail"]), maxRail)
			continue
		}
		addr, ok := parseAddr(l["address"])
		if !ok {
			b.problem("NIC %s: address %q is none; refused", port, clip(l["address"]))
			continue
		}
		if twiceAttached[port] {
			b.problem("NIC %s: hangs on two leaf ports; refused", port)
			continue
		}
		leaf, ok := attached[port]
		if !ok {
			b.problem("NIC %s: no leaf port names it as its neighbour; refused", port)
			continue
		}
		if _, there := b.s.Fabric.NICs[addr]; there || twice[addr] || named[port] {
			twice[addr] = true
			b.problem("NIC %s: it or its address %s is reported more than once; refused", port, addr)
			continue
		}
		named[port] = true
		b.s.Fabric.NICs[addr] = topo.NIC{Node: l["node"], Device: l["device"], Rail: rail, Addr: addr, Attached: leaf}
	}
	for addr := range twice {
		delete(b.s.Fabric.NICs, addr)
	}
	for port, leaf := range attached {
		if !named[port] {
			b.problem("link %s: leads to %s, of which no NIC with rail and address is reported", leaf, port)
		}
	}
}

// maxRail bounds the rails of a node; the largest nodes that are sold have 16 NICs.
const maxRail = 63

// parseAddr reads an address with or without its prefix length.
func parseAddr(s string) (netip.Addr, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Addr().Unmap(), true
	}
	a, err := netip.ParseAddr(s)
	return a.Unmap(), err == nil && a.Zone() == ""
}

// addresses takes the address of each switch port that is an end of a link. IPv6 link-local addresses say nothing
// about where a route leads and are passed over.
func (b *builder) addresses() {
	twice := map[ident.Port]bool{}
	for _, x := range b.rows(PortAddress) {
		port, ok := b.byPort(x.Labels)
		if !ok {
			continue
		}
		if _, ok := b.s.Fabric.Links[port]; !ok {
			continue
		}
		prefix, err := netip.ParsePrefix(x.Labels["address"])
		if err != nil {
			b.problem("port %s: address %q is no address with a prefix length", port, clip(x.Labels["address"]))
			continue
		}
		if prefix.Addr().IsLinkLocalUnicast() {
			continue
		}
		if _, there := b.s.Fabric.Addresses[port]; there {
			twice[port] = true
		}
		b.s.Fabric.Addresses[port] = prefix
	}
	for port := range twice {
		b.problem("port %s: has more than one address; none is used", port)
		delete(b.s.Fabric.Addresses, port)
	}
	for p, link := range b.s.Fabric.Links {
		if link.Direction != topo.Up && link.Direction != topo.Down {
			continue
		}
		if _, ok := b.s.Fabric.Addresses[p]; !ok && !twice[p] {
			b.problem("port %s: its address is not reported", p)
		}
	}
}
