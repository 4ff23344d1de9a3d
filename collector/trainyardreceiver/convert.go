// SPDX-License-Identifier: Apache-2.0

package trainyardreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainyard/trainyard/exporter/catalog"
	"github.com/trainyard/trainyard/exporter/source"
)

// scope names who measured.
const scope = "github.com/trainyard/trainyard/collector/trainyardreceiver"

// units are the catalogue's units in UCUM, which OpenTelemetry speaks.
// https://opentelemetry.io/docs/specs/semconv/general/metrics/#instrument-units
var units = map[catalog.Unit]string{
	catalog.None: "", catalog.Seconds: "s", catalog.Bytes: "By", catalog.BytesPerSecond: "By/s", catalog.Ratio: "1",
}

// convert turns a snapshot into metrics. Names and labels stay those of the catalogue. Counters are cumulative sums with
// their start time; everything else is a gauge: a kind that a source does not know must not be promised downstream.
// Histograms have no samples in a snapshot yet.
func convert(s *source.Snapshot, node string) pmetric.Metrics {
	out := pmetric.NewMetrics()
	resource := out.ResourceMetrics().AppendEmpty()
	if node != "" {
		resource.Resource().Attributes().PutStr("host.name", node)
	}
	into := resource.ScopeMetrics().AppendEmpty()
	into.Scope().SetName(scope)

	taken := pcommon.NewTimestampFromTime(s.Taken)
	var points pmetric.NumberDataPointSlice
	for i, sample := range s.Samples { // sorted: the samples of one row follow each other
		if i == 0 || sample.Row != s.Samples[i-1].Row {
			points = newMetric(into.Metrics().AppendEmpty(), sample.Row)
		}
		p := points.AppendEmpty()
		p.SetTimestamp(taken)
		if !sample.At.IsZero() {
			p.SetTimestamp(pcommon.NewTimestampFromTime(sample.At))
		}
		p.SetDoubleValue(sample.Value)
		if sample.Row.Kind == catalog.Counter && !sample.Start.IsZero() {
			p.SetStartTimestamp(pcommon.NewTimestampFromTime(sample.Start))
		}
		for j, name := range sample.Row.Labels {
			if sample.Labels[j] != "" { // an empty label is none, as in Prometheus
				p.Attributes().PutStr(name, sample.Labels[j])
			}
		}
	}
	return out
}

func newMetric(m pmetric.Metric, row *catalog.Row) pmetric.NumberDataPointSlice {
	m.SetName(row.Name)
	m.SetDescription(row.Help)
	m.SetUnit(units[row.Unit])
	if row.Kind == catalog.Counter {
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		return sum.DataPoints()
	}
	return m.SetEmptyGauge().DataPoints()
}
