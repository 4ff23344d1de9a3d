// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/trainyard/trainyard/actuator/plan"
)

const (
	localPref   = 200        // above the 100 that a leaf gives to what its spines tell it
	noAdvertise = 0xFFFFFF02 // RFC 1997: the leaf keeps the route to itself

	// FRR keeps a link bandwidth in 32 bits of bytes per second and wraps; only the ratios count, so the values are small.
	bytesPerSecondPerWeight = 1000
)

// paths spells a route for GoBGP. Path ids are 1, 2, ... in the order of next hops, so that a later version of the route
// replaces the paths one by one and the surplus ones can be withdrawn by their ids.
func paths(r plan.Route, asn uint32) ([]*apiutil.Path, error) {
	nlri, err := bgp.NewIPAddrPrefix(r.Prefix)
	if err != nil {
		return nil, fmt.Errorf("spell prefix %s: %w", r.Prefix, err)
	}
	var out []*apiutil.Path
	for i, h := range sortedHops(r.NextHops) {
		next, err := bgp.NewPathAttributeNextHop(h.Addr)
		if err != nil {
			return nil, fmt.Errorf("spell next hop %s: %w", h.Addr, err)
		}
		attrs := []bgp.PathAttributeInterface{
			bgp.NewPathAttributeOrigin(0), bgp.NewPathAttributeAsPath(nil), next,
			bgp.NewPathAttributeLocalPref(localPref), bgp.NewPathAttributeCommunities([]uint32{noAdvertise}),
		}
		if r.Kind == plan.Weights {
			// The AS in this community has 16 bits; a 32-bit one is spelled AS_TRANS, and FRR ignores it.
			as := uint16(bgp.AS_TRANS)
			if asn <= math.MaxUint16 {
				as = uint16(asn)
			}
			attrs = append(attrs, bgp.NewPathAttributeExtendedCommunities([]bgp.ExtendedCommunityInterface{
				bgp.NewLinkBandwidthExtended(as, float32(h.Weight)*bytesPerSecondPerWeight),
			}))
		}
		id := uint32(i + 1)
		out = append(out, &apiutil.Path{Family: bgp.RF_IPv4_UC, Nlri: nlri, Attrs: attrs, RemoteID: id, LocalID: id})
	}
	return out, nil
}

func sortedHops(hs []plan.NextHop) []plan.NextHop {
	hs = slices.Clone(hs)
	slices.SortFunc(hs, func(a, b plan.NextHop) int { return a.Addr.Compare(b.Addr) })
	return hs
}

// table is what one direction of a connection has announced and not withdrawn: paths by prefix and path id.
type table map[netip.Prefix]map[uint32]plan.NextHop

// update applies one UPDATE message.
func (t table) update(u *bgp.BGPUpdate) {
	for _, w := range u.WithdrawnRoutes {
		if p, ok := prefixOf(w.NLRI); ok {
			delete(t[p], w.ID)
			if len(t[p]) == 0 {
				delete(t, p)
			}
		}
	}
	if len(u.NLRI) == 0 {
		return
	}
	hop := nextHop(u.PathAttributes)
	for _, n := range u.NLRI {
		if p, ok := prefixOf(n.NLRI); ok {
			if t[p] == nil {
				t[p] = map[uint32]plan.NextHop{}
			}
			t[p][n.ID] = hop
		}
	}
}

// route reads a prefix of the table back as a route.
func (t table) route(leaf string, k plan.Kind, p netip.Prefix) (plan.Route, bool) {
	if len(t[p]) == 0 {
		return plan.Route{}, false
	}
	r := plan.Route{Switch: leaf, Prefix: p, Kind: k}
	for _, h := range t[p] {
		r.NextHops = append(r.NextHops, h)
	}
	r.NextHops = sortedHops(r.NextHops)
	return r, true
}

// live says whether the table has a path through hop for the longest prefix that covers p.
func (t table) live(p netip.Prefix, hop netip.Addr) bool {
	best := -1
	found := false
	for q, ps := range t {
		if q.Bits() <= best || q.Bits() > p.Bits() || !q.Contains(p.Addr()) {
			continue
		}
		best, found = q.Bits(), false
		for _, h := range ps {
			found = found || h.Addr == hop
		}
	}
	return found
}

