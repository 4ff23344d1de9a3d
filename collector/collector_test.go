// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/otelcol"
)

// The example configuration is valid.
func TestExampleConfiguration(t *testing.T) {
	c, err := otelcol.NewCollector(settings("file:collector.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DryRun(t.Context()); err != nil {
		t.Error(err)
	}
}

// The whole distribution runs: sources of this machine (a fake /proc) in, Prometheus' text out.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "buddyinfo"), []byte("Node 0, zone   Normal      3      0      0      0      0      0      0      0      0      0      2 \n"), 0o644); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	c, err := otelcol.NewCollector(settings("yaml:" + fmt.Sprintf(`
receivers: {trainyard: {collection_interval: 200ms, node_name: n1, procfs: %q, sysfs: %q}}
processors: {batch: {timeout: 50ms}}
exporters: {prometheus: {endpoint: %q, translation_strategy: UnderscoreEscapingWithoutSuffixes, without_scope_info: true}}
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines: {metrics: {receivers: [trainyard], processors: [batch], exporters: [prometheus]}}
`, dir, t.TempDir(), address)))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Run(context.Background()) }()
	defer func() {
		c.Shutdown()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	want := `trainyard_memory_free_blocks{node="n1",numa_node="0",order="10",zone="Normal"} 2`
	var page string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if page = scrape(address); strings.Contains(page, want) {
			break
		}
	}
	if !strings.Contains(page, want) {
		t.Errorf("no %s in\n%.2000s", want, page)
	}
}

func scrape(address string) string {
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
