// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/plan"
)

// encode sends a route through the wire's spelling and reads it back into a table.
func encode(t *testing.T, tb table, r plan.Route, asn uint32) []bgp.PathAttributeInterface {
	t.Helper()
	ps, err := paths(r, asn)
	if err != nil {
		t.Fatal(err)
	}
	var attrs []bgp.PathAttributeInterface
	for _, p := range ps {
		opt := &bgp.MarshallingOption{AddPath: map[bgp.Family]bgp.BGPAddPathMode{bgp.RF_IPv4_UC: bgp.BGP_ADD_PATH_BOTH}}
		b, err := bgp.NewBGPUpdateMessage(nil, p.Attrs, []bgp.PathNLRI{{NLRI: p.Nlri, ID: p.RemoteID}}).Serialize(opt)
		if err != nil {
			t.Fatal(err)
		}
		u, err := parseUpdate(b, true)
		if err != nil {
			t.Fatal(err)
		}
		tb.update(u)
		attrs = append(attrs, u.PathAttributes...)
	}
	return attrs
}

func TestRoutesSurviveTheWire(t *testing.T) {
	for _, asn := range []uint32{65001, 4200000001} {
		for _, r := range []plan.Route{pin("10.3.5.2/32", "10.0.32.0"), weights("10.3.6.2/32", 1, 100), weights("10.3.6.2/32", 33, 67)} {
			tb := table{}
			attrs := encode(t, tb, r, asn)
			if got, ok := tb.route("l1", r.Kind, r.Prefix); !ok || !act.Same(got, r) {
				t.Errorf("AS %d: wrote %s, read %s", asn, r, got)
			}
			for _, a := range attrs {
				switch a := a.(type) {
				case *bgp.PathAttributeLocalPref:
					if a.Value != 200 {
						t.Errorf("local preference %d", a.Value)
					}
				case *bgp.PathAttributeCommunities:
					if !slices.Equal(a.Value, []uint32{0xFFFFFF02}) {
						t.Errorf("communities %x, want no-advertise", a.Value)
					}
				case *bgp.PathAttributeExtendedCommunities:
					// FRR wraps at 2^32 bytes a second over all next hops.
					if l, ok := a.Value[0].(*bgp.LinkBandwidthExtended); !ok || l.Bandwidth > 1e6 {
						t.Errorf("link bandwidth %v: want a small relative value", a.Value[0])
					}
				}
			}
		}
	}
}

func TestLiveAsksTheLongestPrefix(t *testing.T) {
	tb := table{
		netip.MustParsePrefix("0.0.0.0/0"):   {1: {Addr: netip.MustParseAddr("10.0.11.1")}},
		netip.MustParsePrefix("10.3.0.0/16"): {1: {Addr: netip.MustParseAddr("10.0.11.1")}, 2: {Addr: netip.MustParseAddr("10.0.12.1")}},
		netip.MustParsePrefix("10.3.6.0/24"): {7: {Addr: netip.MustParseAddr("10.0.12.1")}},
	}
	for _, c := range []struct {
		prefix, hop string
		want        bool
	}{
		{"10.3.5.2/32", "10.0.11.1", true},
		{"10.3.5.2/32", "10.0.13.1", false},
		{"10.3.6.2/32", "10.0.12.1", true},
		{"10.3.6.2/32", "10.0.11.1", false}, // the /24 does not go there any more, though the /16 would
		{"10.4.5.2/32", "10.0.11.1", true},
	} {
		if got := tb.live(netip.MustParsePrefix(c.prefix), netip.MustParseAddr(c.hop)); got != c.want {
			t.Errorf("%s through %s: %v, want %v", c.prefix, c.hop, got, c.want)
		}
	}
}
