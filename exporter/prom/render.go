// SPDX-License-Identifier: Apache-2.0

// Package prom turns snapshots into the Prometheus text format and serves them. Rendering happens when a snapshot
// is published, never while Prometheus waits; the handlers only hand out bytes.
package prom

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/exporter/catalog"
	"github.com/trainyard/trainyard/exporter/source"
)

// ContentType is that of the text format which Render writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Render writes samples in the text format, sorted by name and labels whatever order they come in. Of two samples
// with the same name and labels the first one is written: Prometheus would refuse both.
//
// Counters carry the time at which they were read (Sample.At); Prometheus needs track_timestamps_staleness for that job, so
// that a series which vanishes ends at once all the same. Gauges carry none.
//
// The format has no info kind, so that info metrics are gauges there, and it says untyped for unknown.
// https://prometheus.io/docs/instrumenting/exposition_formats/
func Render(samples []source.Sample) []byte {
	sorted := slices.Clone(samples)
	slices.SortStableFunc(sorted, source.Sample.Compare)
	return renderSorted(sorted)
}

func renderSorted(sorted []source.Sample) []byte {
	var b bytes.Buffer
	b.Grow(96 * len(sorted))
	var number [32]byte
	for i, s := range sorted {
		if i > 0 && s.Compare(sorted[i-1]) == 0 {
			continue
		}
		if i == 0 || s.Row != sorted[i-1].Row {
			b.WriteString("# HELP " + s.Row.Name + " " + s.Row.Help + "\n# TYPE " + s.Row.Name + " " + typeWord(s.Row.Kind) + "\n")
		}
		b.WriteString(s.Row.Name)
		for j, l := range s.Row.Labels {
			b.WriteByte(",{"[b2i(j == 0)])
			b.WriteString(l + `="`)
			_, _ = escape.WriteString(&b, strings.ToValidUTF8(s.Labels[j], "\uFFFD")) // a Buffer never fails
			b.WriteByte('"')
		}
		if len(s.Row.Labels) > 0 {
			b.WriteByte('}')
		}
		b.WriteByte(' ')
		b.Write(appendValue(number[:0], s.Value))
		if s.Counts() && !s.At.IsZero() {
			b.WriteByte(' ')
			b.Write(strconv.AppendInt(number[:0], s.At.UnixMilli(), 10))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// appendValue writes integers without an exponent: they read better, and up to 2^53 it is the same number.
func appendValue(b []byte, v float64) []byte {
	if v == float64(int64(v)) && v > -1<<53 && v < 1<<53 {
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64) // NaN, +Inf and -Inf as the format wants them
}

func typeWord(k catalog.Kind) string {
	switch k {
	case catalog.Info:
		return "gauge"
	case catalog.Unknown:
		return "untyped"
	}
	return k.String()
}
