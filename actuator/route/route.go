// SPDX-License-Identifier: Apache-2.0

// Package route lists what could be done about a link: pins of single flows to another live path, weights for
// flows of several connections, and small combinations of them, each as a plan of ordered steps. It says in words
// what it left out and why. It forecasts nothing and chooses nothing.
package route

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/traffic"
)

// Bounds on the interruption that a step may cause, in seconds, when the path that it uses dies: next-hop tracking
// drops a pin by itself, weights have to wait for the hold time of their session. Both include
// what the same cut costs without us.
const (
	PinBlackoutSeconds     = 0.3
	WeightsBlackoutSeconds = 3.0
)

// WeightedConnections is the least number of connections of a flow that makes weights worth saying: with fewer,
// hashing puts them almost anywhere.
const WeightedConnections = 4

// Budget bounds what a plan may write.
type Budget struct {
	MaxSteps           int // writes of one plan
	MaxRoutesPerSwitch int // routes of ours on one switch, with those that are there already
	MaxNextHops        int // of one weighted route: ECMP group size
	MinPathsLeft       int // live paths for the prefix after the route's own path died
	MaxAlternatives    int // other paths tried per flow, those with most room first
}

// Move is one route that could be written, as a candidate step.
type Move struct {
	Step      plan.Step
	PathsLeft int
	Blackout  float64 // seconds
	label     string  // for people
	room      float64
}

// Key identifies the prefix that the move is about: a plan has one move per key.
func (m Move) Key() plan.RouteKey { return m.Step.Route.Key() }

// Field is the ground that candidates are looked for on.
type Field struct {
	Graph   *topo.Graph
	Flows   []traffic.Routed
	Loads   []float64 // by link, bytes/s; NaN = not measured
	Current []plan.Route
	Budget  Budget
	Sick    map[topo.LinkID]string // links that nothing may be led to, with what is wrong with them
}

// MayPin says why traffic that enters the fabric at the switch must not be pinned, or nil. A switch that moves
// flows by itself would fight the pin or make it pointless, and a route in the wrong VRF does nothing or harm.
func MayPin(f topo.Fabric, sw string) error {
	s, ok := f.Switches[sw]
	switch {
	case !ok:
		return fmt.Errorf("switch %s is not in the inventory", sw)
	case s.Balancing == "" || s.Balancing == topo.BalancingUnknown:
		return fmt.Errorf("switch %s: how it balances load is not known, so its routes are left alone", sw)
	case s.Balancing != topo.BalancingHash:
		return fmt.Errorf("switch %s balances by %q, not by hash: it moves flows itself, so its routes are left alone", sw, s.Balancing)
	case s.VRF == "":
		return fmt.Errorf("switch %s: the VRF of the training prefixes is not known, so its routes are left alone", sw)
	case s.VRF != "default":
		return fmt.Errorf("switch %s carries the training prefixes in VRF %q: only the default VRF may be pinned", sw, s.VRF)
	}
	return nil
}

// Off lists the moves that take a flow which may cross the link to paths that avoid it, in a stable order; and, in
// words, what was left out. Flows with the same source leaf and destination move together: a host route takes
// all traffic of that leaf to that NIC.
func (f Field) Off(link topo.LinkID) ([]Move, []string) {
	var moves []Move
	var refused []string
	refuse := func(format string, args ...any) {
		if s := fmt.Sprintf(format, args...); !slices.Contains(refused, s) {
			refused = append(refused, s)
		}
	}
	count := map[string]int{}
	current := map[plan.RouteKey]plan.Route{}
	for _, r := range f.Current {
		count[r.Switch]++
		current[r.Key()] = r
	}
	done := map[plan.RouteKey]bool{}
	for _, fl := range f.Flows {
		if !mayCross(fl, link) || fl.BytesPerSecond <= 0 {
			continue
		}
		leaf, err := f.Graph.Leaf(fl.Src)
		if err != nil {
			refuse("%v", err)
			continue
		}
		key := plan.RouteKey{Switch: leaf, Prefix: netip.PrefixFrom(fl.Dst, fl.Dst.BitLen())}
		if done[key] {
			continue
		}
		done[key] = true
		if err := MayPin(f.Graph.Fabric, leaf); err != nil {
			refuse("%v", err)
			continue
		}
		before, has := current[key]
		if !has && f.Budget.MaxRoutesPerSwitch > 0 && count[leaf] >= f.Budget.MaxRoutesPerSwitch {
			refuse("switch %s holds %d of our routes already, at most %d", leaf, count[leaf], f.Budget.MaxRoutesPerSwitch)
			continue
		}
		var prior *plan.Route
		if has {
			prior = &before
		}
		others, sick := f.alternatives(fl, link)
		for _, why := range sick {
			refuse("traffic of %s to %s: %s", leaf, fl.Dst, why)
		}
		if len(others) == 0 {
			refuse("traffic of %s to %s: the only usable path is over %s", leaf, fl.Dst, f.Graph.Link(link).From)
			continue
		}
		for _, p := range others {
			m, err := f.pin(key, fl, p, prior)
			if err != nil {
				refuse("traffic of %s to %s over %s: %v", leaf, fl.Dst, p.Via, err)
				continue
			}
			if has && before.String() == m.Step.Route.String() {
				continue // it is there already
			}
			moves = append(moves, m)
		}
		if fl.Connections >= WeightedConnections {
			m, err := f.weigh(key, fl, prior)
			if err != nil {
				refuse("weights for traffic of %s to %s: %v", leaf, fl.Dst, err)
				continue
			}
			if !has || before.String() != m.Step.Route.String() {
				moves = append(moves, m)
			}
		}
	}
	return moves, refused
}

