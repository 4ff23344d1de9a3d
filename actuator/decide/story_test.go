// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/decide"
	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/fleet/fleettest"
	"github.com/trainyard/trainyard/actuator/fleet/fleettest/story"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/topo/topotest"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// TestStories: each file is one yard whose truth is told in commands; the code under test sees only what would
// be measured. Commands:
//
//	fabric [spines=N] [uplink=MB/s] [host=MB/s] [balancing=B] [vrf=V]
//	job ID NODES compute=D MB=N [connections=N] [start=D] [nobaseline] [slow=RANK:D]
//	via JOB SRC>DST RAIL SPINE...        where the hash puts the connections
//	stream SRC>DST RAIL SPINE MB/s       traffic that nobody announces
//	cut PORT | speed PORT MB/s | errors PORT N | flaps PORT N | unmeasure PORT | load PORT MB/s
//	pause NODE RAIL RATIO | zero NODE N | marks NODE RAIL N | missing TEXT
//	baseline JOB D | reported JOB FACTOR the job's own figures, where they differ from the truth
//	nic NODE RAIL FACTOR                 a counter of the nic that is read late
//	route SWITCH NODE RAIL SPINE         one of our pins in force
//	limit min_paths_left=N ...
//	propose PORT
func TestStories(t *testing.T) {
	story.Run(t, "testdata/*.txt", func(t *testing.T) func(*testing.T, []string) string {
		y := &yard{Yard: fleettest.Yard{Fabric: topotest.Lab(), Via: map[string][]string{}}, limits: decide.Default()}
		return func(t *testing.T, commands []string) string {
			out := ""
			for _, c := range commands {
				out = y.do(t, strings.Fields(c))
			}
			return out
		}
	})
}

type yard struct {
	fleettest.Yard
	limits decide.Limits
	routes []plan.Route
	change []func(*fleet.Snapshot)
}

