// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// rtoMin is the least retransmission timeout on the hosts' routes. With the kernel's 200 ms one loss on a path of
// 24 ms queues costs ten times what it would in a data centre.
const rtoMin = 20 * time.Millisecond

// switchSysctls make a namespace a router; hostSysctls make one a training node.
var switchSysctls = map[string]string{
	"net/ipv4/ip_forward":                               "1",
	"net/ipv4/conf/all/rp_filter":                       "0",
	"net/ipv4/conf/default/rp_filter":                   "0",
	"net/ipv4/conf/all/send_redirects":                  "0",
	"net/ipv4/conf/default/send_redirects":              "0",
	"net/ipv4/conf/all/ignore_routes_with_linkdown":     "1",
	"net/ipv4/conf/default/ignore_routes_with_linkdown": "1",
	"net/ipv4/fib_multipath_hash_policy":                "1", // addresses and ports
	"net/ipv4/icmp_ratelimit":                           "0", // traces are wanted here
}

var hostSysctls = map[string]string{
	"net/ipv4/conf/all/rp_filter":        "0",
	"net/ipv4/conf/default/rp_filter":    "0",
	"net/ipv4/tcp_no_metrics_save":       "1",
	"net/ipv4/tcp_slow_start_after_idle": "0", // a ring is idle while it computes, and must not start from nothing each step
}

// quiet turns IPv6 off: its neighbour chatter would be the only traffic that nobody asked for.
var quiet = map[string]string{
	"net/ipv6/conf/all/disable_ipv6":     "1",
	"net/ipv6/conf/default/disable_ipv6": "1",
}

// setSysctls writes under /proc/sys, which shows the namespace of the thread that opens it.
func (l *Lab) setSysctls(place string, sets ...map[string]string) error {
	return l.Do(place, func() error {
		for _, set := range sets {
			for key, value := range set {
				if err := os.WriteFile("/proc/sys/"+key, []byte(value), 0); err != nil {
					if errors.Is(err, os.ErrNotExist) && strings.HasPrefix(key, "net/ipv6/") {
						continue // a kernel without IPv6 is quiet already
					}
					return fmt.Errorf("set sysctl %s in %s: %w", key, place, err)
				}
			}
		}
		return nil
	})
}

// wire makes namespaces, cables, addresses and the hosts' policy routes.
func (l *Lab) wire(ctx context.Context) error {
	for _, place := range l.Places() {
		if err := l.addPlace(place); err != nil {
			return err
		}
	}
	mgmt := l.places[Mgmt].handle
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	if err := mgmt.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make the management bridge: %w", err)
	}
	for _, a := range []netip.Addr{ControllerPins, ControllerWeights} {
		if err := l.addAddr(Mgmt, "br0", netip.PrefixFrom(a, 24)); err != nil {
			return err
		}
	}
	if err := l.setUp(Mgmt, "br0"); err != nil {
		return err
	}
	for i, s := range l.Switches {
		seed := uint32(1001 + i)
		if v, ok := l.cfg.HashSeed[s.Name]; ok {
			seed = v
		}
		if err := l.setSysctls(s.Name, quiet, switchSysctls, map[string]string{"net/ipv4/fib_multipath_hash_seed": fmt.Sprint(seed)}); err != nil {
			return err
		}
		if err := l.joinMgmt(s.Name, s.Mgmt); err != nil {
			return err
		}
	}
	ecn := map[string]string{"net/ipv4/tcp_ecn": "2"}
	if l.cfg.ECN {
		ecn["net/ipv4/tcp_ecn"] = "1"
	}
	for _, h := range l.Hosts {
		if err := l.setSysctls(h.Name, quiet, hostSysctls, ecn); err != nil {
			return err
		}
		if err := l.joinMgmt(h.Name, h.Mgmt); err != nil {
			return err
		}
	}
	if err := l.setSysctls(Mgmt, quiet); err != nil {
		return err
	}
	for _, c := range l.Cables {
		if err := l.addCable(c.A, c.APort, c.B, c.BPort); err != nil {
			return err
		}
		if err := l.addAddr(c.A, c.APort, c.AAddr); err != nil {
			return err
		}
		if err := l.addAddr(c.B, c.BPort, c.BAddr); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for _, h := range l.Hosts {
		if err := l.hostRoutes(h); err != nil {
			return err
		}
	}
	return l.tuneDevices(ctx)
}

// addPlace makes one namespace with its loopback up.
func (l *Lab) addPlace(place string) error {
	name := l.prefix + place
	ns, err := makeNetns(name)
	if err != nil {
		return err
	}
	p := &placeNS{name: name, ns: ns}
	l.places[place] = p
	if p.handle, err = netlink.NewHandleAt(ns, unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("netlink in namespace %s: %w", name, err)
	}
	return l.setUp(place, "lo")
}

