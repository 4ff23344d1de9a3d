// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/decide"
	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/fleet/fleettest"
	"github.com/trainyard/trainyard/actuator/topo/topotest"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

func BenchmarkProposeLab(b *testing.B) {
	s := collision().Snapshot()
	target := ident.Port{Fabric: "lab", Device: "l1", Name: "sp1"}
	b.ReportAllocs()
	for b.Loop() {
		if p := decide.Propose(s, target, decide.Default(), nil, 1); p.Chosen == nil {
			b.Fatal(p.Reason)
		}
	}
}

// large is a fabric with a nic on each node and jobs of 5 ranks, placed and hashed at random, and its hottest link.
func large(seed uint64, leaves, spines, hosts, jobs int) (fleet.Snapshot, ident.Port) {
	r := rand.New(rand.NewPCG(seed, 7))
	y := fleettest.Yard{Fabric: topotest.New(topotest.Options{Leaves: leaves, Spines: spines, Hosts: hosts, Rails: 1, UplinkBytes: 12.5e9}), Via: map[string][]string{}}
	nodes := r.Perm(hosts)
	for j := range jobs {
		job := fleettest.Job{ID: fmt.Sprintf("job-%03d", j), Compute: 0.01 + 0.04*r.Float64(), Bytes: 1e9 + 3e9*r.Float64(), Start: r.Float64()}
		for k := range 5 {
			job.Nodes = append(job.Nodes, fmt.Sprintf("n%d", 1+nodes[5*j+k]))
		}
		y.Jobs = append(y.Jobs, job)
		for k, n := range job.Nodes {
			y.Via[fleettest.Key(job.ID, n, job.Nodes[(k+1)%5], 0)] = []string{fmt.Sprintf("s%d", 1+r.IntN(spines))}
		}
	}
	s := y.Steady()
	return s, hottest(s.Fabric, func(p ident.Port) float64 { return s.Links[p].BytesPerSecond })
}

func BenchmarkProposeLarge(b *testing.B) {
	s, target := large(7, 64, 32, 512, 100)
	for b.Loop() {
		p := decide.Propose(s, target, decide.Default(), nil, 1)
		if p.Chosen == nil {
			b.Log(p.Reason)
		}
	}
}

// TestLargeIsBounded: on a fabric with too many placements to enumerate, a bounded search finds some that explain the
// loads. BenchmarkProposeLarge says how long the largest takes.
func TestLargeIsBounded(t *testing.T) {
	const fabrics = 4
	explained := 0
	for seed := range uint64(fabrics) {
		s, target := large(seed, 16, 8, 128, 25)
		begin := time.Now()
		p := decide.Propose(s, target, decide.Default(), nil, 1)
		t.Logf("%s: %s\n%s", time.Since(begin), p.Diagnosis.Reason, p.Reason)
		if p.Explains {
			explained++
		}
	}
	// A bounded search may miss; it must then say so and do nothing, but not often.
	if explained < fabrics-1 {
		t.Errorf("all traffic is announced, but only %d of %d fabrics are explained", explained, fabrics)
	}
}
