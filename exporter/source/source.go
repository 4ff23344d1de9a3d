// SPDX-License-Identifier: Apache-2.0

// Package source reads the world into samples. A Source knows one corner of it; a Set reads many of them on their
// own intervals, off the scrape path, and publishes one immutable Snapshot. Nothing here renders or decides.
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/exporter/catalog"
)

// ErrAbsent says that what a source would read does not exist on this machine: no error, and no samples.
var ErrAbsent = errors.New("not present on this machine")

// Source reads one corner of the world. Read is never called again before it has returned.
//
// Samples beside an error are a partial result: they replace everything that the source gave before. An error alone
// leaves the last samples standing until they are too old. The slice that Read returns belongs to the caller.
type Source interface {
	Name() string
	Read(ctx context.Context) ([]Sample, error)
}

// Sample is one value of one metric at the time of reading. Kind and unit are those of its row.
type Sample struct {
	Row    *catalog.Row
	Labels []string // values in the order of Row.Labels
	Value  float64
	Start  time.Time // since when a counter counts; zero means unknown, and always for other kinds
	// At is when the value was read, which may be a good part of a scrape interval before Prometheus asks. Counters are
	// exposed with it: a rate is then as good as the reading, whatever the distance of reading and scrape.
	At time.Time
}

// New makes a sample; labels are the values in the order of the row's labels. It panics on a name that is not in
// the catalogue and on a wrong number of labels: both are mistakes of the program, never of its input.
func New(name string, value float64, labels ...string) Sample {
	row, ok := catalog.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("metric %q is not in the catalogue", name))
	}
	if len(labels) != len(row.Labels) {
		panic(fmt.Sprintf("metric %s: %d label values for the labels %v", name, len(labels), row.Labels))
	}
	return Sample{Row: row, Labels: labels, Value: value}
}

// Since sets the time since when a counter counts.
func (s Sample) Since(start time.Time) Sample {
	s.Start = start
	return s
}

// ReadAt sets when the value was read.
func (s Sample) ReadAt(at time.Time) Sample {
	s.At = at
	return s
}

// Counts says that only differences of the value mean something: a counter, or one of the kernel's that may also be
// a gauge.
func (s Sample) Counts() bool { return s.Row.Kind == catalog.Counter || s.Row.Kind == catalog.Unknown }

// Label returns the value of one label, "" if the metric has no such label.
func (s Sample) Label(name string) string {
	if i := slices.Index(s.Row.Labels, name); i >= 0 {
		return s.Labels[i]
	}
	return ""
}

// Compare orders samples by name, then by label values: the order of the exposition.
func (s Sample) Compare(t Sample) int {
	return cmp.Or(cmp.Compare(s.Row.Name, t.Row.Name), slices.Compare(s.Labels, t.Labels))
}
