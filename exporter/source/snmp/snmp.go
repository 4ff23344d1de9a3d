// SPDX-License-Identifier: Apache-2.0

// Package snmp reads the switches of a fabric over SNMP: ports and their counters, LLDP neighbours, addresses and
// BGP peers. One Source is one switch, with a client of its own. It sends GET and GETBULK only: nothing here can change
// a switch.
package snmp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/exporter/config"
	"github.com/trainyard/trainyard/exporter/source"
)

// Source polls one switch.
type Source struct {
	fabric    string
	sw        config.Switch
	topoEvery time.Duration
	ports     *regexp.Regexp
	inv       *inventory
	dial      func() (client, error)
	log       *slog.Logger
	now       func() time.Time

	// What a poll leaves for the next one. Reads do not overlap, so there is no lock.
	client   client // nil after a failure: it is made anew, which also follows an agent whose engine id changed
	clock    clock
	polled   bool // clock is set
	flaps    map[string]flaps
	topo     topology
	cache    float64 // cache time of the agent in seconds; 0 = it does not say
	topoDue  time.Time
	reported map[string]string // reason of each unresolved neighbour, as logged
}

// New makes one source a switch, in the order of the inventory. It opens nothing. The configuration is complete and
// valid.
func New(f config.Fabric, log *slog.Logger) ([]*Source, error) {
	inv, err := newInventory(f)
	if err != nil {
		return nil, err
	}
	var sources []*Source
	for i, sw := range f.Switches {
		ports, err := regexp.Compile("^(?:" + sw.Ports + ")$")
		if err != nil {
			return nil, fmt.Errorf("$.switches[%d].ports: %w", i, err)
		}
		credentials, endpoint := f.Credentials[sw.Credentials], sw.Endpoint()
		sources = append(sources, &Source{
			fabric: f.Name, sw: sw, topoEvery: f.Topology, ports: ports, inv: inv, log: log, now: time.Now,
			dial:  func() (client, error) { return dial(endpoint, credentials, f.Timeout, f.Retries) },
			flaps: map[string]flaps{}, reported: map[string]string{},
		})
	}
	return sources, nil
}

// Name is "snmp/" and the switch's name.
func (s *Source) Name() string { return "snmp/" + s.sw.Name }

// Read polls the switch once. A switch that does not answer, or that is another one than the inventory says, gives
// trainyard_switch_up 0 and nothing else beside the error. If only LLDP or BGP fails, the rest is given with the error.
func (s *Source) Read(ctx context.Context) ([]source.Sample, error) {
	began := s.now()
	r, err := s.poll(ctx)
	if err != nil && s.client != nil {
		err = errors.Join(err, s.client.close())
		s.client = nil
	}
	if err != nil {
		err = fmt.Errorf("poll switch %s at %s: %w", s.sw.Name, s.sw.Endpoint(), err)
	}
	var up float64
	var samples []source.Sample
	if r != nil {
		up, samples = 1, s.samples(r)
	}
	return append(samples,
		source.New("trainyard_switch_up", up, s.fabric, s.sw.Name),
		source.New("trainyard_switch_poll_duration_seconds", s.now().Sub(began).Seconds(), s.fabric, s.sw.Name)), err
}

// reading is what one poll gave.
type reading struct {
	at    time.Time // of the port counters: the middle of the walk that read them
	clock clock
	ports []port
	as    uint64
	peers []bgpPeer
}

// poll asks for the counters first: they must be taken as regularly as possible. A nil reading means that there is
// nothing to show; a reading beside an error is complete but for what the error names.
func (s *Source) poll(ctx context.Context) (*reading, error) {
	if s.client == nil {
		c, err := s.dial()
		if err != nil {
			return nil, err
		}
		s.client = c
	}
	var r reading
	var err error
	if r.clock, err = readClock(ctx, s.client); err != nil {
		return nil, err
	}
	asked := s.now()
	all, err := readPorts(ctx, s.client)
	if err != nil {
		return nil, err
	}
	r.at = asked.Add(s.now().Sub(asked) / 2)
	r.ports = s.wanted(all)
	var partial []error
	r.as, r.peers, err = readBGP(ctx, s.client)
	partial = append(partial, err)
	partial = append(partial, s.refreshTopology(ctx, all))

	if s.otherSwitch() {
		return nil, fmt.Errorf("the agent is that of chassis %s, the inventory says %s", s.topo.chassis, s.sw.ChassisID)
	}
	restarted := s.polled && r.clock.restartedSince(s.clock)
	s.clock, s.polled = r.clock, true
	for _, p := range r.ports {
		s.flaps[p.name] = s.flaps[p.name].next(p, restarted)
	}
	return &r, errors.Join(partial...)
}

// otherSwitch says that the agent is not the switch that the inventory names: an address was given to another box.
func (s *Source) otherSwitch() bool {
	return s.sw.ChassisID != "" && s.topo.chassis != "" && !strings.EqualFold(s.sw.ChassisID, s.topo.chassis)
}

func (s *Source) wanted(ports []port) []port {
	var kept []port
	for _, p := range ports {
		if !p.loopback && s.ports.MatchString(p.name) {
			kept = append(kept, p)
		}
	}
	return kept
}

