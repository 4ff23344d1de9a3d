// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/trainyard/trainyard/actuator/traffic"
)

// jobKey identifies a job; two gangs of one job are two jobs to the fabric.
type jobKey struct{ job, gang string }

// String spells the key for problems.
func (k jobKey) String() string {
	if k.gang == "" {
		return "job " + clip(k.job)
	}
	return "job " + clip(k.job) + " gang " + clip(k.gang)
}

// rankKey is one rank of a job, railKey one rail of a job.
type (
	rankKey struct {
		jobKey
		rank int
	}
	railKey struct {
		jobKey
		rail int
	}
)

// String spells the key for problems.
func (k rankKey) String() string { return fmt.Sprintf("%s rank %d", k.jobKey, k.rank) }

// String spells the key for problems.
func (k railKey) String() string { return fmt.Sprintf("%s rail %d", k.jobKey, k.rail) }

func byJob(l map[string]string) (jobKey, bool) {
	return jobKey{l["job_id"], l["gang"]}, l["job_id"] != ""
}

// jobs takes the jobs that have a rank in this fabric. What a job does not report stands in its own Missing and, as
// everything that is missing, in Problems.
func (b *builder) jobs() {
	members := b.ranks()
	seconds := func(q Query) map[jobKey]float64 { return positive(b, q, byJob) }
	step, baseline, collective := seconds(StepSeconds), seconds(StepBaseline), seconds(Collective)
	steps, stepSeconds := seconds(JobSteps), seconds(JobStepSecs)
	age := values(b, JobReportsAge, byJob)
	compute := positive(b, Compute, func(l map[string]string) (rankKey, bool) {
		k, ok := byJob(l)
		n, err := strconv.Atoi(l["rank"])
		return rankKey{k, n}, ok && err == nil
	})
	bytes := positive(b, JobStepBytes, func(l map[string]string) (railKey, bool) {
		k, ok := byJob(l)
		n, err := strconv.Atoi(l["rail"])
		return railKey{k, n}, ok && err == nil && n >= 0 && n <= maxRail
	})

	infos, twice := map[jobKey]map[string]string{}, map[jobKey]bool{}
	for _, x := range b.r.Vectors[JobInfo] {
		k, ok := byJob(x.Labels)
		if !ok {
			continue
		}
		if _, there := infos[k]; there {
			twice[k] = true
		}
		infos[k] = x.Labels
	}
	for k, m := range members {
		if _, ok := infos[k]; !ok {
			b.problem("%s: has ranks in the fabric but its shape is not reported", k)
			continue
		}
		if twice[k] {
			b.problem("%s: its ranks disagree on its shape; refused", k)
			continue
		}
		if !m.here {
			continue // all of it runs on other fabrics
		}
		j := traffic.Job{ID: k.job, Gang: k.gang, Collective: infos[k]["collective"], Ranks: m.list(), Missing: m.missing}
		miss := func(format string, args ...any) { j.Missing = append(j.Missing, fmt.Sprintf(format, args...)) }
		var err error
		if j.Connections, err = strconv.Atoi(infos[k]["connections"]); err != nil || j.Connections < 1 {
			miss("number of connections (%q)", clip(infos[k]["connections"]))
			j.Connections = 0
		}
		if n, err := strconv.Atoi(infos[k]["ranks"]); err != nil || n != len(j.Ranks) {
			miss("%d of %s ranks are reported", len(j.Ranks), clip(infos[k]["ranks"]))
		}
		for _, f := range []struct {
			name string
			from map[jobKey]float64
			to   *float64
		}{
			{"step time", step, &j.StepSeconds}, {"collective time", collective, &j.CollectiveSeconds},
			{"step counter", steps, &j.StepsTotal}, {"counter of seconds in steps", stepSeconds, &j.StepSecondsTotal},
		} {
			v, ok := f.from[k]
			if !ok {
				miss("%s", f.name)
			}
			*f.to = v
		}
		j.BaselineStepSeconds = baseline[k] // 0 = no baseline yet
		if j.StepSeconds > 0 {
			j.StepsPerSecond = 1 / j.StepSeconds
		}
		for i := range j.Ranks {
			v, ok := compute[rankKey{k, j.Ranks[i].Rank}]
			if !ok {
				miss("compute time of rank %d on %s", j.Ranks[i].Rank, j.Ranks[i].Node)
			}
			j.Ranks[i].ComputeSeconds = v
		}
		for rail := range m.rails() {
			v, ok := bytes[railKey{k, rail}]
			if !ok {
				miss("bytes sent on rail %d", rail)
			}
			j.BytesPerSecondByRail = append(j.BytesPerSecondByRail, v*j.StepsPerSecond)
		}
		if a, ok := age[k]; ok {
			b.stale(k, "its report", a)
		} else {
			miss("age of its reports")
		}
		slices.Sort(j.Missing)
		for _, what := range j.Missing {
			b.problem("%s: missing: %s", k, what)
		}
		b.s.Jobs = append(b.s.Jobs, j)
	}
	slices.SortFunc(b.s.Jobs, func(x, y traffic.Job) int { return cmp.Or(cmp.Compare(x.ID, y.ID), cmp.Compare(x.Gang, y.Gang)) })
}

