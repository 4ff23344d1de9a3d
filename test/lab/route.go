// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// NextHop is one next hop of a kernel route.
type NextHop struct {
	Gateway netip.Addr // zero for a connected route
	Device  string
	Weight  int // 1 where the kernel has none
}

// Route is one route of a switch's kernel (main table, IPv4).
type Route struct {
	Prefix   netip.Prefix
	Protocol string // "bgp", "kernel", "boot", "static" or a number
	Metric   int
	NextHops []NextHop // by gateway
}

// Routes reads the main routing table of a place, in order of prefix.
func (l *Lab) Routes(place string) ([]Route, error) {
	p, err := l.ns(place)
	if err != nil {
		return nil, err
	}
	names, err := deviceNames(p.handle)
	if err != nil {
		return nil, fmt.Errorf("read devices of %s: %w", place, err)
	}
	var raw []netlink.Route
	for range 5 { // a dump that met a change says so; the table is small, so read it again
		raw, err = p.handle.RouteList(nil, unix.AF_INET)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read routes of %s: %w", place, err)
	}
	routes := make([]Route, 0, len(raw))
	for _, r := range raw {
		routes = append(routes, toRoute(r, names))
	}
	slices.SortFunc(routes, func(a, b Route) int {
		if c := a.Prefix.Addr().Compare(b.Prefix.Addr()); c != 0 {
			return c
		}
		if c := a.Prefix.Bits() - b.Prefix.Bits(); c != 0 {
			return c
		}
		return a.Metric - b.Metric
	})
	return routes, nil
}

// Route finds the kernel's route for exactly this prefix; ok is false if there is none.
func (l *Lab) Route(place string, prefix netip.Prefix) (r Route, ok bool, err error) {
	routes, err := l.Routes(place)
	if err != nil {
		return Route{}, false, err
	}
	i := slices.IndexFunc(routes, func(r Route) bool { return r.Prefix == prefix })
	if i < 0 {
		return Route{}, false, nil
	}
	return routes[i], true, nil
}

// SetRoute writes a route by hand, as an engineer with `ip route replace` would. It beats BGP's by its metric 0.
func (l *Lab) SetRoute(place string, prefix netip.Prefix, gateway netip.Addr) error {
	p, err := l.ns(place)
	if err != nil {
		return err
	}
	if err := p.handle.RouteReplace(&netlink.Route{Dst: ipNet(prefix), Gw: net.IP(gateway.AsSlice()), Protocol: unix.RTPROT_STATIC}); err != nil {
		return fmt.Errorf("set route %s via %s in %s: %w", prefix, gateway, place, err)
	}
	return nil
}

// DelRoute removes a route that SetRoute wrote.
func (l *Lab) DelRoute(place string, prefix netip.Prefix) error {
	p, err := l.ns(place)
	if err != nil {
		return err
	}
	if err := p.handle.RouteDel(&netlink.Route{Dst: ipNet(prefix), Protocol: unix.RTPROT_STATIC}); err != nil {
		return fmt.Errorf("delete route %s in %s: %w", prefix, place, err)
	}
	return nil
}

// RouteEvent is one change of a kernel routing table.
type RouteEvent struct {
	At      time.Time
	Deleted bool
	Route   Route
}

// String is the event as one line.
func (e RouteEvent) String() string {
	verb := "set"
	if e.Deleted {
		verb = "deleted"
	}
	return fmt.Sprintf("%s %s %s %v", e.At.Format("15:04:05.000"), verb, e.Route.Prefix, e.Route.NextHops)
}

// RouteMonitor records every change of a place's main table from the moment it was made.
type RouteMonitor struct {
	mu     sync.Mutex
	events []RouteEvent
	err    error
	stop   func()
}

