// SPDX-License-Identifier: Apache-2.0

// Package promtest is a fake Prometheus for tests of everything that observes through one: a small yard of two
// spines, four leaves and eight nodes with two rails, whose jobs slow down when their flows collide on one uplink, and
// an HTTP server that answers an observer's queries from it. It evaluates no PromQL: it knows the observer's fixed
// list of questions and nothing else.
package promtest

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/observe/prom"
	"github.com/trainyard/trainyard/actuator/plan"
)

// Figures of the yard. Rates are bytes per second on the wire, headers included.
const (
	Fabric       = "lab"
	LinkSpeed    = 12.5e6 // leaf - spine
	AccessSpeed  = 25e6   // leaf - node
	stepPayload  = 6e5    // bytes that a rank sends on one rail per step
	computeTime  = 0.005  // seconds per step
	overhead     = 1.04   // wire bytes per payload byte: 54 of 1500 plus acknowledgements
	best         = 0.96   // use of a link by traffic that has it for itself
	baselineStep = computeTime + stepPayload*overhead/(best*LinkSpeed)
)

// flow is one connection of a ring, with the spine that the leaf's hash gave it ("" = both ends on one leaf).
type flow struct {
	job      string
	src, dst netip.Addr
	leaf     string // of the source
	toLeaf   string
	hash     string
}

// Yard is the world behind the fake. Set its fields before the first query; Routes may change at any time if the
// caller holds the server's lock (Server.Change).
type Yard struct {
	Jobs   map[string][]int // job id -> nodes in rank order
	Hash   map[string]string
	Routes []plan.Route
	Edit   func(map[prom.Query][]prom.Sample) // spoil the answers

	progress, steps, seconds map[string]float64 // of the present step; counters since the start
}

// Collision is the yard in which job-a's n2 -> n5 and job-b's n4 -> n7 share the link l1 -> s1 on rail 0.
func Collision() *Yard {
	return &Yard{
		Jobs: map[string][]int{"job-a": {1, 2, 5, 6}, "job-b": {3, 4, 7, 8}},
		Hash: map[string]string{
			"10.1.2.2>10.3.5.2": "s1", "10.1.4.2>10.3.7.2": "s1", // the collision
			"10.3.6.2>10.1.1.2": "s1", "10.3.8.2>10.1.3.2": "s2",
			"10.2.2.2>10.4.5.2": "s1", "10.2.4.2>10.4.7.2": "s2",
			"10.4.6.2>10.2.1.2": "s2", "10.4.8.2>10.2.3.2": "s1",
		},
	}
}

// leafOf says on which leaf a rail of a node hangs.
func leafOf(node, rail int) int {
	if node <= 4 {
		return 1 + rail
	}
	return 3 + rail
}

func address(node, rail int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(leafOf(node, rail)), byte(node), 2})
}

func (y *Yard) flows() []flow {
	var out []flow
	for _, job := range slices.Sorted(maps.Keys(y.Jobs)) {
		nodes := y.Jobs[job]
		for i, n := range nodes {
			m := nodes[(i+1)%len(nodes)]
			for rail := range 2 {
				f := flow{job: job, src: address(n, rail), dst: address(m, rail)}
				a, b := leafOf(n, rail), leafOf(m, rail)
				f.leaf, f.toLeaf = fmt.Sprintf("l%d", a), fmt.Sprintf("l%d", b)
				if a != b {
					f.hash = y.spine(f)
				}
				out = append(out, f)
			}
		}
	}
	return out
}

// spine is where the leaf sends a flow: by a host route if there is one, by its hash otherwise.
func (y *Yard) spine(f flow) string {
	for _, r := range y.Routes {
		if r.Switch == f.leaf && r.Prefix.Contains(f.dst) && len(r.NextHops) > 0 {
			if hop := r.NextHops[0].Addr.As4(); hop[2]%10 == 1 || hop[2]%10 == 2 {
				return fmt.Sprintf("s%d", hop[2]%10) // leaf i - spine j is 10.0.(10i+j).0/31
			}
		}
	}
	return y.Hash[f.src.String()+">"+f.dst.String()]
}