func (l *Lab) joinMgmt(place string, addr netip.Addr) error {
	if err := l.addCable(place, "mgmt0", Mgmt, place); err != nil {
		return err
	}
	mgmt := l.places[Mgmt].handle
	port, err := mgmt.LinkByName(place)
	if err != nil {
		return fmt.Errorf("find the bridge port of %s: %w", place, err)
	}
	bridge, err := mgmt.LinkByName("br0")
	if err != nil {
		return fmt.Errorf("find the management bridge: %w", err)
	}
	if err := mgmt.LinkSetMaster(port, bridge); err != nil {
		return fmt.Errorf("put %s on the management bridge: %w", place, err)
	}
	return l.addAddr(place, "mgmt0", netip.PrefixFrom(addr, 24))
}

// addCable makes a veth pair between two namespaces and takes both ends up.
func (l *Lab) addCable(a, aPort, b, bPort string) error {
	pa, pb := l.places[a], l.places[b]
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: aPort, MTU: l.cfg.MTU, NumTxQueues: 1, NumRxQueues: 1},
		PeerName:  bPort, PeerNamespace: netlink.NsFd(pb.ns), PeerNumTxQueues: 1, PeerNumRxQueues: 1,
	}
	if err := pa.handle.LinkAdd(veth); err != nil {
		return fmt.Errorf("cable %s:%s - %s:%s: %w", a, aPort, b, bPort, err)
	}
	if err := l.setUp(a, aPort); err != nil {
		return err
	}
	return l.setUp(b, bPort)
}

func (l *Lab) link(place, device string) (*placeNS, netlink.Link, error) {
	p, err := l.ns(place)
	if err != nil {
		return nil, nil, err
	}
	link, err := p.handle.LinkByName(device)
	if err != nil {
		return nil, nil, fmt.Errorf("find %s:%s: %w", place, device, err)
	}
	return p, link, nil
}

func (l *Lab) setUp(place, device string) error {
	p, link, err := l.link(place, device)
	if err != nil {
		return err
	}
	if err := p.handle.LinkSetUp(link); err != nil {
		return fmt.Errorf("take %s:%s up: %w", place, device, err)
	}
	return nil
}

func (l *Lab) addAddr(place, device string, addr netip.Prefix) error {
	p, link, err := l.link(place, device)
	if err != nil {
		return err
	}
	if err := p.handle.AddrAdd(link, &netlink.Addr{IPNet: ipNet(addr)}); err != nil {
		return fmt.Errorf("address %s on %s:%s: %w", addr, place, device, err)
	}
	return nil
}

// hostRoutes makes the source address choose the rail: one table per rail, as on nodes with several RDMA NICs.
func (l *Lab) hostRoutes(h Host) error {
	p := l.places[h.Name]
	for _, n := range h.NICs {
		link, err := p.handle.LinkByName(n.Device)
		if err != nil {
			return fmt.Errorf("find %s:%s: %w", h.Name, n.Device, err)
		}
		table := 101 + n.Rail
		tables := []int{table}
		if n.Rail == 0 {
			tables = append(tables, unix.RT_TABLE_MAIN) // unbound sockets take rail 0
		}
		for _, t := range tables {
			r := &netlink.Route{
				LinkIndex: link.Attrs().Index, Gw: net.IP(n.Gateway.AsSlice()), Table: t, RtoMin: int(rtoMin.Milliseconds()), RtoMinLock: true, // TCP believes only a locked one
				Dst: ipNet(netip.MustParsePrefix("0.0.0.0/0")),
			}
			if err := p.handle.RouteReplace(r); err != nil {
				return fmt.Errorf("default route of %s rail %d: %w", h.Name, n.Rail, err)
			}
		}
		rule := netlink.NewRule()
		rule.Priority, rule.Table, rule.Src, rule.Family = 1000+n.Rail, table, ipNet(netip.PrefixFrom(n.Addr, 32)), unix.AF_INET
		if err := p.handle.RuleAdd(rule); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("policy rule of %s rail %d: %w", h.Name, n.Rail, err)
		}
	}
	return nil
}

// tuneDevices makes packets real packets and keeps them in order. With segmentation offload a 64 KB super-packet meets a
// 32 KB token bucket and one flow gets 60-130 of 200 Mbit/s. Without receive packet steering two processors each hold a
// part of one flow in their backlogs, veth delivers it out of order, and TCP sends again what was never lost.
func (l *Lab) tuneDevices(ctx context.Context) error {
	ports := map[string][]string{}
	for _, c := range l.Cables {
		ports[c.A] = append(ports[c.A], c.APort)
		ports[c.B] = append(ports[c.B], c.BPort)
	}
	cpus := fmt.Sprintf("%x", uint64(1)<<min(runtime.NumCPU(), 32)-1)
	return l.each(ctx, l.devices(), func(ctx context.Context, place string) error {
		var script strings.Builder
		script.WriteString("set -e\n")
		for _, port := range ports[place] {
			fmt.Fprintf(&script, "ethtool -K %s tso off gso off gro off >/dev/null\n", port)
			fmt.Fprintf(&script, "if [ -e /sys/class/net/%[1]s/queues/rx-0/rps_cpus ]; then echo %[2]s > /sys/class/net/%[1]s/queues/rx-0/rps_cpus; fi\n", port, cpus)
		}
		// ip netns exec also mounts a /sys that shows this namespace's devices.
		_, err := runHost(ctx, script.String(), "ip", "netns", "exec", l.places[place].name, "sh")
		return err
	})
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: net.IP(p.Addr().AsSlice()), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