// direct says whether hop is the next hop of any path: then it is a neighbour of the switch.
func (t table) direct(hop netip.Addr) bool {
	for _, ps := range t {
		for _, h := range ps {
			if h.Addr == hop {
				return true
			}
		}
	}
	return false
}

func prefixOf(n bgp.NLRI) (netip.Prefix, bool) {
	p, ok := n.(*bgp.IPAddrPrefix)
	if !ok {
		return netip.Prefix{}, false
	}
	return p.Prefix.Masked(), true
}

func nextHop(attrs []bgp.PathAttributeInterface) plan.NextHop {
	var h plan.NextHop
	for _, a := range attrs {
		switch a := a.(type) {
		case *bgp.PathAttributeNextHop:
			h.Addr = a.Value.Unmap()
		case *bgp.PathAttributeExtendedCommunities:
			for _, c := range a.Value {
				if l, ok := c.(*bgp.LinkBandwidthExtended); ok {
					h.Weight = uint8(min(math.Round(float64(l.Bandwidth)/bytesPerSecondPerWeight), math.MaxUint8))
				}
			}
		}
	}
	return h
}

// readMessage reads one BGP message as it stands on the wire (RFC 4271, 4.1; up to 65535 bytes by RFC 8654).
func readMessage(r io.Reader) ([]byte, error) {
	head := make([]byte, bgp.BGP_HEADER_LENGTH)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(head[16:18]))
	if n < bgp.BGP_HEADER_LENGTH {
		return nil, fmt.Errorf("a BGP message of %d bytes, shorter than its header", n)
	}
	msg := make([]byte, n)
	copy(msg, head)
	_, err := io.ReadFull(r, msg[bgp.BGP_HEADER_LENGTH:])
	return msg, err
}

// messageType is the type byte of a message that readMessage returned.
func messageType(msg []byte) uint8 { return msg[18] }

// parseUpdate decodes an UPDATE message.
func parseUpdate(msg []byte, addPath bool) (*bgp.BGPUpdate, error) {
	opt := &bgp.MarshallingOption{ExtendedMessage: true, AddPath: map[bgp.Family]bgp.BGPAddPathMode{}}
	if addPath {
		opt.AddPath[bgp.RF_IPv4_UC] = bgp.BGP_ADD_PATH_BOTH
	}
	m, err := bgp.ParseBGPMessage(msg, opt)
	if err != nil {
		return nil, err
	}
	u, ok := m.Body.(*bgp.BGPUpdate)
	if !ok {
		return nil, fmt.Errorf("a message of type %d where an UPDATE was expected", m.Header.Type)
	}
	return u, nil
}

// openCaps is what one side's OPEN offers, as far as it concerns us.
type openCaps struct {
	addPath bgp.BGPAddPathMode // for IPv4 unicast
	restart bool               // graceful restart (RFC 4724)
}

func parseOpen(msg []byte) (openCaps, error) {
	m, err := bgp.ParseBGPMessage(msg)
	if err != nil {
		return openCaps{}, err
	}
	o, ok := m.Body.(*bgp.BGPOpen)
	if !ok {
		return openCaps{}, fmt.Errorf("a message of type %d where an OPEN was expected", m.Header.Type)
	}
	var c openCaps
	for _, p := range o.OptParams {
		pc, ok := p.(*bgp.OptionParameterCapability)
		if !ok {
			continue
		}
		for _, one := range pc.Capability {
			switch one := one.(type) {
			case *bgp.CapAddPath:
				for _, t := range one.Tuples {
					if t.Family == bgp.RF_IPv4_UC {
						c.addPath = t.Mode
					}
				}
			case *bgp.CapGracefulRestart:
				c.restart = true
			}
		}
	}
	return c, nil
}

// notification spells a NOTIFICATION message for people.
func notification(msg []byte) string {
	if len(msg) < bgp.BGP_HEADER_LENGTH+2 {
		return "a NOTIFICATION that is cut short"
	}
	return bgp.NewNotificationErrorCode(msg[19], msg[20]).String()
}