// rates gives every ring its pace, the smallest share of any link that it crosses, and every link what the rings send
// over it in the mean over whole steps, as counters show it.
func (y *Yard) rates() (links, pace map[string]float64) {
	flows := y.flows()
	crossing := map[string]int{}
	for _, f := range flows {
		for _, l := range f.links() {
			crossing[l]++
		}
	}
	pace = map[string]float64{}
	for _, f := range flows {
		for _, l := range f.links() {
			speed := LinkSpeed
			if strings.HasPrefix(l, "n") || strings.Contains(l, ":h") {
				speed = AccessSpeed
			}
			share := best * speed / float64(crossing[l])
			if p, ok := pace[f.job]; !ok || share < p {
				pace[f.job] = share
			}
		}
	}
	links = map[string]float64{}
	for _, f := range flows {
		for _, l := range f.links() {
			links[l] += overhead * payloadRate(pace[f.job])
		}
	}
	return links, pace
}

// stepSeconds is the time of one step of a ring that synchronises at a pace; payloadRate is what a rank then sends
// on one rail.
func stepSeconds(pace float64) float64 { return computeTime + stepPayload*overhead/pace }
func payloadRate(pace float64) float64 { return stepPayload / stepSeconds(pace) }

func (f flow) links() []string {
	s, d := f.src.As4(), f.dst.As4()
	rail := (int(s[1]) - 1) % 2
	out := []string{fmt.Sprintf("n%d:rail%d", s[2], rail)}
	if f.hash != "" {
		out = append(out, f.leaf+":sp"+f.hash[1:], f.hash+":lf"+f.toLeaf[1:])
	}
	return append(out, fmt.Sprintf("%s:h%d", f.toLeaf, d[2]))
}

// Advance lets time pass for the counters of the jobs.
func (y *Yard) Advance(d time.Duration) {
	if y.steps == nil {
		y.progress, y.steps, y.seconds = map[string]float64{}, map[string]float64{}, map[string]float64{}
	}
	for job := range y.Jobs {
		step := y.StepSeconds(job)
		y.progress[job] += d.Seconds() / step
		done := math.Floor(y.progress[job])
		y.progress[job] -= done
		y.steps[job] += done
		y.seconds[job] += done * step
	}
}

// StepSeconds is how long a step of the job takes now.
func (y *Yard) StepSeconds(job string) float64 {
	_, pace := y.rates()
	return stepSeconds(pace[job])
}

