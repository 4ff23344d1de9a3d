// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"

	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/route"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/traffic"
)

// diagnose finds the cause before any cure is thought of, in the order in which causes exclude each other: what is
// broken, who cannot take its traffic, who is late by itself, where too many meet at one end; only then whether
// the link is congested at all, and why.
func (c *inquiry) diagnose() fault.Diagnosis {
	for _, find := range []func() *fault.Diagnosis{
		c.unmeasured, c.sickTarget, c.slowReceiver, c.straggler, c.lastHop, c.notCongested, c.notHashed, c.unexplained, c.incast, c.lostCapacity, c.oversubscribed,
	} {
		if d := find(); d != nil {
			d.Evidence = append(d.Evidence, c.context()...)
			return *d
		}
	}
	d := fault.Diagnosis{
		Cause: fault.HashCollision, Culprit: c.target.String(),
		Reason: fmt.Sprintf("link %s is %s used while its %d live peers are %s used on average: the hash put too many flows on it (%s)",
			c.target, percent(c.use), c.livePeers, percent(c.peers), c.expl.Reason),
	}
	d.Evidence = append(d.Evidence, c.context()...)
	return d
}

// context is the evidence that every diagnosis shows: how busy the link and its peers are, how slow the jobs.
func (c *inquiry) context() []fault.Evidence {
	var out []fault.Evidence
	if !math.IsNaN(c.use) {
		out = append(out, fault.Evidence{What: "use of link " + c.target.String(), Value: c.use, Limit: c.limits.BusyUse, Unit: "ratio"})
	}
	if c.livePeers > 0 {
		out = append(out, fault.Evidence{What: "use over the mean of its live peers", Value: min(c.use/max(c.peers, 1e-9), 1000), Limit: c.limits.PeerRatio, Unit: "ratio"})
	}
	for _, j := range c.crossing {
		if j.BaselineStepSeconds > 0 {
			out = append(out, fault.Evidence{What: "step of " + j.ID + " over its baseline", Value: j.StepSeconds / j.BaselineStepSeconds, Limit: c.limits.VictimSlowdown, Unit: "ratio"})
		}
	}
	return out
}

func (c *inquiry) unmeasured() *fault.Diagnosis {
	if !math.IsNaN(c.use) {
		return nil
	}
	return &fault.Diagnosis{Cause: fault.Unknown, Culprit: c.target.String(), Reason: fmt.Sprintf("the load of link %s is not measured: nothing can be said about it", c.target)}
}

// sickTarget looks at both directions of the target's cable: errors of one direction are counted at either end.
func (c *inquiry) sickTarget() *fault.Diagnosis {
	if what, ev := c.sickness(c.id); what != "" {
		return &fault.Diagnosis{Cause: fault.SickLink, Culprit: c.target.String(), Reason: what + ": drain and repair it, moving single flows would not help", Evidence: ev}
	}
	return nil
}

// sickness says in words what is wrong with a cable, "" when nothing is.
func (c *inquiry) sickness(id topo.LinkID) (string, []fault.Evidence) {
	l := c.g.Link(id)
	here, back := c.s.Links[l.From], c.s.Links[l.To]
	errs, flaps := max(here.ErrorsPerSecond, back.ErrorsPerSecond), max(here.Flaps, back.Flaps)
	ev := []fault.Evidence{
		{What: "errors on link " + l.From.String(), Value: errs, Limit: c.limits.ErrorsPerSecond, Unit: "per second"},
		{What: "flaps of link " + l.From.String(), Value: flaps, Limit: c.limits.Flaps, Unit: "count"},
	}
	switch {
	case errs > c.limits.ErrorsPerSecond:
		return fmt.Sprintf("link %s has %.1f errors per second (limit %.1f)", l.From, errs, c.limits.ErrorsPerSecond), ev
	case flaps > c.limits.Flaps:
		return fmt.Sprintf("link %s went down %.0f times lately (limit %.0f)", l.From, flaps, c.limits.Flaps), ev
	}
	return "", nil
}

