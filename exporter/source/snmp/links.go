// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
	"github.com/trainyard/trainyard/exporter/config"
)

// link is a directed link from one of our ports, as far as it could be resolved.
type link struct {
	from      ident.Port
	peerKind  string // switch or node; "" = not resolved, and then the rest is what LLDP said
	peer      string
	peerPort  string
	peerLink  string
	direction string
	ecmpGroup string
	reason    string // why it is not resolved
}

// inventory resolves neighbours to objects of the configuration, and knows what the other switches' polls have said
// meanwhile. Its methods may be called from several goroutines.
type inventory struct {
	fabric   string
	switches map[string]config.Switch // by LLDP system name
	names    map[string]string
	pattern  *regexp.Regexp // nil = none

	mu    sync.Mutex
	ports map[string]map[string]bool   // ports of each switch that has answered
	seen  map[string]map[string]string // node -> reporting port -> chassis id
}

func newInventory(f config.Fabric) (*inventory, error) {
	inv := &inventory{fabric: f.Name, switches: map[string]config.Switch{}, names: f.Nodes.Names,
		ports: map[string]map[string]bool{}, seen: map[string]map[string]string{}}
	for _, s := range f.Switches {
		inv.switches[s.LLDPName] = s
	}
	if f.Nodes.Pattern != "" {
		var err error
		if inv.pattern, err = regexp.Compile("^(?:" + f.Nodes.Pattern + ")$"); err != nil {
			return nil, fmt.Errorf("$.nodes.pattern: %w", err)
		}
	}
	return inv, nil
}

// learn takes in what a poll of a switch has shown.
func (inv *inventory) learn(own config.Switch, ports []port, neighbours []neighbour) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	names := map[string]bool{}
	for _, p := range ports {
		names[p.name] = true
	}
	inv.ports[own.Name] = names
	for _, reporters := range inv.seen {
		maps.DeleteFunc(reporters, func(reporter, _ string) bool {
			p, err := ident.ParsePort(reporter)
			return err != nil || p.Device == own.Name
		})
	}
	for _, n := range neighbours {
		node, ok := inv.node(n.sysName)
		if !ok || n.port == "" {
			continue
		}
		if inv.seen[node] == nil {
			inv.seen[node] = map[string]string{}
		}
		inv.seen[node][ident.Port{Fabric: inv.fabric, Device: own.Name, Name: n.port}.String()] = n.chassis
	}
}

// node finds the node of an LLDP system name.
func (inv *inventory) node(sysName string) (string, bool) {
	if node, ok := inv.names[sysName]; ok {
		return node, true
	}
	if inv.pattern == nil {
		return "", false
	}
	m := inv.pattern.FindStringSubmatch(sysName)
	if len(m) < 2 || m[1] == "" {
		return "", false
	}
	return m[1], true
}

// resolve turns the neighbours of one switch into links, in order of port. Nothing is guessed: a neighbour that is not
// exactly one object of the inventory stays unresolved, with the reason.
func (inv *inventory) resolve(own config.Switch, neighbours []neighbour) []link {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	byPort := map[string][]neighbour{}
	for _, n := range neighbours {
		byPort[n.port] = append(byPort[n.port], n)
	}
	var links []link
	for _, name := range slices.Sorted(maps.Keys(byPort)) {
		if name == "" {
			continue // unknown says why
		}
		links = append(links, inv.one(own, name, byPort[name]))
	}
	// A peer's port at the end of two of our cables would be two links with one opposite direction.
	ends := map[string]int{}
	for _, l := range links {
		if l.peerKind != "" {
			ends[l.peerLink]++
		}
	}
	for i, l := range links {
		if ends[l.peerLink] > 1 && l.peerKind != "" {
			links[i] = unresolved(l.from, l.peer, l.peerPort, fmt.Sprintf("%d ports have the peer %s", ends[l.peerLink], l.peerLink))
		}
	}
	return links
}

// unknown lists the neighbours on ports that are not ports of the switch.
func unknown(neighbours []neighbour) []neighbour {
	return slices.DeleteFunc(slices.Clone(neighbours), func(n neighbour) bool { return n.port != "" })
}

func unresolved(from ident.Port, peer, peerPort, reason string) link {
	return link{from: from, peer: peer, peerPort: peerPort, reason: reason}
}

func (inv *inventory) one(own config.Switch, portName string, ns []neighbour) link {
	from := ident.Port{Fabric: inv.fabric, Device: own.Name, Name: portName}
	if _, err := ident.NewPort(from.Fabric, from.Device, from.Name); err != nil {
		return unresolved(from, "", "", err.Error())
	}
	if len(ns) > 1 {
		return unresolved(from, "", "", fmt.Sprintf("%d LLDP neighbours on one port", len(ns)))
	}
	n := ns[0]
	refuse := func(format string, args ...any) link {
		return unresolved(from, n.sysName, n.peerPort, fmt.Sprintf(format, args...))
	}
	sw, isSwitch := inv.switches[n.sysName]
	node, isNode := inv.node(n.sysName)
	switch {
	case isSwitch && isNode:
		return refuse("system name %q is a switch and a node of the inventory", n.sysName)
	case !isSwitch && !isNode:
		return refuse("system name %q is not in the inventory", n.sysName)
	case n.peerPort == "":
		return refuse("LLDP gives no name of the port of %s", n.sysName)
	}
	device := node
	if isSwitch {
		device = sw.Name
	}
	peer, err := ident.NewPort(inv.fabric, device, n.peerPort)
	if err != nil {
		return refuse("%v", err)
	}
	l := link{from: from, peer: device, peerPort: n.peerPort, peerLink: peer.String()}
	if isNode {
		for _, reporter := range slices.Sorted(maps.Keys(inv.seen[node])) {
			if chassis := inv.seen[node][reporter]; chassis != n.chassis {
				return refuse("node %s has the chassis id %s here and %s at %s", node, n.chassis, chassis, reporter)
			}
		}
		l.peerKind, l.direction = "node", "access"
		return l
	}
	switch ports := inv.ports[sw.Name]; {
	case sw.Name == own.Name:
		return refuse("the switch is its own neighbour")
	case sw.ChassisID != "" && !strings.EqualFold(sw.ChassisID, n.chassis):
		return refuse("switch %s has the chassis id %s, the inventory says %s", sw.Name, n.chassis, sw.ChassisID)
	case ports != nil && !ports[n.peerPort]:
		return refuse("switch %s has no port %s", sw.Name, n.peerPort)
	}
	l.peerKind = "switch"
	switch { // switches of one tier are peers of neither direction
	case sw.Tier > own.Tier:
		l.direction, l.ecmpGroup = "up", inv.fabric+"/"+own.Name+":up"
	case sw.Tier < own.Tier:
		l.direction, l.ecmpGroup = "down", inv.fabric+"/"+sw.Name+":down"
	}
	return l
}
