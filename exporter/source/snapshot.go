// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"slices"
	"time"

	"github.com/trainyard/trainyard/exporter/catalog"
)

// Snapshot is everything that a set knew at one moment. It never changes: /metrics and the OpenTelemetry receiver
// read the same one.
type Snapshot struct {
	Taken   time.Time
	Samples []Sample // sorted by Sample.Compare, each name and label set once
	Sources []Status // in the order of the schedules
	// Duplicates counts samples that were dropped because an earlier one had the same name and labels.
	Duplicates int
}

// Status is how a source fared at its last read.
type Status struct {
	Name        string
	Interval    time.Duration
	Read        bool // it has been read at least once, or been abandoned
	Success     bool
	Absent      bool // ErrAbsent: nothing to read on this machine
	Stuck       bool // its last read has not returned yet
	Err         error
	Duration    time.Duration
	LastSuccess time.Time // zero: never
	Samples     int       // that stand in the snapshot
}

// state is what the publisher remembers of one source.
type state struct {
	Status
	samples []Sample // sorted; of the last read that gave any
	readAt  time.Time
	logged  time.Time // last time that an error of this source was logged
}

// logAgain is the least time between two log lines about a source that stays broken.
const logAgain = 5 * time.Minute

// apply takes the result of a read into the state and logs what changed.
func (s *Set) apply(st *state, r result) {
	before := st.Status
	st.Name = s.schedules[r.index].Source.Name()
	st.Interval = s.schedules[r.index].Interval
	st.Read, st.Stuck, st.Duration = true, r.stuck, r.ended.Sub(r.started)
	st.Absent = errors.Is(r.err, ErrAbsent)
	st.Success = r.err == nil || st.Absent
	st.Err = nil
	if !st.Success {
		st.Err = r.err
	}
	if st.Success {
		st.LastSuccess = r.ended
	}
	if st.Success || len(r.samples) > 0 {
		slices.SortStableFunc(r.samples, Sample.Compare)
		carryStart(st.samples, r.samples, r.ended)
		for i := range r.samples {
			if r.samples[i].At.IsZero() {
				r.samples[i].At = r.ended
			}
		}
		st.samples, st.readAt = r.samples, r.ended
	}

	failedBefore := before.Read && !before.Success
	switch {
	case st.Success && (failedBefore || !before.Read):
		s.log.Info("source reads", "source", st.Name, "absent", st.Absent, "samples", len(st.samples))
	case !st.Success && (!failedBefore || r.ended.Sub(st.logged) >= logAgain):
		s.log.Warn("source fails", "source", st.Name, "err", r.err)
		st.logged = r.ended
	}
}

// carryStart sets the start time of counters: the source's own where it knows one, else the time of the first read.
// A counter that fell has started anew, whatever the source says. Both slices are sorted.
func carryStart(before, now []Sample, at time.Time) {
	i := 0
	for j := range now {
		if now[j].Row.Kind != catalog.Counter {
			continue
		}
		for i < len(before) && before[i].Compare(now[j]) < 0 {
			i++
		}
		known := i < len(before) && before[i].Compare(now[j]) == 0
		switch {
		case known && now[j].Value < before[i].Value && !now[j].Start.After(before[i].Start):
			now[j].Start = at
		case known && now[j].Start.Before(before[i].Start):
			now[j].Start = before[i].Start
		case now[j].Start.IsZero():
			now[j].Start = at
		}
	}
}

// publish builds the snapshot and shows it to everybody.
func (s *Set) publish(states []state) {
	snap := &Snapshot{Taken: time.Now(), Samples: slices.Clone(s.constant)}
	for i := range states {
		st := &states[i]
		if !st.Read {
			st.Name, st.Interval = s.schedules[i].Source.Name(), s.schedules[i].Interval
			snap.Sources = append(snap.Sources, st.Status)
			continue
		}
		if !st.Success && snap.Taken.Sub(st.readAt) > s.schedules[i].MaxAge {
			st.samples = nil
		}
		st.Samples = len(st.samples)
		snap.Sources = append(snap.Sources, st.Status)
		snap.Samples = append(append(snap.Samples, st.samples...), st.own()...)
	}
	slices.SortStableFunc(snap.Samples, Sample.Compare)
	n := len(snap.Samples)
	snap.Samples = slices.CompactFunc(snap.Samples, func(a, b Sample) bool { return a.Compare(b) == 0 })
	snap.Duplicates = n - len(snap.Samples)
	if before := s.current.Load(); snap.Duplicates != before.Duplicates {
		s.log.Warn("samples with the same name and labels were dropped", "samples", snap.Duplicates)
	}
	for _, f := range s.observers {
		f(snap)
	}
	s.current.Store(snap)
}

// own are the samples that tell how the source fares.
func (st *state) own() []Sample {
	var success float64
	if st.Success {
		success = 1
	}
	samples := []Sample{
		New("trainyard_source_success", success, st.Name),
		New("trainyard_source_duration_seconds", st.Duration.Seconds(), st.Name),
	}
	if !st.LastSuccess.IsZero() {
		samples = append(samples, New("trainyard_source_last_success_timestamp_seconds", float64(st.LastSuccess.UnixMilli())/1e3, st.Name))
	}
	return samples
}