// slowReceiver looks at every NIC of the jobs that may cross the target: in a ring one receiver that does not keep
// up holds all, and its pauses fill links that are healthy.
func (c *inquiry) slowReceiver() *fault.Diagnosis {
	worst := 0.0
	var d *fault.Diagnosis
	late, usual := c.late(), c.usualZeroWindows()
	for _, a := range c.receivers() {
		nic := c.s.Fabric.NICs[a]
		if p := c.s.NICs[a].PauseRatio; p > c.limits.PauseRatio && p/c.limits.PauseRatio > worst {
			worst = p / c.limits.PauseRatio
			d = &fault.Diagnosis{
				Cause: fault.SlowReceiver, Culprit: nic.Node,
				Reason:   fmt.Sprintf("nic %s of node %s pauses its switch %s of the time (limit %s): it does not take its traffic, and moving routes would spread the back-pressure", nic.Device, nic.Node, percent(p), percent(c.limits.PauseRatio)),
				Evidence: []fault.Evidence{{What: "pause ratio of " + nic.Port().String(), Value: p, Limit: c.limits.PauseRatio, Unit: "ratio"}},
			}
		}
		// A rank that computes does not read: what a straggler does to its senders is its own cause. And where all
		// nodes of the jobs show the same, it is how these jobs work and no node is to blame.
		z := c.s.Nodes[nic.Node].ZeroWindowsPerSecond
		if late != nil && late.node == nic.Node || z <= 2*usual {
			continue
		}
		if z > c.limits.ZeroWindowsPerSecond && z/max(c.limits.ZeroWindowsPerSecond, 1e-9) > worst {
			worst = z / max(c.limits.ZeroWindowsPerSecond, 1e-9)
			d = &fault.Diagnosis{
				Cause: fault.SlowReceiver, Culprit: nic.Node,
				Reason:   fmt.Sprintf("node %s told its senders to stop %.0f times per second (limit %.0f): it does not read what it is sent, and moving routes would not help", nic.Node, z, c.limits.ZeroWindowsPerSecond),
				Evidence: []fault.Evidence{{What: "zero windows of node " + nic.Node, Value: z, Limit: c.limits.ZeroWindowsPerSecond, Unit: "per second"}},
			}
		}
	}
	return d
}

