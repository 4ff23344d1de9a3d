// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/exporter/config"
	"github.com/trainyard/trainyard/exporter/source/job"
)

// runs starts an exporter and returns its address; it is stopped, and its end checked, when the test ends.
func runs(t *testing.T, o Options) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, o, slog.New(slog.DiscardHandler), func(a net.Addr) { address <- a.String() })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the exporter ended with %v", err)
		}
	})
	select {
	case a := <-address:
		return "http://" + a
	case err := <-ended:
		t.Fatalf("the exporter did not start: %v", err)
		return ""
	}
}

// scrape asks until the page holds the wanted text: the first snapshot comes some milliseconds after the start.
func scrape(t *testing.T, url, wanted string) string {
	t.Helper()
	body := ""
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("scrape: %v; so far without %q:\n%s", err, wanted, body)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if body = string(b); strings.Contains(body, wanted) {
			return body
		}
	}
}

// The node role on the machine that the test runs on: what it serves is what the kernel says.
func TestNodeRoleOnThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/buddyinfo"); err != nil {
		t.Skip("no /proc/buddyinfo: not Linux") // the node role is for Linux
	}
	jobs := t.TempDir()
	now := time.Now()
	report := job.Report{JobID: "job-a", Gang: "g", Collective: "ring", Ranks: 1, Connections: 1, Node: "n1", Started: now.Add(-time.Minute), Written: now,
		Steps: 7, StepSeconds: 3.5, Rails: []job.Rail{{Rail: 0, Address: netip.MustParseAddr("10.1.1.2"), Bytes: 9}}}
	if err := job.Write(jobs, report); err != nil {
		t.Fatal(err)
	}
	cfg := config.DefaultNode()
	cfg.Name, cfg.Interval, cfg.JobDir, cfg.Devices = "n1", 100*time.Millisecond, jobs, ".*"
	url := runs(t, Options{Role: RoleNode, Listen: "127.0.0.1:0", Node: cfg})
	text := scrape(t, url, `trainyard_job_steps_total{job_id="job-a",gang="g",rank="0",node="n1"} 7`)
	for _, want := range []string{
		`trainyard_source_success{source="memory"} 1`, `trainyard_source_success{source="netdev"} 1`,
		`trainyard_source_success{source="netstat"} 1`, `trainyard_source_success{source="job"} 1`,
		`trainyard_memory_page_size_bytes{node="n1"} ` + strconv.Itoa(os.Getpagesize()),
		`node_vmstat_compact_stall{node="n1"} `, `node_netstat_Tcp_RetransSegs{node="n1"} `,
		`node_network_receive_bytes_total{node="n1",device="lo"} `, `role="node"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %s", want)
		}
	}
	// Everything that describes the node carries its name.
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "node_") && !strings.Contains(line, `node="n1"`) {
			t.Errorf("no node: %s", line)
		}
	}
	// Each zone that the kernel lists is there with the orders that it lists.
	buddy, err := os.ReadFile("/proc/buddyinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(buddy)) {
		f := strings.Fields(strings.ReplaceAll(line, ",", " "))
		prefix := `trainyard_memory_unusable_free_index{node="n1",numa_node="` + f[1] + `",zone="` + f[3] + `",order="`
		if n := strings.Count(text, "\n"+prefix); n != len(f)-4 {
			t.Errorf("zone %s has %d indices, the kernel lists %d orders", f[3], n, len(f)-4)
		}
	}
}

// A switch that cannot be reached is a clear 0, and the exporter serves on.
func TestFabricRoleWithAnUnreachableSwitch(t *testing.T) {
	nobody, err := net.ListenPacket("udp", "127.0.0.1:0") // a port that is ours and that never answers
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	cfg := config.DefaultFabric()
	cfg.Name, cfg.Timeout, cfg.Retries, cfg.Interval = "lab", 20*time.Millisecond, 0, 100*time.Millisecond
	cfg.Credentials = map[string]config.Credentials{"ro": {Version: config.V2c, Community: config.NewSecret("public")}}
	cfg.Switches = []config.Switch{{Name: "l1", Address: nobody.LocalAddr().String(), Credentials: "ro"}}
	url := runs(t, Options{Role: RoleFabric, Listen: "127.0.0.1:0", Fabric: cfg})
	text := scrape(t, url, `trainyard_switch_up{fabric="lab",switch="l1"} 0`)
	if !strings.Contains(text, `trainyard_source_success{source="snmp/l1"} 0`) || strings.Contains(text, "trainyard_switch_port") {
		t.Errorf("served\n%s", text)
	}
}

// Reachable from elsewhere only with a password, and then only with the right one.
func TestPasswords(t *testing.T) {
	web := filepath.Join(t.TempDir(), "web.yaml")
	const bcryptOfSecret = "$2a$04$vFQUWFsIyIpzFCGhVKOmsuBGRRyUE08jI0CIoWNAj1TwPESep1XqS" // cost 4
	if err := os.WriteFile(web, []byte("basic_auth_users:\n  prometheus: "+bcryptOfSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.DefaultNode()
	cfg.Name = "n1"
	if err := Run(t.Context(), Options{Role: RoleNode, Listen: "0.0.0.0:0", Node: cfg}, slog.New(slog.DiscardHandler), nil); err == nil || !strings.Contains(err.Error(), "--web.config.file") {
		t.Errorf("without credentials: %v", err)
	}
	url := runs(t, Options{Role: RoleNode, Listen: "0.0.0.0:0", WebConfigFile: web, Node: cfg})
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "]:")
	for password, want := range map[string]int{"secret": 200, "wrong": 401, "": 401} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" {
			req.SetBasicAuth("prometheus", password)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("password %q: %d, want %d", password, resp.StatusCode, want)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	node, fabric := config.DefaultNode(), config.DefaultFabric()
	node.Name, node.Rail = "n1", "rail"
	for what, o := range map[string]Options{
		"$.rail":     {Role: RoleNode, Listen: "127.0.0.1:0", Node: node},
		"$.switches": {Role: RoleFabric, Listen: "127.0.0.1:0", Fabric: fabric},
		"--role":     {Role: "both", Listen: "127.0.0.1:0"},
		"--listen":   {Role: RoleNode, Listen: ":9600"},
		"nowhere":    {Role: RoleNode, Listen: "127.0.0.1:0", WebConfigFile: "/nowhere"},
	} {
		if _, err := Build(o, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