func mayCross(f traffic.Routed, link topo.LinkID) bool {
	for _, a := range f.Allowed() {
		if f.Paths[a].Crosses(link) {
			return true
		}
	}
	return false
}

// alternatives are the live paths of the flow that avoid the link, those with most room first, and what is wrong
// with those that were left out.
func (f Field) alternatives(fl traffic.Routed, link topo.LinkID) (out []topo.Path, sick []string) {
paths:
	for _, p := range fl.Paths {
		if p.Crosses(link) {
			continue
		}
		for _, id := range p.Links {
			if why, bad := f.Sick[id]; bad {
				sick = append(sick, why)
				continue paths
			}
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b topo.Path) int {
		switch d := f.room(b) - f.room(a); {
		case d > 0:
			return 1
		case d < 0:
			return -1
		}
		return 0
	})
	if n := f.Budget.MaxAlternatives; n > 0 && len(out) > n {
		out = out[:n]
	}
	return out, sick
}

// room is the least free capacity of the fabric links of a path, bytes/s. A link that is not measured has none.
func (f Field) room(p topo.Path) float64 {
	least := 0.0
	for i, id := range p.Links[1 : len(p.Links)-1] {
		free := 0.0
		if load := f.Loads[id]; !math.IsNaN(load) {
			free = max(0, f.Graph.Link(id).BytesPerSecond-load)
		}
		if i == 0 || free < least {
			least = free
		}
	}
	return least
}

func (f Field) pin(key plan.RouteKey, fl traffic.Routed, p topo.Path, before *plan.Route) (Move, error) {
	hop, err := f.Graph.PinNextHop(p)
	if err != nil {
		return Move{}, err
	}
	left, err := f.Graph.PathsLeft(fl.Src, fl.Dst, p)
	if err != nil {
		return Move{}, err
	}
	if left < f.Budget.MinPathsLeft {
		return Move{}, fmt.Errorf("%d live paths left when this one dies, at least %d wanted", left, f.Budget.MinPathsLeft)
	}
	last := f.Graph.Link(p.Links[len(p.Links)-2])
	return Move{
		Step: plan.Step{
			Route:  plan.Route{Switch: key.Switch, Prefix: key.Prefix, Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: hop}}},
			Before: before,
			Why:    fmt.Sprintf("traffic of %s to %s (%s) takes %s, whose link %s down to the destination is up", key.Switch, f.name(fl.Dst), fl.Dst, p.Via, last.From),
		},
		PathsLeft: left,
		Blackout:  PinBlackoutSeconds,
		label:     fmt.Sprintf("pin traffic of %s to %s (%s) over %s", key.Switch, f.name(fl.Dst), fl.Dst, p.Via),
		room:      f.room(p),
	}, nil
}

func (f Field) name(a netip.Addr) string {
	n := f.Graph.Fabric.NICs[a]
	return n.Node + " " + n.Device
}