// membership collects the ranks of one job.
type membership struct {
	ranks   map[int]traffic.Rank
	missing []string
	here    bool // at least one address is of a NIC in our fabric
}

// ranks reads which rank uses which address. An address that is not exactly one NIC of the fabric is refused.
func (b *builder) ranks() map[jobKey]*membership {
	out := map[jobKey]*membership{}
	samples := slices.Clone(b.r.Vectors[RankAddress])
	sortSamples(samples)
	for _, x := range samples {
		k, ok := byJob(x.Labels)
		if !ok {
			continue
		}
		m := out[k]
		if m == nil {
			m = &membership{ranks: map[int]traffic.Rank{}}
			out[k] = m
		}
		miss := func(format string, args ...any) { m.missing = append(m.missing, fmt.Sprintf(format, args...)) }
		l := x.Labels
		n, err1 := strconv.Atoi(l["rank"])
		rail, err2 := strconv.Atoi(l["rail"])
		addr, ok := parseAddr(l["address"])
		if err1 != nil || err2 != nil || !ok || n < 0 {
			miss("an address that can be read (rank %q rail %q address %q)", clip(l["rank"]), clip(l["rail"]), clip(l["address"]))
			continue
		}
		nic, ok := b.s.Fabric.NICs[addr]
		if !ok {
			miss("a NIC with the address %s of rank %d on %s", addr, n, clip(l["node"]))
			continue
		}
		m.here = true
		if nic.Node != l["node"] || nic.Rail != rail {
			miss("agreement on rank %d: it says %s rail %d, the NIC with %s is on %s rail %d", n, clip(l["node"]), rail, addr, nic.Node, nic.Rail)
			continue
		}
		r, there := m.ranks[n]
		if !there {
			r = traffic.Rank{Rank: n, Node: l["node"], Addrs: map[int]netip.Addr{}}
		}
		if _, taken := r.Addrs[rail]; taken || r.Node != l["node"] {
			miss("one address of rank %d on rail %d: there are several", n, rail)
			continue
		}
		r.Addrs[rail] = addr
		m.ranks[n] = r
	}
	return out
}

// list is the ranks in rank order.
func (m *membership) list() []traffic.Rank {
	out := make([]traffic.Rank, 0, len(m.ranks))
	for _, n := range slices.Sorted(maps.Keys(m.ranks)) {
		out = append(out, m.ranks[n])
	}
	return out
}

// rails is one more than the highest rail that a rank uses.
func (m *membership) rails() int {
	n := 0
	for _, r := range m.ranks {
		for rail := range r.Addrs {
			n = max(n, rail+1)
		}
	}
	return n
}
