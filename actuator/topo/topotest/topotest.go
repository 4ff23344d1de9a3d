// SPDX-License-Identifier: Apache-2.0

// Package topotest builds fabrics for tests: the leaf-spine fabric of the lab and regular ones of any size.
package topotest

import (
	"fmt"
	"net/netip"

	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Options describe a regular leaf-spine fabric. Zero values mean what Lab uses.
type Options struct {
	Name           string
	Leaves, Spines int
	Hosts          int     // nodes; each has Rails NICs
	Rails          int     // rail r of the nodes of a pod hangs on leaf r of the pod
	UplinkBytes    float64 // bytes/s of each link between switches, 25e6 = 200 Mbit/s
	HostBytes      float64 // bytes/s of each link to a node
	SharedSpineASN bool
	Balancing      topo.Balancing
	VRF            string
}

// Lab is the fabric of the lab and the plant: 2 spines, 4 leaves, 8 nodes with 2 rails. n1-n4 are pod A (rail 0
// on l1, rail 1 on l2), n5-n8 pod B (l3, l4).
func Lab() topo.Fabric { return New(Options{}) }

// New builds the fabric: switches s1.. and l1.., nodes n1.., leaf ports h<node>, uplinks sp<spine>, spine ports
// lf<leaf>. Node k's NIC on leaf i is 10.<i>.<k>.2 while i and k fit into a byte; the link of leaf i and spine j is
// 10.0.(10i+j).0/31 while that fits. Larger fabrics continue the numbers in 11.0.0.0/8 and 12.0.0.0/8.
func New(o Options) topo.Fabric {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.Leaves, 4)
	def(&o.Spines, 2)
	def(&o.Rails, 2)
	def(&o.Hosts, 8)
	if o.Name == "" {
		o.Name = "lab"
	}
	if o.UplinkBytes == 0 {
		o.UplinkBytes = 25e6
	}
	if o.HostBytes == 0 {
		o.HostBytes = o.UplinkBytes
	}
	if o.Balancing == "" {
		o.Balancing = topo.BalancingHash
	}
	if o.VRF == "" {
		o.VRF = "default"
	}
	if o.Leaves%o.Rails != 0 || o.Hosts%(o.Leaves/o.Rails) != 0 {
		panic(fmt.Sprintf("topotest: %d nodes with %d rails do not fill %d leaves evenly", o.Hosts, o.Rails, o.Leaves))
	}
	f := topo.Fabric{
		Name:      o.Name,
		Switches:  map[string]topo.Switch{},
		Links:     map[ident.Port]topo.Link{},
		NICs:      map[netip.Addr]topo.NIC{},
		Addresses: map[ident.Port]netip.Prefix{},
	}
	port := func(device, name string) ident.Port { return ident.Port{Fabric: o.Name, Device: device, Name: name} }
	cable := func(a, b ident.Port, ab, ba topo.Direction, groupAB, groupBA string, speed float64) {
		f.Links[a] = topo.Link{From: a, To: b, Direction: ab, ECMPGroup: groupAB, BytesPerSecond: speed, Up: true}
		f.Links[b] = topo.Link{From: b, To: a, Direction: ba, ECMPGroup: groupBA, BytesPerSecond: speed, Up: true}
	}
	for j := 1; j <= o.Spines; j++ {
		asn := uint32(65100 + j)
		if o.SharedSpineASN {
			asn = 65100
		}
		name := fmt.Sprintf("s%d", j)
		f.Switches[name] = topo.Switch{Name: name, Tier: 1, ASN: asn, ChassisID: fmt.Sprintf("02:00:00:00:01:%02x", j), Balancing: o.Balancing, VRF: o.VRF}
	}
	for i := 1; i <= o.Leaves; i++ {
		leaf := fmt.Sprintf("l%d", i)
		f.Switches[leaf] = topo.Switch{Name: leaf, Tier: 0, ASN: uint32(65000 + i), ChassisID: fmt.Sprintf("02:00:00:00:00:%02x", i), Balancing: o.Balancing, VRF: o.VRF}
		for j := 1; j <= o.Spines; j++ {
			up, down := port(leaf, fmt.Sprintf("sp%d", j)), port(fmt.Sprintf("s%d", j), fmt.Sprintf("lf%d", i))
			cable(up, down, topo.Up, topo.Down, o.Name+"/"+leaf+":up", o.Name+"/"+leaf+":down", o.UplinkBytes)
			base := netip.AddrFrom4([4]byte{10, 0, byte(10*i + j), 0})
			if o.Spines > 9 || 10*i+j > 255 {
				n := (i-1)*o.Spines + j - 1
				base = netip.AddrFrom4([4]byte{12, byte(n >> 15), byte(n >> 7), byte(n << 1)})
			}
			f.Addresses[up] = netip.PrefixFrom(base, 31)
			f.Addresses[down] = netip.PrefixFrom(base.Next(), 31)
		}
	}
	perPod := o.Hosts / (o.Leaves / o.Rails)
	for k := 1; k <= o.Hosts; k++ {
		pod := (k - 1) / perPod
		for r := range o.Rails {
			i := pod*o.Rails + r + 1
			addr := netip.AddrFrom4([4]byte{10, byte(i), byte(k), 2})
			if k > 255 || i > 255 {
				addr = netip.AddrFrom4([4]byte{11, byte(i), byte(k >> 8), byte(k)})
			}
			leafPort := port(fmt.Sprintf("l%d", i), fmt.Sprintf("h%d", k))
			n := topo.NIC{Node: fmt.Sprintf("n%d", k), Device: fmt.Sprintf("rail%d", r), Rail: r, Addr: addr, Attached: leafPort}
			f.NICs[addr] = n
			cable(leafPort, n.Port(), topo.Access, topo.Host, "", "", o.HostBytes)
			if addr.As4()[0] == 10 {
				b := addr.As4()
				f.Addresses[leafPort] = netip.PrefixFrom(netip.AddrFrom4([4]byte{b[0], b[1], b[2], 1}), 24)
			}
		}
	}
	return f
}

// Cut takes both directions of a cable down, named by either of its ports.
func Cut(f topo.Fabric, p ident.Port) {
	l := f.Links[p]
	back := f.Links[l.To]
	l.Up, back.Up = false, false
	f.Links[p], f.Links[l.To] = l, back
}
