// SPDX-License-Identifier: Apache-2.0

package trainyardreceiver

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainyard/trainyard/exporter/source"
)

var (
	began = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	taken = began.Add(time.Minute)
)

func snapshot(samples ...source.Sample) *source.Snapshot {
	slices.SortFunc(samples, source.Sample.Compare)
	return &source.Snapshot{Taken: taken, Samples: samples}
}

// A counter becomes a cumulative sum with its start, a gauge and an info metric become gauges, an unknown kind promises
// nothing; names, help, units and labels stay.
func TestConvert(t *testing.T) {
	m := convert(snapshot(
		source.New("node_network_receive_bytes_total", 12345, "n1", "rail0").Since(began),
		source.New("node_network_receive_bytes_total", 99, "n1", "rail1").Since(began),
		source.New("trainyard_memory_unusable_free_index", 0.25, "n1", "0", "Normal", "9"),
		source.New("trainyard_nic_info", 1, "n1", "rail0", "", "10.1.1.2", "lab"),
		source.New("node_vmstat_compact_stall", 7, "n1"),
	), "n1")
	if n, p := m.MetricCount(), m.DataPointCount(); n != 4 || p != 5 {
		t.Fatalf("%d metrics with %d points, want 4 with 5", n, p)
	}
	if host, _ := m.ResourceMetrics().At(0).Resource().Attributes().Get("host.name"); host.Str() != "n1" {
		t.Errorf("host.name is %q", host.Str())
	}
	byName := map[string]pmetric.Metric{}
	ms := m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for i := range ms.Len() {
		byName[ms.At(i).Name()] = ms.At(i)
	}

	bytes := byName["node_network_receive_bytes_total"]
	if bytes.Type() != pmetric.MetricTypeSum || !bytes.Sum().IsMonotonic() || bytes.Sum().AggregationTemporality() != pmetric.AggregationTemporalityCumulative || bytes.Unit() != "By" {
		t.Errorf("a counter became %s in %q", bytes.Type(), bytes.Unit())
	}
	p := bytes.Sum().DataPoints().At(0)
	if p.DoubleValue() != 12345 || !p.StartTimestamp().AsTime().Equal(began) || !p.Timestamp().AsTime().Equal(taken) {
		t.Errorf("the point is %v from %v to %v", p.DoubleValue(), p.StartTimestamp().AsTime(), p.Timestamp().AsTime())
	}
	if d, _ := p.Attributes().Get("device"); d.Str() != "rail0" {
		t.Errorf("device is %q", d.Str())
	}
	for _, name := range []string{"trainyard_memory_unusable_free_index", "trainyard_nic_info", "node_vmstat_compact_stall"} {
		if byName[name].Type() != pmetric.MetricTypeGauge {
			t.Errorf("%s became %s", name, byName[name].Type())
		}
	}
	if _, ok := byName["trainyard_nic_info"].Gauge().DataPoints().At(0).Attributes().Get("rail"); ok {
		t.Error("an empty label became an attribute")
	}
}
