// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"math"
	"strings"

	"github.com/trainyard/trainyard/actuator/fleet"
)

// run lets every job compute and send in turns and returns mean step seconds. Between two events the jobs that
// send share the links max-min, all connections of a job in step; the shares are found by raising the pace of
// everybody in tiny increments, which is slow and hard to get wrong.
func (y Yard) run(conns []conn, capacity []float64) []float64 {
	const steps, warmUp = 24, 4
	n := len(y.Jobs)
	if n == 0 {
		return nil
	}
	use := make([]map[int]float64, n) // bytes a step on each link
	for j := range use {
		use[j] = map[int]float64{}
	}
	for _, c := range conns {
		for _, id := range c.links {
			use[c.job][int(id)] += c.bytes
		}
	}
	left := make([]float64, n) // share of the collective still to send
	wait := make([]float64, n) // seconds still to compute
	done := make([]int, n)
	begun := make([]float64, n)
	ended := make([]float64, n)
	for j, jb := range y.Jobs {
		wait[j], left[j] = jb.Start+jb.longest(), 1
	}
	known := map[string][]float64{}
	for now := 0.0; ; {
		sends := make([]byte, n)
		for j := range sends {
			sends[j] = '0'
			if wait[j] <= 0 {
				sends[j] = '1'
			}
		}
		pace, ok := known[string(sends)]
		if !ok {
			pace = shares(use, capacity, conns, string(sends))
			known[string(sends)] = pace
		}
		next := math.Inf(1)
		for j := range y.Jobs {
			if sends[j] == '1' {
				next = min(next, left[j]/pace[j])
			} else {
				next = min(next, wait[j])
			}
		}
		now += next
		finished := 0
		for j, jb := range y.Jobs {
			const tiny = 1e-12
			if sends[j] == '0' {
				if wait[j] -= next; wait[j] < tiny {
					wait[j] = 0
				}
			} else if left[j] -= pace[j] * next; left[j] < tiny*1e3 {
				left[j], wait[j] = 1, jb.longest()
				if done[j]++; done[j] == warmUp {
					begun[j] = now
				}
				if done[j] <= steps {
					ended[j] = now
				}
			}
			if done[j] >= steps {
				finished++
			}
		}
		if finished == n {
			break
		}
	}
	out := make([]float64, n)
	for j := range out {
		out[j] = (ended[j] - begun[j]) / (steps - warmUp)
	}
	return out
}

// shares is the pace of each sending job in collectives per second. Per connection rates rise equally.
func shares(use []map[int]float64, capacity []float64, conns []conn, sends string) []float64 {
	largest := make([]float64, len(use)) // bytes of the largest connection of each job
	for _, c := range conns {
		largest[c.job] = max(largest[c.job], c.bytes)
	}
	type part struct {
		link int
		by   float64
	}
	most := 0.0
	for _, c := range capacity {
		most = max(most, c)
	}
	inc := most / 2048 // bytes/s per connection and round
	pace := make([]float64, len(use))
	rising := make([]bool, len(use))
	parts := make([][]part, len(use))
	for j := range use {
		rising[j] = sends[j] == '1'
		for id, b := range use[j] {
			parts[j] = append(parts[j], part{id, inc * b / largest[j]})
		}
		if rising[j] && len(use[j]) == 0 { // all ranks on one node: sending takes no time that matters here
			pace[j], rising[j] = 1e6, false
		}
	}
	room := append([]float64(nil), capacity...)
	for {
		found := false
		for j := range use {
			if !rising[j] {
				continue
			}
			for _, p := range parts[j] {
				if room[p.link] < p.by {
					rising[j] = false
				}
			}
			if !rising[j] {
				continue
			}
			found = true
			for _, p := range parts[j] {
				room[p.link] -= p.by
			}
			pace[j] += inc / largest[j]
		}
		if !found {
			return pace
		}
	}
}

// Steady is a snapshot for large yards: as if all jobs sent all the time, sharing the links max-min, with their
// compute time on top. It skips the life of the yard, which takes long with many jobs.
func (y Yard) Steady() fleet.Snapshot {
	return y.snapshot(func(conns []conn, capacity []float64) []float64 {
		use := make([]map[int]float64, len(y.Jobs))
		for j := range use {
			use[j] = map[int]float64{}
		}
		for _, c := range conns {
			for _, id := range c.links {
				use[c.job][int(id)] += c.bytes
			}
		}
		pace := shares(use, capacity, conns, strings.Repeat("1", len(y.Jobs)))
		out := make([]float64, len(y.Jobs))
		for j, jb := range y.Jobs {
			out[j] = jb.longest() + 1/pace[j]
		}
		return out
	})
}
