// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// WireOverhead is bytes on the wire per byte of TCP payload: a full Ethernet frame of 1514 bytes (as interface
// counters count it, without FCS) carries 1448 bytes when IP and TCP timestamps are paid for.
const WireOverhead = 1514.0 / 1448.0

// RingSource is how Ring names the matrix that it makes.
const RingSource = "ring from ranks"

// Named gives every job an ID of its own. Two gangs of one job are two jobs to the fabric: where an ID is not unique,
// the gang is added to it. Whoever compares jobs by ID asks for this first.
func Named(jobs []Job) []Job {
	count := map[string]int{}
	for _, j := range jobs {
		count[j.ID]++
	}
	out := slices.Clone(jobs)
	for i, j := range out {
		if count[j.ID] > 1 {
			out[i].ID = j.ID + "/" + j.Gang
		}
	}
	return out
}

// Ring makes the matrix of ring collectives: on each rail, rank i sends to rank i+1 modulo N. A flow's rate is the
// payload that the job reports times WireOverhead (measured). Where a job reports none, it is the transmit rate of
// the sending NIC, when that NIC serves one flow only (inferred), or its even share (assumed). nicTransmit is
// bytes/s on the wire by NIC. The second result says in words what has no entry and why.
func Ring(jobs []Job, nicTransmit map[netip.Addr]float64) (Matrix, []string) {
	m := Matrix{Source: RingSource}
	var problems []string
	perNIC := map[netip.Addr]int{}
	var unrated []int
	for _, j := range jobs {
		if j.Collective != "ring" {
			problems = append(problems, fmt.Sprintf("job %s: no matrix for collective %q", j.ID, j.Collective))
			continue
		}
		for _, what := range j.Missing {
			problems = append(problems, fmt.Sprintf("job %s: %s", j.ID, what))
		}
		for i, r := range j.Ranks {
			next := j.Ranks[(i+1)%len(j.Ranks)]
			if next.Node == r.Node {
				continue // inside a node: no NIC carries it
			}
			for _, rail := range slices.Sorted(maps.Keys(r.Addrs)) {
				dst, ok := next.Addrs[rail]
				if !ok {
					problems = append(problems, fmt.Sprintf("job %s: rank %d has no nic on rail %d, rank %d sends to it", j.ID, next.Rank, rail, r.Rank))
					continue
				}
				f := Flow{JobID: j.ID, Src: r.Addrs[rail], Dst: dst, Connections: max(1, j.Connections), Provenance: Measured}
				perNIC[f.Src]++
				if rail >= 0 && rail < len(j.BytesPerSecondByRail) && j.BytesPerSecondByRail[rail] > 0 {
					f.BytesPerSecond = j.BytesPerSecondByRail[rail] * WireOverhead
				} else {
					unrated = append(unrated, len(m.Flows))
				}
				m.Flows = append(m.Flows, f)
			}
		}
	}
	for _, i := range unrated {
		f := &m.Flows[i]
		rate, ok := nicTransmit[f.Src]
		if !ok {
			problems = append(problems, fmt.Sprintf("job %s: neither the job nor nic %s reports what it sends", f.JobID, f.Src))
			f.Provenance = Assumed
			continue
		}
		n := perNIC[f.Src]
		f.BytesPerSecond, f.Provenance = rate/float64(n), Inferred
		if n > 1 {
			f.Provenance = Assumed
		}
	}
	return m, problems
}

// ByNIC takes the rates of a matrix from counters of what the sending NICs put on the wire instead: of the leaf's
// ports or of the NICs themselves, source says which. Counters of links see the same bytes, retransmissions too,
// while a job's report may be some steps old. A NIC's rate is divided among its flows as they were reported. What it
// sends besides goes to the wrong receiver in this matrix, where the load of that receiver's link gives it away.
// False when a NIC has no counter.
func ByNIC(m Matrix, nicTransmit map[netip.Addr]float64, source string) (Matrix, bool) {
	out := Matrix{Source: RingSource + ", rates from " + source, Flows: slices.Clone(m.Flows)}
	sum, count := map[netip.Addr]float64{}, map[netip.Addr]int{}
	for _, f := range m.Flows {
		sum[f.Src] += f.BytesPerSecond
		count[f.Src]++
	}
	for i := range out.Flows {
		f := &out.Flows[i]
		rate, ok := nicTransmit[f.Src]
		if !ok {
			return m, false
		}
		share := 1 / float64(count[f.Src])
		if sum[f.Src] > 0 {
			share = f.BytesPerSecond / sum[f.Src]
		}
		f.BytesPerSecond, f.Provenance = rate*share, Inferred
		if count[f.Src] > 1 {
			f.Provenance = Assumed
		}
	}
	return out, true
}
