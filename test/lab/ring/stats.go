// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ring

import (
	"fmt"
	"slices"
	"time"
)

// Stats sums up the steps of a job over a time.
type Stats struct {
	Steps       int           // of rank 0
	Mean        time.Duration // of the steps of all ranks
	Median      time.Duration
	Worst       time.Duration
	Compute     time.Duration // mean
	Collective  time.Duration // mean
	LongestGap  time.Duration
	Stalls      int
	Retransmits uint64
	Resets      int    // of the whole job
	Bytes       uint64 // payload sent by all ranks
}

// Stats sums up the steps that ended in [since, until); zero times are no bounds.
func (j *Job) Stats(since, until time.Time) Stats {
	steps := j.Steps(since, until)
	j.mu.Lock()
	s := Stats{Resets: j.resets}
	j.mu.Unlock()
	if len(steps) == 0 {
		return s
	}
	var totals []time.Duration
	for _, x := range steps {
		if x.Rank == 0 {
			s.Steps++
		}
		totals = append(totals, x.Total)
		s.Mean += x.Total
		s.Compute += x.Compute
		s.Collective += x.Collective
		s.Worst = max(s.Worst, x.Total)
		s.LongestGap = max(s.LongestGap, x.LongestGap)
		s.Stalls += x.Stalls
		s.Retransmits += uint64(x.Retransmits)
		s.Bytes += x.Bytes
	}
	n := time.Duration(len(steps))
	s.Mean, s.Compute, s.Collective = s.Mean/n, s.Compute/n, s.Collective/n
	slices.Sort(totals)
	s.Median = totals[len(totals)/2]
	return s
}

// String is the statistics as one line.
func (s Stats) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d)/1e6) }
	return fmt.Sprintf("%d steps, mean %s, median %s, worst %s, longest gap %s, %d stalls, %d retransmits, %d resets",
		s.Steps, ms(s.Mean), ms(s.Median), ms(s.Worst), ms(s.LongestGap), s.Stalls, s.Retransmits, s.Resets)
}
