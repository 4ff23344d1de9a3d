// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"net/netip"
	"slices"
	"testing"
)

func TestPlan(t *testing.T) {
	p := Plan(false)
	if n := len(p.Places()); n != 15 {
		t.Errorf("%d places, want 15: mgmt, 6 switches, 8 hosts", n)
	}
	if n := len(p.Cables); n != 24 {
		t.Errorf("%d cables, want 8 to spines and 16 to hosts", n)
	}
	seen := map[netip.Addr]string{}
	claim := func(a netip.Addr, who string) {
		if other, ok := seen[a]; ok {
			t.Errorf("%s and %s both have %s", who, other, a)
		}
		seen[a] = who
	}
	for _, c := range p.Cables {
		claim(c.AAddr.Addr(), c.A+":"+c.APort)
		claim(c.BAddr.Addr(), c.B+":"+c.BPort)
		if c.AAddr.Masked() != c.BAddr.Masked() {
			t.Errorf("the ends of %s-%s are in different subnets %s and %s", c.A, c.B, c.AAddr, c.BAddr)
		}
	}
	for _, s := range p.Switches {
		claim(s.Mgmt, s.Name)
	}
	for _, h := range p.Hosts {
		claim(h.Mgmt, h.Name)
	}
	// The example of the address plan, by hand: host 7 on rail 0 hangs on l3, which is .0 of 10.0.32/31 towards s2.
	n7, _ := p.Host("n7")
	if got := n7.NICs[0]; got.Addr.String() != "10.3.7.2" || got.Leaf != "l3" || got.LeafPort != "h7" {
		t.Errorf("n7's rail 0 is %+v", got)
	}
	c, ok := p.Cable("s2", "l3")
	if !ok || c.AAddr.String() != "10.0.32.0/31" || c.APort != "sp2" || c.BAddr.String() != "10.0.32.1/31" || c.BPort != "lf3" {
		t.Errorf("the cable s2-l3 is %+v", c)
	}
	if got, want := p.Ports("l2"), []string{"sp1", "sp2", "h1", "h2", "h3", "h4"}; !slices.Equal(got, want) {
		t.Errorf("l2 has ports %v, want %v", got, want)
	}
	if s, _ := Plan(true).Switch("s2"); s.ASN != 65100 {
		t.Errorf("with a shared AS s2 is in %d", s.ASN)
	}
}
