// SPDX-License-Identifier: Apache-2.0

// Package traffic holds jobs and traffic matrices as values, each entry with where it came from (contract 14).
package traffic

import "net/netip"

// Provenance says how an entry of a matrix is known.
type Provenance string

// The three ways of knowing.
const (
	Measured Provenance = "measured"
	Inferred Provenance = "inferred"
	Assumed  Provenance = "assumed"
)

// Flow is the traffic of one job from one NIC to another. A collective's flows rise and fall together: the
// slowest of a job sets the pace of all.
type Flow struct {
	JobID          string     `json:"job_id"`
	Src            netip.Addr `json:"src"`
	Dst            netip.Addr `json:"dst"`
	Connections    int        `json:"connections"`      // transport connections (queue pairs) that hash independently; at least 1
	BytesPerSecond float64    `json:"bytes_per_second"` // present rate on the wire, headers included
	Provenance     Provenance `json:"provenance"`
}

// Matrix is the traffic of a fabric at one moment and the name of its source, e.g. "ring from ranks".
type Matrix struct {
	Source string `json:"source"`
	Flows  []Flow `json:"flows"`
}

// Rank is one process of a job and the NICs it uses.
type Rank struct {
	Rank           int                `json:"rank"`
	Node           string             `json:"node"`
	Addrs          map[int]netip.Addr `json:"addrs"`           // by rail
	ComputeSeconds float64            `json:"compute_seconds"` // per step, mean of the window; NaN is not allowed: absent ranks are in Job.Missing
}

// Job is a training job as its ranks report it. Seconds are means per step over the observation window.
type Job struct {
	ID                  string  `json:"job_id"`
	Gang                string  `json:"gang"`
	Collective          string  `json:"collective"` // "ring"; anything else has no matrix in this version
	Connections         int     `json:"connections"`
	Ranks               []Rank  `json:"ranks"` // in rank order; rank i sends to rank i+1 modulo N on each rail
	StepSeconds         float64 `json:"step_seconds"`
	BaselineStepSeconds float64 `json:"baseline_step_seconds"` // 0 = no baseline yet
	CollectiveSeconds   float64 `json:"collective_seconds"`
	// StepsTotal and StepSecondsTotal are the counters behind the means (mean over the ranks, since the job started), read at
	// the snapshot's own moment. verify takes the difference of two snapshots, so that no window reaches back over the change.
	StepsTotal           float64   `json:"steps_total"`
	StepSecondsTotal     float64   `json:"step_seconds_total"`
	StepsPerSecond       float64   `json:"steps_per_second"`
	BytesPerSecondByRail []float64 `json:"bytes_per_second_by_rail"` // payload that each rank sends on that rail
	Missing              []string  `json:"missing,omitempty"`        // what was not reported, in words
}
