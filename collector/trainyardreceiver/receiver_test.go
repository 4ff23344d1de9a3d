// SPDX-License-Identifier: Apache-2.0

package trainyardreceiver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// fakeProc is a /proc with one zone of memory: 3 free blocks of order 0 and 2 of order 10, so 3 of 2051 pages are too small
// for a block of order 1.
func fakeProc(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"buddyinfo": "Node 0, zone   Normal      3      0      0      0      0      0      0      0      0      0      2 \n",
		"vmstat":    "compact_stall 7\ncompact_fail 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The receiver reads the sources and hands on what they gave; the value is the one that /metrics would show.
func TestReceiver(t *testing.T) {
	f := NewFactory()
	cfg := f.CreateDefaultConfig().(*Config)
	cfg.CollectionInterval, cfg.NodeName, cfg.Procfs, cfg.Sysfs = 100*time.Millisecond, "n1", fakeProc(t), t.TempDir()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	sink := new(consumertest.MetricsSink)
	r, err := f.CreateMetrics(t.Context(), receivertest.NewNopSettings(Type), cfg, sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	got := map[string]pmetric.Metric{}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && got["node_vmstat_compact_stall"] == (pmetric.Metric{}); time.Sleep(20 * time.Millisecond) {
		for _, m := range sink.AllMetrics() {
			ms := m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
			for i := range ms.Len() {
				got[ms.At(i).Name()] = ms.At(i)
			}
		}
	}
	if err := r.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	stall, ok := got["node_vmstat_compact_stall"]
	if !ok || stall.Gauge().DataPoints().At(0).DoubleValue() != 7 {
		t.Fatalf("no compact_stall of 7 among %d metrics", len(got))
	}
	index := got["trainyard_memory_unusable_free_index"].Gauge().DataPoints()
	for i := range index.Len() {
		if order, _ := index.At(i).Attributes().Get("order"); order.Str() == "1" {
			if v := index.At(i).DoubleValue(); v < 3.0/2051-1e-9 || v > 3.0/2051+1e-9 {
				t.Errorf("unusable index of order 1 is %v, by hand 3/2051", v)
			}
			return
		}
	}
	t.Error("no unusable index of order 1")
}

func TestConfigFaults(t *testing.T) {
	for want, c := range map[string]Config{
		"collection_interval": {CollectionInterval: time.Millisecond},
		"config_file":         {CollectionInterval: time.Second, File: "/nowhere"},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in the error, got %v", want, err)
		}
	}
	// Shutdown of a receiver that never started is allowed.
	if err := (&receiver{}).Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