// Vectors answers every question of an observer.
func (y *Yard) Vectors() map[prom.Query][]prom.Sample {
	v := map[prom.Query][]prom.Sample{}
	add := func(q prom.Query, value float64, labels ...string) {
		m := make(map[string]string, len(labels)/2)
		for i := 0; i < len(labels); i += 2 {
			if labels[i+1] != "" {
				m[labels[i]] = labels[i+1]
			}
		}
		v[q] = append(v[q], prom.Sample{Labels: m, Value: value})
	}
	loads, _ := y.rates()
	const age = 0.5
	port := func(sw, name, kind, peer, peerPort, direction, group, addr string, speed, received float64) {
		id := Fabric + "/" + sw + ":" + name
		add(prom.LinkInfo, 1, "fabric", Fabric, "link", id, "switch", sw, "port", name, "peer_kind", kind, "peer", peer,
			"peer_port", peerPort, "peer_link", Fabric+"/"+peer+":"+peerPort, "direction", direction, "ecmp_group", group)
		at := []string{"fabric", Fabric, "switch", sw, "port", name}
		add(prom.PortSpeed, speed, at...)
		add(prom.PortUp, 1, at...)
		add(prom.PortAge, age, at...)
		add(prom.PortReceive, received, at...)
		add(prom.PortAddress, 1, append(at, "address", addr)...)
		link := []string{"fabric", Fabric, "link", id}
		add(prom.PortTransmit, loads[sw+":"+name], at...)
		add(prom.LinkErrors, 0, link...)
		add(prom.LinkFlaps, 0, link...)
	}
	description := func(sw, tier string, asn, chassis int) {
		add(prom.SwitchInfo, 1, "fabric", Fabric, "switch", sw, "tier", tier, "asn", strconv.Itoa(asn),
			"chassis_id", fmt.Sprintf("02:00:00:00:00:%02x", chassis), "balancing", "hash", "vrf", "default")
		add(prom.SwitchUp, 1, "fabric", Fabric, "switch", sw)
	}
	for s := 1; s <= 2; s++ {
		sw := fmt.Sprintf("s%d", s)
		description(sw, "1", 65100+s, s)
		for l := 1; l <= 4; l++ {
			leaf := fmt.Sprintf("l%d", l)
			port(sw, fmt.Sprintf("lf%d", l), "switch", leaf, fmt.Sprintf("sp%d", s), "down", Fabric+"/"+leaf+":down",
				fmt.Sprintf("10.0.%d.1/31", 10*l+s), LinkSpeed, loads[fmt.Sprintf("%s:sp%d", leaf, s)])
			port(leaf, fmt.Sprintf("sp%d", s), "switch", sw, fmt.Sprintf("lf%d", l), "up", Fabric+"/"+leaf+":up",
				fmt.Sprintf("10.0.%d.0/31", 10*l+s), LinkSpeed, loads[fmt.Sprintf("%s:lf%d", sw, l)])
		}
	}
	for l := 1; l <= 4; l++ {
		description(fmt.Sprintf("l%d", l), "0", 65000+l, 2+l)
	}
	for n := 1; n <= 8; n++ {
		node := fmt.Sprintf("n%d", n)
		for rail := range 2 {
			leaf, device := fmt.Sprintf("l%d", leafOf(n, rail)), fmt.Sprintf("rail%d", rail)
			sent, received := loads[node+":"+device], loads[fmt.Sprintf("%s:h%d", leaf, n)]
			port(leaf, fmt.Sprintf("h%d", n), "node", node, device, "access", "", fmt.Sprintf("10.%d.%d.1/24", leafOf(n, rail), n), AccessSpeed, sent)
			at := []string{"node", node, "device", device}
			add(prom.NICInfo, 1, append(at, "fabric", Fabric, "rail", strconv.Itoa(rail), "address", address(n, rail).String())...)
			add(prom.NICTransmit, sent, at...)
			add(prom.NICReceive, received, at...)
			add(prom.NICAge, age, at...)
		}
		add(prom.NodeECN, 0, "node", node)
		add(prom.NodeZeroWin, 0, "node", node)
		add(prom.NodeRetrans, 0, "node", node)
	}
	for job, nodes := range y.Jobs {
		at := []string{"job_id", job, "gang", "workers"}
		step := y.StepSeconds(job)
		add(prom.JobInfo, 1, append(slices.Clone(at), "collective", "ring", "ranks", strconv.Itoa(len(nodes)), "connections", "1")...)
		add(prom.StepSeconds, step, at...)
		add(prom.StepBaseline, baselineStep, at...)
		add(prom.Collective, step-computeTime, at...)
		add(prom.JobSteps, y.steps[job], at...)
		add(prom.JobStepSecs, y.seconds[job], at...)
		add(prom.JobReportsAge, age, at...)
		for i, n := range nodes {
			add(prom.Compute, computeTime, append(slices.Clone(at), "rank", strconv.Itoa(i))...)
			for rail := range 2 {
				add(prom.RankAddress, 1, append(slices.Clone(at), "rank", strconv.Itoa(i), "node", fmt.Sprintf("n%d", n),
					"rail", strconv.Itoa(rail), "address", address(n, rail).String())...)
			}
		}
		for rail := range 2 {
			add(prom.JobStepBytes, stepPayload, append(slices.Clone(at), "rail", strconv.Itoa(rail))...)
		}
	}
	if y.Edit != nil {
		y.Edit(v)
	}
	return v
}

// Results is what an observer would have got at the time given, without HTTP.
func (y *Yard) Results(at time.Time) prom.Results {
	return prom.Results{At: at, Vectors: y.Vectors(), Failures: map[prom.Query]string{}}
}