func (y *yard) do(t *testing.T, w []string) string {
	t.Helper()
	num := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("%v: %v", w, err)
		}
		return v
	}
	dur := func(s string) float64 {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("%v: %v", w, err)
		}
		return d.Seconds()
	}
	port := func(s string) ident.Port {
		p, err := ident.ParsePort("lab/" + s)
		if err != nil {
			t.Fatalf("%v: %v", w, err)
		}
		return p
	}
	later := func(f func(*fleet.Snapshot)) { y.change = append(y.change, f) }
	link := func(p ident.Port, f func(*fleet.LinkLoad)) {
		later(func(s *fleet.Snapshot) { l := s.Links[p]; f(&l); s.Links[p] = l })
	}
	nic := func(node, rail string, f func(*fleet.NICLoad)) {
		a := y.NIC(node, int(num(rail)))
		later(func(s *fleet.Snapshot) { n := s.NICs[a]; f(&n); s.NICs[a] = n })
	}
	opts := map[string]string{}
	for _, x := range w[1:] {
		k, v, _ := strings.Cut(x, "=")
		opts[k] = v
	}
	switch w[0] {
	case "fabric":
		o := topotest.Options{Balancing: topo.Balancing(opts["balancing"]), VRF: opts["vrf"]}
		if v, ok := opts["spines"]; ok {
			o.Spines = int(num(v))
		}
		if v, ok := opts["uplink"]; ok {
			o.UplinkBytes = 1e6 * num(v)
		}
		if v, ok := opts["host"]; ok {
			o.HostBytes = 1e6 * num(v)
		}
		y.Fabric = topotest.New(o)
	case "job":
		j := fleettest.Job{ID: w[1], Nodes: strings.Split(w[2], ","), Compute: dur(opts["compute"]), Bytes: 1e6 * num(opts["MB"])}
		if v, ok := opts["connections"]; ok {
			j.Connections = int(num(v))
		}
		if v, ok := opts["start"]; ok {
			j.Start = dur(v)
		}
		if v, ok := opts["slow"]; ok {
			r, d, _ := strings.Cut(v, ":")
			j.Slow = map[int]float64{int(num(r)): dur(d)}
		}
		_, j.NoBaseline = opts["nobaseline"]
		y.Jobs = append(y.Jobs, j)
	case "via":
		src, dst, _ := strings.Cut(w[2], ">")
		y.Via[fleettest.Key(w[1], src, dst, int(num(w[3])))] = w[4:]
	case "stream":
		src, dst, _ := strings.Cut(w[1], ">")
		r := int(num(w[2]))
		y.Streams = append(y.Streams, fleettest.Stream{Src: y.NIC(src, r), Dst: y.NIC(dst, r), Via: w[3], Rate: 1e6 * num(w[4])})
	case "cut":
		topotest.Cut(y.Fabric, port(w[1]))
	case "speed":
		p := port(w[1])
		for _, q := range []ident.Port{p, y.Fabric.Links[p].To} {
			l := y.Fabric.Links[q]
			l.BytesPerSecond = 1e6 * num(w[2])
			y.Fabric.Links[q] = l
		}
	case "errors":
		link(port(w[1]), func(l *fleet.LinkLoad) { l.ErrorsPerSecond = num(w[2]) })
	case "flaps":
		link(port(w[1]), func(l *fleet.LinkLoad) { l.Flaps = num(w[2]) })
	case "load":
		link(port(w[1]), func(l *fleet.LinkLoad) { l.BytesPerSecond = 1e6 * num(w[2]) })
	case "unmeasure":
		later(func(s *fleet.Snapshot) { delete(s.Links, port(w[1])) })
	case "pause":
		nic(w[1], w[2], func(n *fleet.NICLoad) { n.PauseRatio = num(w[3]) })
	case "marks":
		nic(w[1], w[2], func(n *fleet.NICLoad) { n.ECNPerSecond = num(w[3]) })
	case "baseline", "reported":
		later(func(s *fleet.Snapshot) {
			for i := range s.Jobs {
				if j := &s.Jobs[i]; j.ID == w[1] && w[0] == "baseline" {
					j.BaselineStepSeconds = dur(w[2])
				} else if j.ID == w[1] {
					for r := range j.BytesPerSecondByRail {
						j.BytesPerSecondByRail[r] *= num(w[2])
					}
				}
			}
		})
	case "nic":
		nic(w[1], w[2], func(n *fleet.NICLoad) { n.TransmitBytesPerSecond *= num(w[3]) })
	case "zero":
		later(func(s *fleet.Snapshot) { s.Nodes[w[1]] = fleet.NodeSignals{ZeroWindowsPerSecond: num(w[2])} })
	case "missing":
		later(func(s *fleet.Snapshot) { s.Problems = append(s.Problems, strings.Join(w[1:], " ")) })
	case "route":
		g := topo.NewGraph(y.Fabric)
		dst := y.NIC(w[2], int(num(w[3])))
		for _, n := range y.Fabric.NICs {
			if n.Attached.Device != w[1] {
				continue
			}
			paths, _ := g.Paths(n.Addr, dst)
			for _, p := range paths {
				if hop, err := g.PinNextHop(p); err == nil && p.Via == w[4] {
					r := plan.Route{Switch: w[1], Prefix: netip.PrefixFrom(dst, 32), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: hop}}}
					if !slices.ContainsFunc(y.routes, func(o plan.Route) bool { return o.Key() == r.Key() }) {
						y.routes = append(y.routes, r)
					}
				}
			}
		}
	case "limit":
		for k, v := range opts {
			switch k {
			case "min_paths_left":
				y.limits.MinPathsLeft = int(num(v))
			case "max_steps":
				y.limits.MaxSteps = int(num(v))
			case "max_routes_per_switch":
				y.limits.MaxRoutesPerSwitch = int(num(v))
			case "max_blackout_seconds":
				y.limits.MaxBlackoutSeconds = num(v)
			default:
				t.Fatalf("limit %q is not known to stories", k)
			}
		}
	case "propose":
		s := y.Snapshot()
		for _, f := range y.change {
			f(&s)
		}
		p := decide.Propose(s, port(w[1]), y.limits, y.routes, 1)
		// The journal keeps proposals as JSON, and a replay must come to the same one.
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("%v: %v", w, err)
		}
		if again, _ := json.Marshal(decide.Propose(s, port(w[1]), y.limits, y.routes, 1)); string(again) != string(text) {
			t.Errorf("%v: the same input gives another proposal:\n%s\n%s", w, text, again)
		}
		return tell(p)
	default:
		t.Fatalf("unknown command %v", w)
	}
	return ""
}

func tell(p decide.Proposal) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cause: %s", p.Diagnosis.Cause)
	if p.Diagnosis.Culprit != "" {
		fmt.Fprintf(&b, " (%s)", p.Diagnosis.Culprit)
	}
	fmt.Fprintf(&b, "\nwhy: %s\nexplains: %v\n", p.Diagnosis.Reason, p.Explains)
	for i, c := range p.Candidates {
		f := c.Forecast
		fmt.Fprintf(&b, "candidate %d: %s", i, c.Summary)
		if !c.DoesNothing() {
			fmt.Fprintf(&b, ": gain %.0f %%, paths left %d, blackout %.1f s", 100*f.Gain, f.PathsLeft, f.BlackoutBoundS)
			for _, j := range f.Jobs {
				fmt.Fprintf(&b, ", %s %.0f->%.0f/%.0f/%.0f ms", j.JobID, 1e3*j.StepSeconds, 1e3*j.After.P10, 1e3*j.After.P50, 1e3*j.After.P90)
			}
		}
		b.WriteString("\n")
	}
	if p.Chosen == nil {
		b.WriteString("chosen: nothing\n")
	} else {
		for i, s := range p.Chosen.Steps {
			fmt.Fprintf(&b, "step %d: %s (%s)\n", i+1, s.Route, s.Why)
		}
	}
	fmt.Fprintf(&b, "reason: %s", p.Reason)
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "\nnote: %s", n)
	}
	return b.String()
}