// cacheTime is net-snmp's nsCacheTimeout of ifTable, in seconds.
var cacheTime = mustOID("1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2")

// refreshTopology reads the topology when it is due. After a failure what was read before stays, and the next try
// waits for its time too: an agent whose LLDP part hangs must not spoil every poll.
func (s *Source) refreshTopology(ctx context.Context, ports []port) error {
	now := s.now()
	if now.Before(s.topoDue) {
		return nil
	}
	s.topoDue = now.Add(s.topoEvery)
	topo, err := readTopology(ctx, s.client, ports)
	if err != nil {
		return err
	}
	s.topo = topo
	if s.otherSwitch() {
		return nil // poll refuses it
	}
	s.inv.learn(s.sw, ports, topo.neighbours)

	vbs, err := s.client.get(ctx, []oid{cacheTime})
	if err != nil {
		return fmt.Errorf("read the agent's cache time: %w", err)
	}
	if len(vbs) == 1 {
		if n, ok := vbs[0].value.number(); ok && float64(n) != s.cache {
			s.cache = float64(n)
			if s.sw.Interval <= time.Duration(n)*time.Second {
				s.log.Warn("the agent caches its counters for as long as a poll takes to come round: rates will show steps",
					"switch", s.sw.Name, "interval", s.sw.Interval, "cache_seconds", n)
			}
		}
	}
	return nil
}

func (s *Source) samples(r *reading) []source.Sample {
	var samples []source.Sample
	add := func(name string, v float64, labels ...string) {
		samples = append(samples, source.New(name, v, append([]string{s.fabric, s.sw.Name}, labels...)...).ReadAt(r.at))
	}
	for _, p := range r.ports {
		for column, name := range portCounters {
			if v, ok := p.counters[column]; ok {
				add(name, float64(v), p.name)
			}
		}
		if p.speed > 0 {
			add("trainyard_switch_port_speed_bytes_per_second", float64(p.speed), p.name)
		}
		if p.hasState {
			add("trainyard_switch_port_up", number01(p.up), p.name)
			add("trainyard_switch_port_admin_up", number01(p.admin), p.name)
			add("trainyard_switch_port_last_change_seconds", r.clock.age(p.changed), p.name)
			add("trainyard_switch_port_flaps_total", float64(s.flaps[p.name].count), p.name)
		}
		for _, a := range s.topo.addresses[p.index] {
			add("trainyard_switch_port_address_info", 1, p.name, a.String())
		}
	}
	for _, p := range r.peers {
		add("trainyard_bgp_peer_established", number01(p.state == bgpEstablished), p.addr.String())
		add("trainyard_bgp_peer_transitions_total", float64(p.transitions), p.addr.String())
		add("trainyard_bgp_peer_info", 1, p.addr.String(), strconv.FormatUint(asn32(p.remoteAS), 10), s.portTowards(r.ports, p.addr))
	}
	asn := ""
	if r.as != 0 {
		asn = strconv.FormatUint(r.as, 10)
	}
	add("trainyard_switch_info", 1, strconv.Itoa(s.sw.Tier), asn, s.topo.chassis, s.sw.Balancing, s.sw.VRF)
	if s.cache > 0 {
		add("trainyard_switch_agent_cache_seconds", s.cache)
	}
	return append(samples, s.links()...)
}

func number01(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// portTowards finds the one port whose prefix holds the address; "" if there is none or more than one.
func (s *Source) portTowards(ports []port, a netip.Addr) string {
	found := ""
	for _, p := range ports {
		for _, prefix := range s.topo.addresses[p.index] {
			if prefix.Contains(a) && prefix.Addr() != a {
				if found != "" && found != p.name {
					return ""
				}
				found = p.name
			}
		}
	}
	return found
}

// links resolves the neighbours anew at each poll, since other switches' polls may have shown more meanwhile, and logs
// each reason for which one cannot be resolved once.
func (s *Source) links() []source.Sample {
	var samples []source.Sample
	reasons := map[string]string{}
	for _, l := range s.inv.resolve(s.sw, s.topo.neighbours) {
		if !s.ports.MatchString(l.from.Name) {
			continue
		}
		if l.reason != "" {
			reasons[l.from.Name] = l.reason
		}
		samples = append(samples, source.New("trainyard_link_info", 1, s.fabric, l.from.String(), s.sw.Name, l.from.Name,
			l.peerKind, l.peer, l.peerPort, l.peerLink, l.direction, l.ecmpGroup))
	}
	for _, n := range unknown(s.topo.neighbours) {
		reasons[n.local] = fmt.Sprintf("LLDP has the neighbour %q on the port %q, which is not among the ports that are read", n.sysName, n.local)
	}
	for _, port := range slices.Sorted(maps.Keys(reasons)) {
		if reason := reasons[port]; s.reported[port] != reason {
			s.log.Warn("neighbour not resolved", "switch", s.sw.Name, "port", port, "reason", reason)
		}
	}
	s.reported = reasons
	return append(samples, source.New("trainyard_link_unresolved", float64(len(reasons)), s.fabric, s.sw.Name))
}
