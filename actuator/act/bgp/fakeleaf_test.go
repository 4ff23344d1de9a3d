// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/plan"
)

// The driver's two local addresses in unit tests: all of 127/8 is ours on Linux.
var (
	pinsAddr    = netip.MustParseAddr("127.0.1.1")
	weightsAddr = netip.MustParseAddr("127.0.1.2")
)

// fakeLeaf speaks just enough BGP to stand for a leaf: OPEN, KEEPALIVE, End-of-RIB, and it notes every message. Its
// forwarding table is what it was told and not untold.
type fakeLeaf struct {
	t  *testing.T
	ln net.Listener
	wg sync.WaitGroup

	silent bool // accepts, but never says OPEN

	mu       sync.Mutex
	conns    map[plan.Kind]net.Conn
	tables   map[plan.Kind]table
	messages map[plan.Kind][]uint8 // types of the messages heard, over all connections
	opens    map[plan.Kind]openCaps
	feed     []netip.Addr // next hops of the paths that the leaf tells for feedPrefix
}

var feedPrefix = netip.MustParsePrefix("10.3.0.0/16")

func newFakeLeaf(t *testing.T) *fakeLeaf {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeLeaf{
		t: t, ln: ln, conns: map[plan.Kind]net.Conn{}, tables: map[plan.Kind]table{}, messages: map[plan.Kind][]uint8{},
		opens: map[plan.Kind]openCaps{}, feed: []netip.Addr{netip.MustParseAddr("10.0.11.1"), netip.MustParseAddr("10.0.12.1")},
	}
	f.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			f.wg.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(f.close)
	return f
}

func (f *fakeLeaf) close() {
	f.ln.Close()
	f.drop()
	f.wg.Wait()
}

// drop ends all connections, as a leaf that restarts.
func (f *fakeLeaf) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
}

func (f *fakeLeaf) serve(c net.Conn) {
	defer c.Close()
	kind := plan.Pin
	if c.RemoteAddr().(*net.TCPAddr).IP.Equal(weightsAddr.AsSlice()) {
		kind = plan.Weights
	}
	f.mu.Lock()
	f.conns[kind], f.tables[kind] = c, table{}
	silent := f.silent
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.conns[kind] == c {
			f.tables[kind] = table{}
		}
	}()
	for {
		msg, err := readMessage(c)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.messages[kind] = append(f.messages[kind], messageType(msg))
		f.mu.Unlock()
		switch messageType(msg) {
		case bgp.BGP_MSG_OPEN:
			caps, err := parseOpen(msg)
			if err != nil {
				f.t.Errorf("fake leaf: %v", err)
			}
			f.mu.Lock()
			f.opens[kind] = caps
			f.mu.Unlock()
			if silent {
				continue
			}
			f.send(c, f.open(), nil)
			f.send(c, bgp.NewBGPKeepAliveMessage(), nil)
			if kind == plan.Pin {
				f.send(c, bgp.NewEndOfRib(bgp.RF_IPv4_UC), nil)
			} else {
				f.tell(f.feed...)
			}
		case bgp.BGP_MSG_KEEPALIVE:
			f.send(c, bgp.NewBGPKeepAliveMessage(), nil)
		case bgp.BGP_MSG_UPDATE:
			u, err := parseUpdate(msg, kind == plan.Weights)
			if err != nil {
				f.t.Errorf("fake leaf: %v", err)
				return
			}
			f.mu.Lock()
			f.tables[kind].update(u)
			f.mu.Unlock()
		}
	}
}

func (f *fakeLeaf) open() *bgp.BGPMessage {
	gr := bgp.NewCapGracefulRestart(false, false, 120, nil)
	add := bgp.NewCapAddPath([]*bgp.CapAddPathTuple{bgp.NewCapAddPathTuple(bgp.RF_IPv4_UC, bgp.BGP_ADD_PATH_BOTH)})
	caps := []bgp.ParameterCapabilityInterface{bgp.NewCapMultiProtocol(bgp.RF_IPv4_UC), bgp.NewCapFourOctetASNumber(65001), gr, add}
	m, err := bgp.NewBGPOpenMessage(65001, 9, netip.MustParseAddr("10.254.0.1"), []bgp.OptionParameterInterface{bgp.NewOptionParameterCapability(caps)})
	if err != nil {
		f.t.Error(err)
	}
	return m
}

// tell sends the leaf's own paths for feedPrefix over the session for weights; path ids are positions, missing ones are
// withdrawn.
func (f *fakeLeaf) tell(hops ...netip.Addr) {
	f.mu.Lock()
	c := f.conns[plan.Weights]
	f.mu.Unlock()
	nlri, err := bgp.NewIPAddrPrefix(feedPrefix)
	if err != nil {
		f.t.Error(err)
	}
	opt := &bgp.MarshallingOption{AddPath: map[bgp.Family]bgp.BGPAddPathMode{bgp.RF_IPv4_UC: bgp.BGP_ADD_PATH_BOTH}}
	for id := range uint32(4) {
		m := bgp.NewBGPUpdateMessage([]bgp.PathNLRI{{NLRI: nlri, ID: id + 1}}, nil, nil)
		if int(id) < len(hops) {
			next, err := bgp.NewPathAttributeNextHop(hops[id])
			if err != nil {
				f.t.Error(err)
			}
			attrs := []bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(0), bgp.NewPathAttributeAsPath(nil), next, bgp.NewPathAttributeLocalPref(100)}
			m = bgp.NewBGPUpdateMessage(nil, attrs, []bgp.PathNLRI{{NLRI: nlri, ID: id + 1}})
		}
		f.send(c, m, opt)
	}
}

func (f *fakeLeaf) send(c net.Conn, m *bgp.BGPMessage, opt *bgp.MarshallingOption) {
	var opts []*bgp.MarshallingOption
	if opt != nil {
		opts = append(opts, opt)
	}
	b, err := m.Serialize(opts...)
	if err != nil {
		f.t.Error(err)
	}
	_, _ = c.Write(b) // the driver may have gone
}

// routes is what the leaf was told and not untold.
func (f *fakeLeaf) routes() []plan.Route {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []plan.Route
	for k, t := range f.tables {
		for _, p := range slices.Collect(maps.Keys(t)) {
			if r, ok := t.route("l1", k, p); ok {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, act.Compare)
	return out
}

// count is how many messages of a type the leaf has heard in all.
func (f *fakeLeaf) count(k plan.Kind, typ uint8) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, m := range f.messages[k] {
		if m == typ {
			n++
		}
	}
	return n
}

// config is a driver's configuration for this leaf.
func (f *fakeLeaf) config() Config {
	cfg := Default()
	cfg.Pins.LocalAddress, cfg.Weights.LocalAddress = pinsAddr, weightsAddr
	cfg.Prefixes = []netip.Prefix{feedPrefix}
	to := f.ln.Addr().(*net.TCPAddr)
	cfg.Leaves = []Leaf{{
		Name: "l1", Address: netip.MustParseAddr("127.0.0.1"), Port: uint16(to.Port), ASN: 65001,
		Uplinks: []netip.Addr{netip.MustParseAddr("10.0.11.1"), netip.MustParseAddr("10.0.12.1")},
	}}
	return cfg
}

func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
