// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/trainyard/trainyard/actuator/decide"
	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/topo/topotest"
	"github.com/trainyard/trainyard/actuator/traffic"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
	"github.com/trainyard/trainyard/test/lab"
	"github.com/trainyard/trainyard/test/lab/ring"
)

// decision is a set of rings that collide, and the link that is to be relieved.
type decision struct {
	name   string
	target ident.Port
	jobs   []ringJob
}

type ringJob struct {
	id    string
	hosts []string
	spine string         // for all its connections that cross
	but   map[hop]string // save these
}

// hop is one rank's connections to the next on one rail.
type hop struct{ rank, rail int }

func (r ringJob) via(rank, rail, _ int) string {
	if s, ok := r.but[hop{rank, rail}]; ok {
		return s
	}
	return r.spine
}

// decisions are collisions of one link: all else of the two jobs is on different spines, so that moving one flow heals.
func decisions() []decision {
	port := func(leaf, name string) ident.Port { return ident.Port{Fabric: "lab", Device: leaf, Name: name} }
	a, b := []string{"n1", "n2", "n5", "n6"}, []string{"n3", "n4", "n7", "n8"}
	return []decision{
		{"from pod A to pod B on rail 0", port("l1", "sp1"), []ringJob{{"job-a", a, "s1", nil}, {"job-b", b, "s2", map[hop]string{{1, 0}: "s1"}}}},
		{"from pod B to pod A on rail 1", port("l4", "sp2"), []ringJob{{"job-c", a, "s2", nil}, {"job-d", b, "s1", map[hop]string{{3, 1}: "s2"}}}},
		{"a small ring and a larger one", port("l1", "sp1"), []ringJob{{"job-e", []string{"n1", "n5"}, "s1", nil}, {"job-f", b, "s2", map[hop]string{{1, 0}: "s1"}}}},
	}
}

// decided holds the errors of the forecasts of the product's own decisions.
type decided struct {
	open, full, steps summary
}