// RouteEvents starts recording. Stop it, or let Close do so.
func (l *Lab) RouteEvents(place string) (*RouteMonitor, error) {
	p, err := l.ns(place)
	if err != nil {
		return nil, err
	}
	names, err := deviceNames(p.handle)
	if err != nil {
		return nil, fmt.Errorf("read devices of %s: %w", place, err)
	}
	m := &RouteMonitor{}
	updates, done := make(chan netlink.RouteUpdate, 256), make(chan struct{})
	m.stop = sync.OnceFunc(func() { close(done) })
	err = netlink.RouteSubscribeWithOptions(updates, done, netlink.RouteSubscribeOptions{
		Namespace: &p.ns, ReceiveBufferSize: 1 << 20,
		ErrorCallback: func(err error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			select {
			case <-done: // reading from the closed socket is how it ends
			default:
				m.err = errors.Join(m.err, err)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch routes of %s: %w", place, err)
	}
	go func() {
		for u := range updates {
			if u.Table != unix.RT_TABLE_MAIN || u.Family != unix.AF_INET {
				continue
			}
			e := RouteEvent{At: time.Now(), Deleted: u.Type == unix.RTM_DELROUTE, Route: toRoute(u.Route, names)}
			m.mu.Lock()
			m.events = append(m.events, e)
			m.mu.Unlock()
		}
	}()
	l.onClose(m.stop)
	return m, nil
}

// Events returns what was recorded so far; an error means that events may be missing.
func (m *RouteMonitor) Events() ([]RouteEvent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events), m.err
}

// Of returns the events of one prefix.
func (m *RouteMonitor) Of(prefix netip.Prefix) ([]RouteEvent, error) {
	all, err := m.Events()
	return slices.DeleteFunc(all, func(e RouteEvent) bool { return e.Route.Prefix != prefix }), err
}

// Stop ends the recording.
func (m *RouteMonitor) Stop() { m.stop() }

func deviceNames(h *netlink.Handle) (map[int]string, error) {
	links, err := h.LinkList()
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	return names, nil
}

func toRoute(r netlink.Route, names map[int]string) Route {
	out := Route{Protocol: r.Protocol.String(), Metric: r.Priority, Prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0)}
	if r.Dst != nil {
		if a, ok := netip.AddrFromSlice(r.Dst.IP.To4()); ok {
			bits, _ := r.Dst.Mask.Size()
			out.Prefix = netip.PrefixFrom(a, bits)
		}
	}
	hop := func(gw net.IP, index, hops int) {
		a, _ := netip.AddrFromSlice(gw.To4())
		out.NextHops = append(out.NextHops, NextHop{a, names[index], hops + 1})
	}
	if len(r.MultiPath) == 0 {
		hop(r.Gw, r.LinkIndex, 0)
	}
	for _, n := range r.MultiPath {
		hop(n.Gw, n.LinkIndex, n.Hops)
	}
	slices.SortFunc(out.NextHops, func(a, b NextHop) int { return a.Gateway.Compare(b.Gateway) })
	return out
}

// PickSourcePort finds a source port for which the source's leaf sends src -> dst:dport to the wanted spine; proto is
// "tcp" or "udp". It asks the leaf's own kernel, so it is right for whatever hash, seed and routes there are. Ports in
// avoid are passed over.
func (l *Lab) PickSourcePort(ctx context.Context, proto string, src, dst netip.Addr, dport int, spine string, avoid map[int]bool) (int, error) {
	if !src.Is4() || !dst.Is4() {
		return 0, fmt.Errorf("pick a source port: %s and %s must be IPv4", src, dst)
	}
	const tries = 64
	first := 20000 + (dport*7+int(src.As4()[2])*131)%9000
	ports := make([]int, tries)
	for i := range ports {
		ports[i] = first + i
	}
	devs, err := l.uplinks(ctx, proto, src, dst, ports, dport)
	if err != nil {
		return 0, err
	}
	for i, dev := range devs {
		if dev == PortToSpine(spine) && !avoid[ports[i]] {
			return ports[i], nil
		}
	}
	return 0, fmt.Errorf("none of %d source ports takes %s -> %s:%d over %s", tries, src, dst, dport, spine)
}

// Uplink is the port by which the source's leaf now forwards a flow: "sp1", or "h5" to a host of the same leaf.
func (l *Lab) Uplink(ctx context.Context, proto string, src netip.Addr, sport int, dst netip.Addr, dport int) (string, error) {
	devs, err := l.uplinks(ctx, proto, src, dst, []int{sport}, dport)
	if err != nil {
		return "", err
	}
	return devs[0], nil
}

// uplinks asks a leaf's kernel for the outgoing device of several flows that differ in their source port.
func (l *Lab) uplinks(ctx context.Context, proto string, src, dst netip.Addr, sports []int, dport int) ([]string, error) {
	nic, ok := l.NIC(src)
	if !ok {
		return nil, fmt.Errorf("ask for a path: %s is no host of the lab", src)
	}
	var batch strings.Builder
	for _, sport := range sports {
		fmt.Fprintf(&batch, "route get %s from %s iif %s ipproto %s sport %d dport %d\n", dst, src, nic.LeafPort, proto, sport, dport)
	}
	out, err := runHost(ctx, batch.String(), "ip", "-n", l.Namespace(nic.Leaf), "-json", "-batch", "-")
	if err != nil {
		return nil, fmt.Errorf("ask %s for its path to %s: %w", nic.Leaf, dst, err)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	devs := make([]string, len(sports))
	for i := range devs {
		var answer []struct {
			Dev string `json:"dev"`
		}
		if err := dec.Decode(&answer); err != nil {
			return nil, fmt.Errorf("ask %s for its path to %s: %w", nic.Leaf, dst, err)
		}
		if len(answer) != 1 {
			return nil, fmt.Errorf("ask %s for its path to %s: %d answers", nic.Leaf, dst, len(answer))
		}
		devs[i] = answer[0].Dev
	}
	return devs, nil
}