// weigh spreads the flow over all its live paths by the room that each has once the flow itself is taken out, in
// small integers.
func (f Field) weigh(key plan.RouteKey, fl traffic.Routed, before *plan.Route) (Move, error) {
	if n := f.Budget.MaxNextHops; n > 0 && len(fl.Paths) > n {
		return Move{}, fmt.Errorf("%d next hops, at most %d", len(fl.Paths), n)
	}
	most := 0.0
	rooms := make([]float64, len(fl.Paths))
	for i, p := range fl.Paths {
		rooms[i] = f.room(p)
		for _, a := range fl.Allowed() {
			if a == i { // what the flow itself takes there, on average, would be free
				rooms[i] += fl.BytesPerSecond / float64(len(fl.Allowed()))
			}
		}
		most = max(most, rooms[i])
	}
	if most <= 0 {
		return Move{}, fmt.Errorf("no path has room")
	}
	// Sixteen parts are as fine as the forecast deserves, and small groups spare the switch's tables.
	const parts = 16
	r := plan.Route{Switch: key.Switch, Prefix: key.Prefix, Kind: plan.Weights}
	var shares []string
	for i, p := range fl.Paths {
		w := int(rooms[i]/most*parts + 0.5)
		if w == 0 {
			continue
		}
		hop, err := f.Graph.DirectNextHop(p)
		if err != nil {
			return Move{}, err
		}
		r.NextHops = append(r.NextHops, plan.NextHop{Addr: hop, Weight: uint8(w)})
		shares = append(shares, fmt.Sprintf("%s %d", p.Via, w))
	}
	left := len(fl.Paths) - 1
	if left < f.Budget.MinPathsLeft {
		return Move{}, fmt.Errorf("%d live paths left when one dies, at least %d wanted", left, f.Budget.MinPathsLeft)
	}
	return Move{
		Step: plan.Step{
			Route: r, Before: before,
			Why: fmt.Sprintf("%d connections of %s to %s (%s) spread by the room that each path has", fl.Connections, key.Switch, f.name(fl.Dst), fl.Dst),
		},
		PathsLeft: left,
		Blackout:  WeightsBlackoutSeconds,
		label:     fmt.Sprintf("weigh traffic of %s to %s (%s) %s", key.Switch, f.name(fl.Dst), fl.Dst, strings.Join(shares, ", ")),
	}, nil
}

// Combine joins moves to a plan for the target, or says why they do not go together. Steps are ordered so that
// each new path is there before it is used and the emptiest is filled first; writes to one switch stand together,
// since only one switch of a tier changes at a time.
func (f Field) Combine(target topo.LinkID, moves ...Move) (plan.Plan, error) {
	p := plan.Plan{Target: f.Graph.Link(target).From}
	if n := f.Budget.MaxSteps; n > 0 && len(moves) > n {
		return p, fmt.Errorf("%d steps, at most %d", len(moves), n)
	}
	added := map[string]int{}
	for _, r := range f.Current {
		added[r.Switch]++
	}
	moves = slices.Clone(moves)
	slices.SortStableFunc(moves, func(a, b Move) int {
		switch {
		case a.Key().Switch != b.Key().Switch:
			if a.Key().Switch < b.Key().Switch {
				return -1
			}
			return 1
		case a.room > b.room:
			return -1
		case a.room < b.room:
			return 1
		}
		return a.Key().Prefix.Addr().Compare(b.Key().Prefix.Addr())
	})
	seen := map[plan.RouteKey]bool{}
	var labels []string
	for i, m := range moves {
		if seen[m.Key()] {
			return p, fmt.Errorf("two routes for %s", m.Key())
		}
		seen[m.Key()] = true
		if m.Step.Before == nil {
			added[m.Key().Switch]++
		}
		if n := f.Budget.MaxRoutesPerSwitch; n > 0 && added[m.Key().Switch] > n {
			return p, fmt.Errorf("switch %s would hold %d of our routes, at most %d", m.Key().Switch, added[m.Key().Switch], n)
		}
		p.Steps = append(p.Steps, m.Step)
		labels = append(labels, m.label)
		if i == 0 || m.PathsLeft < p.Forecast.PathsLeft {
			p.Forecast.PathsLeft = m.PathsLeft
		}
		p.Forecast.BlackoutBoundS = max(p.Forecast.BlackoutBoundS, m.Blackout)
	}
	p.Summary = strings.Join(labels, "; ")
	return p, nil
}