// decideAll lets the product decide on colliding rings, does what it chose, and compares its forecast with what came.
func decideAll(ctx context.Context, fair bool) (res decided, err error) {
	kind := "drop-tail"
	if fair {
		kind = "fair"
	}
	fmt.Printf("\n== decisions for training rings, %s links ==\n", kind)
	l, err := lab.Up(ctx, lab.Config{Fair: fair, ECN: true, FabricMbit: fabricMbit, NoAgents: true})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, d := range decisions() {
		if err := d.run(ctx, l, &res); err != nil {
			return res, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return res, nil
}

// window is how long loads and steps are averaged: about 15 congested steps.
const window = 4 * time.Second

func (d decision) run(ctx context.Context, l *lab.Lab, res *decided) (err error) {
	var jobs []*ring.Job
	defer func() {
		for _, j := range jobs {
			_, stopErr := j.Stop(ctx)
			err = errors.Join(err, stopErr)
		}
	}()
	baselines := map[string]float64{}
	for _, r := range d.jobs {
		j, err := ring.Start(ctx, l, ring.Spec{JobID: r.id, Hosts: r.hosts, Spine: r.via})
		if err != nil {
			return err
		}
		jobs = append(jobs, j)
		if len(jobs) == 1 { // the first has the fabric for itself; the others would take as long
			since := time.Now()
			if err := j.WaitSteps(ctx, 12); err != nil {
				return err
			}
			for _, r := range d.jobs {
				baselines[r.id] = j.Stats(since, time.Time{}).Mean.Seconds()
			}
		}
	}
	if err := sleep(ctx, 2*time.Second); err != nil { // until both are in the middle of it
		return err
	}
	before, err := observe(ctx, l, jobs, baselines)
	if err != nil {
		return err
	}
	p := decide.Propose(before, d.target, decide.Default(), nil, 1)
	fmt.Printf("%s: %s\n", d.name, p.Reason)
	if p.Chosen == nil {
		return errors.New("no plan was chosen for links that collide")
	}
	for _, s := range p.Chosen.Steps {
		gateway, err := firstHop(s.Route)
		if err != nil {
			return err
		}
		if err := l.SetRoute(s.Route.Switch, s.Route.Prefix, gateway); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.DelRoute(s.Route.Switch, s.Route.Prefix)) }()
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	after, err := observe(ctx, l, jobs, baselines)
	if err != nil {
		return err
	}
	compare(*p.Chosen, before, after, res)
	return nil
}

// observe measures for one window and says it as the product's own observation would.
func observe(ctx context.Context, l *lab.Lab, jobs []*ring.Job, baselines map[string]float64) (fleet.Snapshot, error) {
	const speed = fabricMbit * 1e6 / 8
	f := topotest.New(topotest.Options{UplinkBytes: speed})
	ports := make([]ident.Port, 0, len(f.Links))
	for p := range f.Links {
		ports = append(ports, p)
	}
	begin := time.Now()
	first, err := counters(l, ports)
	if err != nil {
		return fleet.Snapshot{}, err
	}
	if err := sleep(ctx, window); err != nil {
		return fleet.Snapshot{}, err
	}
	last, err := counters(l, ports)
	if err != nil {
		return fleet.Snapshot{}, err
	}
	end := time.Now()
	took := end.Sub(begin).Seconds()
	s := fleet.Snapshot{At: end, Fabric: f, Links: map[ident.Port]fleet.LinkLoad{}, NICs: map[netip.Addr]fleet.NICLoad{}, Nodes: map[string]fleet.NodeSignals{}}
	for _, p := range ports {
		s.Links[p] = fleet.LinkLoad{BytesPerSecond: float64(last[p]-first[p]) / took}
	}
	for a, n := range f.NICs {
		s.NICs[a] = fleet.NICLoad{TransmitBytesPerSecond: s.Links[n.Port()].BytesPerSecond, ReceiveBytesPerSecond: s.Links[n.Attached].BytesPerSecond}
		s.Nodes[n.Node] = fleet.NodeSignals{}
	}
	for _, j := range jobs {
		s.Jobs = append(s.Jobs, told(l, j, begin, end, baselines[j.Spec.JobID]))
	}
	return s, nil
}

// told is a job as its reports tell of it.
func told(l *lab.Lab, j *ring.Job, begin, end time.Time, baseline float64) traffic.Job {
	st := j.Stats(begin, end)
	took := end.Sub(begin).Seconds()
	out := traffic.Job{
		ID: j.Spec.JobID, Gang: j.Spec.Gang, Collective: "ring", Connections: j.Spec.Connections, StepSeconds: st.Mean.Seconds(),
		BaselineStepSeconds: baseline, CollectiveSeconds: st.Collective.Seconds(), StepsPerSecond: float64(st.Steps) / took,
	}
	for rank, host := range j.Spec.Hosts {
		h, _ := l.Host(host)
		r := traffic.Rank{Rank: rank, Node: host, Addrs: map[int]netip.Addr{}, ComputeSeconds: st.Compute.Seconds()}
		for _, rail := range j.Spec.Rails {
			r.Addrs[rail] = h.NICs[rail].Addr
		}
		out.Ranks = append(out.Ranks, r)
	}
	for range j.Spec.Rails { // all ranks send alike, half of it on each rail
		out.BytesPerSecondByRail = append(out.BytesPerSecondByRail, float64(st.Bytes)/took/float64(len(j.Spec.Hosts)*len(j.Spec.Rails)))
	}
	return out
}

// firstHop turns a pin's recursive next hop (the leaf's own address on the last link, 10.0.<10 leaf + spine>.0) into the
// neighbour that the kernel of the pinned leaf knows: the same spine's address on that leaf's uplink.
func firstHop(r plan.Route) (netip.Addr, error) {
	if r.Kind != plan.Pin || len(r.NextHops) != 1 {
		return netip.Addr{}, fmt.Errorf("route %s: this bench carries out pins only", r)
	}
	spine := int(r.NextHops[0].Addr.As4()[2]) % 10
	leaf := int(r.Switch[1] - '0')
	return lab.LinkSubnet(leaf, spine).Addr().Next(), nil
}

func compare(p plan.Plan, before, after fleet.Snapshot, res *decided) {
	for _, f := range p.Forecast.Links {
		link := before.Fabric.Links[f.Link]
		if link.Direction != topo.Up && link.Direction != topo.Down || f.After.P50 < 0.05 {
			continue
		}
		got := after.Links[f.Link].BytesPerSecond / link.BytesPerSecond
		e := got/f.After.P50 - 1
		kind := "    "
		if f.After.P50 >= full {
			kind = "full"
			res.full = append(res.full, e)
		} else {
			res.open = append(res.open, e)
		}
		fmt.Printf("   %-10s %s  now %5.1f %%  forecast %5.1f %%  measured %5.1f %%  %+5.1f %%\n",
			f.Link.Device+":"+f.Link.Name, kind, 100*f.Now, 100*f.After.P50, 100*got, 100*e)
	}
	for _, f := range p.Forecast.Jobs {
		for _, j := range after.Jobs {
			if j.ID == f.JobID {
				e := j.StepSeconds/f.After.P50 - 1
				res.steps = append(res.steps, e)
				fmt.Printf("   %-10s step  now %4.0f ms  forecast %4.0f ms (%.0f..%.0f)  measured %4.0f ms  %+5.1f %%\n",
					f.JobID, 1e3*f.StepSeconds, 1e3*f.After.P50, 1e3*f.After.P10, 1e3*f.After.P90, 1e3*j.StepSeconds, 100*e)
			}
		}
	}
}