// receivers are the NICs of the jobs that may cross the target, in order of address.
func (c *inquiry) receivers() []netip.Addr {
	set := map[netip.Addr]bool{}
	for _, j := range c.crossing {
		for _, r := range j.Ranks {
			for _, a := range r.Addrs {
				set[a] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(set), netip.Addr.Compare)
}

// usualZeroWindows is the median over the nodes of the jobs that may cross the target.
func (c *inquiry) usualZeroWindows() float64 {
	rate := map[string]float64{}
	for _, a := range c.receivers() {
		n := c.s.Fabric.NICs[a].Node
		rate[n] = c.s.Nodes[n].ZeroWindowsPerSecond
	}
	return median(slices.Collect(maps.Values(rate)))
}

// straggling is a rank that is late by itself.
type straggling struct {
	job    traffic.Job
	rank   traffic.Rank
	node   string
	median float64 // compute seconds of its job
}

// late looks for a rank that computes much longer than the median of its job. A large ratio of a small time does
// not count, and of two ranks neither is the odd one.
func (c *inquiry) late() *straggling {
	for _, j := range c.crossing {
		var times []float64
		for _, r := range j.Ranks {
			if r.ComputeSeconds > 0 { // else it is not reported
				times = append(times, r.ComputeSeconds)
			}
		}
		if len(times) < 3 {
			continue
		}
		mid := median(times)
		slowest := slices.MaxFunc(j.Ranks, func(a, b traffic.Rank) int { return cmp.Compare(a.ComputeSeconds, b.ComputeSeconds) })
		excess := slowest.ComputeSeconds - mid
		if mid > 0 && slowest.ComputeSeconds > c.limits.StragglerRatio*mid && excess >= c.limits.StragglerShare*j.StepSeconds {
			return &straggling{j, slowest, slowest.Node, mid}
		}
	}
	return nil
}

// straggler: the others wait for one rank, not for the network.
func (c *inquiry) straggler() *fault.Diagnosis {
	l := c.late()
	if l == nil {
		return nil
	}
	return &fault.Diagnosis{
		Cause: fault.Straggler, Culprit: fmt.Sprintf("rank %d of %s on node %s", l.rank.Rank, l.job.ID, l.node),
		Reason: fmt.Sprintf("rank %d of %s on node %s computes %s per step, the median of its job is %s: the others wait for it, not for the network",
			l.rank.Rank, l.job.ID, l.node, seconds(l.rank.ComputeSeconds), seconds(l.median)),
		Evidence: []fault.Evidence{{What: fmt.Sprintf("compute time of rank %d of %s over the median", l.rank.Rank, l.job.ID), Value: l.rank.ComputeSeconds / l.median, Limit: c.limits.StragglerRatio, Unit: "ratio"}},
	}
}

// lastHop: the link to or from a node has no alternative, whoever uses it.
func (c *inquiry) lastHop() *fault.Diagnosis {
	l := c.g.Link(c.id)
	if l.Direction != topo.Access && l.Direction != topo.Host || c.use <= c.limits.BusyUse {
		return nil
	}
	n := 0
	for _, f := range c.flows {
		if f.Paths[0].Crosses(c.id) {
			n++
		}
	}
	node, way := l.To.Device, "to"
	if l.Direction == topo.Host {
		node, way = l.From.Device, "from"
	}
	return &fault.Diagnosis{
		Cause: fault.Incast, Culprit: node,
		Reason:   fmt.Sprintf("link %s is the last hop %s node %s and %s used by %d flows: no other path leads there", c.target, way, node, percent(c.use), n),
		Evidence: []fault.Evidence{{What: "flows on the last hop", Value: float64(n), Limit: 1, Unit: "count"}},
	}
}

// stillBusy is the share of the busy limit down to which a link counts as busy here. That it was over the limit, and
// for some iterations, the alert has said; the question is only whether it is over, and two windows of one counter
// differ.
const stillBusy = 0.85

// notCongested: busy is not congested. A link must be busy, busier than its live peers, and hurt somebody.
func (c *inquiry) notCongested() *fault.Diagnosis {
	no := func(format string, args ...any) *fault.Diagnosis {
		return &fault.Diagnosis{Cause: fault.NotCongested, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.use <= stillBusy*c.limits.BusyUse:
		return no("link %s is %s used now (limit %s)", c.target, percent(c.use), percent(stillBusy*c.limits.BusyUse))
	case c.livePeers > 0 && c.use <= c.limits.PeerRatio*c.peers:
		return no("link %s is %s used and its %d live peers %s on average: the load is balanced (limit %.1f times)", c.target, percent(c.use), c.livePeers, percent(c.peers), c.limits.PeerRatio)
	}
	known := 0
	for _, j := range c.crossing {
		if j.BaselineStepSeconds <= 0 || j.StepSeconds > c.limits.VictimSlowdown*j.BaselineStepSeconds {
			return nil // a victim, or one that cannot be ruled out
		}
		known++
	}
	for _, a := range c.receivers() {
		if c.s.NICs[a].ECNPerSecond > 0 {
			return nil
		}
	}
	if known == 0 {
		return nil // nobody known crosses it: that is for unexplained to say
	}
	return no("link %s is %s used, but no job that may cross it is slower than %.2f times its baseline and no nic receives marks", c.target, percent(c.use), c.limits.VictimSlowdown)
}

// notHashed: on a switch that balances by anything but a hash of the flow, flows have no fixed path to find out.
func (c *inquiry) notHashed() *fault.Diagnosis {
	for _, f := range c.flows {
		if !mayCross(f, c.id) || len(f.Paths) < 2 {
			continue
		}
		leaf, _ := c.g.Leaf(f.Src) // it has paths, so it has a leaf
		if b := c.s.Fabric.Switches[leaf].Balancing; b != topo.BalancingHash {
			return &fault.Diagnosis{Cause: fault.Unknown, Culprit: leaf, Reason: fmt.Sprintf("flows have no fixed path: %v", route.MayPin(c.s.Fabric, leaf))}
		}
	}
	return nil
}

func (c *inquiry) unexplained() *fault.Diagnosis {
	if c.expl.Fits {
		return nil
	}
	w := c.expl.Worst
	d := &fault.Diagnosis{Cause: fault.UnexplainedTraffic, Reason: c.expl.Reason}
	if !c.expl.Missing.IsZero() {
		d.Culprit = c.expl.Missing.String()
	}
	if c.expl.Missing.IsZero() && !w.Link.IsZero() {
		d.Culprit = w.Link.String()
		d.Evidence = []fault.Evidence{
			{What: "measured load of link " + w.Link.String(), Value: w.Measured, Limit: w.Modelled, Unit: "bytes per second"},
		}
	}
	return d
}

// incast: everything on the hot link ends at one NIC, from several senders. Another spine leads to the same NIC.
func (c *inquiry) incast() *fault.Diagnosis {
	var end netip.Addr
	senders := map[netip.Addr]bool{}
	for _, a := range c.expl.Samples {
		for i, f := range c.flows {
			for _, p := range a[i] {
				if !f.Paths[p].Crosses(c.id) || f.BytesPerSecond <= 0 {
					continue
				}
				if end.IsValid() && end != f.Dst {
					return nil
				}
				end, senders[f.Src] = f.Dst, true
			}
		}
	}
	if len(senders) < 2 {
		return nil
	}
	nic := c.s.Fabric.NICs[end]
	return &fault.Diagnosis{
		Cause: fault.Incast, Culprit: nic.Node,
		Reason:   fmt.Sprintf("all %d senders on link %s send to nic %s of node %s: they would meet again on its last hop", len(senders), c.target, nic.Device, nic.Node),
		Evidence: []fault.Evidence{{What: "senders to " + nic.Port().String(), Value: float64(len(senders)), Limit: 1, Unit: "count"}},
	}
}

// lostCapacity: a member of the hash group is down or slower, here or further along the paths.
func (c *inquiry) lostCapacity() *fault.Diagnosis {
	for _, p := range c.g.Peers(c.id) {
		l := c.g.Link(p)
		if !l.Up {
			return &fault.Diagnosis{
				Cause: fault.LostCapacity, Culprit: l.From.String(),
				Reason:   fmt.Sprintf("link %s, which shares the load with %s, is down", l.From, c.target),
				Evidence: []fault.Evidence{{What: "live links of group " + l.ECMPGroup, Value: float64(c.livePeers + 1), Limit: float64(len(c.g.Peers(c.id)) + 1), Unit: "count"}},
			}
		}
	}
	for _, p := range append([]topo.LinkID{c.id}, c.g.Peers(c.id)...) {
		l := c.g.Link(p)
		fastest := l.BytesPerSecond
		for _, q := range append([]topo.LinkID{c.id}, c.g.Peers(c.id)...) {
			fastest = max(fastest, c.g.Link(q).BytesPerSecond)
		}
		const slower = 0.99
		if l.BytesPerSecond < slower*fastest {
			return &fault.Diagnosis{
				Cause: fault.LostCapacity, Culprit: l.From.String(),
				Reason:   fmt.Sprintf("link %s runs at %s of the speed of the fastest link of its group", l.From, percent(l.BytesPerSecond/fastest)),
				Evidence: []fault.Evidence{{What: "speed of link " + l.From.String(), Value: l.BytesPerSecond, Limit: fastest, Unit: "bytes per second"}},
			}
		}
	}
	// Far away: a way over a peer may be dead although the peer is up.
	for _, f := range c.flows {
		if !mayCross(f, c.id) || len(f.Paths) == 0 || len(f.Paths) > c.livePeers {
			continue
		}
		leaf, _ := c.g.Leaf(f.Src)
		return &fault.Diagnosis{
			Cause: fault.LostCapacity, Culprit: leaf,
			Reason:   fmt.Sprintf("only %d of %d ways from %s to %s are alive", len(f.Paths), c.livePeers+1, leaf, c.s.Fabric.NICs[f.Dst].Attached.Device),
			Evidence: []fault.Evidence{{What: "live ways from " + leaf, Value: float64(len(f.Paths)), Limit: float64(c.livePeers + 1), Unit: "count"}},
		}
	}
	return nil
}

// oversubscribed: there is no live peer at all, and none was lost: more traffic than the only way can carry.
func (c *inquiry) oversubscribed() *fault.Diagnosis {
	if c.livePeers > 0 {
		return nil
	}
	return &fault.Diagnosis{
		Cause: fault.Oversubscribed, Culprit: c.target.String(),
		Reason: fmt.Sprintf("link %s is %s used and the only way for its traffic", c.target, percent(c.use)),
	}
}

func mayCross(f traffic.Routed, id topo.LinkID) bool {
	for _, a := range f.Allowed() {
		if f.Paths[a].Crosses(id) {
			return true
		}
	}
	return false
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// seconds spells a duration that may be a millisecond or a minute.
func seconds(v float64) string {
	if math.Abs(v) < 1 {
		return fmt.Sprintf("%.0f ms", 1e3*v)
	}
	return fmt.Sprintf("%.2f s", v)
}
