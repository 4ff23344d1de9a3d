// SPDX-License-Identifier: Apache-2.0

//go:build tools

package prom_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/observe/prom"
	"github.com/trainyard/trainyard/actuator/observe/prom/promtest"
	"github.com/trainyard/trainyard/test/tools/toolbox"
)

// TestRealPrometheus asks a real Prometheus every question. Its exporters are gone after a few scrapes: within max_age
// the picture stays whole, with true ages; after it, everything is named as missing.
func TestRealPrometheus(t *testing.T) {
	path, err := toolbox.Path("prometheus")
	if err != nil {
		t.Fatal(err)
	}
	dir, listen := t.TempDir(), freePort(t)
	const life = 3 * time.Second // of the exporter, from its first scrape on
	var born sync.Once
	var death time.Time
	exporter := promtest.ServeHandler(t, func(w http.ResponseWriter, _ *http.Request) {
		born.Do(func() { death = time.Now().Add(life) })
		left := time.Until(death)
		if left < 0 {
			http.Error(w, "gone", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintf(w, "trainyard_switch_info{fabric=\"lab\",switch=\"l1\",tier=\"0\",asn=\"65001\",chassis_id=\"02\",balancing=\"hash\",vrf=\"default\"} 1\n"+
			"trainyard_switch_up{fabric=\"lab\",switch=\"l1\"} 1\n"+
			"trainyard_switch_port_transmit_bytes_total{fabric=\"lab\",switch=\"l1\",port=\"sp1\"} %d\n", (life - left).Milliseconds())
	})
	config := fmt.Sprintf("global: {scrape_interval: 500ms, scrape_timeout: 400ms}\nscrape_configs: [{job_name: x, static_configs: [{targets: [%q]}]}]\n", strings.TrimPrefix(exporter, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus: %s", out.String())
		}
	})
	c := fresh()
	c.URL = "http://" + listen
	o, err := prom.New(c)
	if err != nil {
		t.Fatal(err)
	}
	// until waits for a picture in which the switch is there or not.
	until := func(there bool) time.Time {
		var last error
		for range 500 {
			s, err := o.Observe(context.Background())
			last = err
			if err == nil && (len(s.Fabric.Switches) == 1) == there {
				if want := "no switch of any fabric is reported"; !there && !slices.Contains(s.Problems, want) {
					t.Errorf("problems %q, want %q", s.Problems, want)
				}
				return s.At
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("never saw the switch there = %v; last error %v", there, last)
		return time.Time{}
	}
	until(true)
	gone := until(false)
	// The last good scrape is at most one interval before the end; the picture holds for max_age after it, not longer.
	if after := gone.Sub(death); after < c.MaxAge-time.Second || after > c.MaxAge+5*time.Second {
		t.Errorf("the picture went %s after the exporter, want about %s", after, c.MaxAge)
	}
}

func fresh() prom.Config {
	c := prom.LabConfig()
	c.Timeout = 5 * time.Second
	return c
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
