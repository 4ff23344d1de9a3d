// SPDX-License-Identifier: Apache-2.0

//go:build lab

package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
	"github.com/trainyard/trainyard/test/lab"
)

// page is what one scrape gave: value by metric and labels, "name{a=1,b=2}" with the labels sorted by name.
type page map[string]float64

func scrape(ctx context.Context, client *http.Client, url string) (page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	p := page{}
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
			p[name+"{"+strings.Join(labels, ",")+"}"] = value
		}
	}
	return p, nil
}

// until scrapes until ok says nothing more; what it says last is the failure.
func until(t *testing.T, l *lab.Lab, place, url string, limit time.Duration, ok func(page) string) page {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	client := l.HTTPClient(place)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	complaint := "nothing was scraped"
	for {
		p, err := scrape(ctx, client, url)
		switch {
		case err == nil:
			if complaint = ok(p); complaint == "" {
				return p
			}
		case ctx.Err() == nil:
			complaint = err.Error()
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %v: %s", limit, complaint)
		case <-tick.C:
		}
	}
}

// want says which of the series are missing or have another value.
func want(p page, series map[string]float64) string {
	var wrong []string
	for s, v := range series {
		if got, ok := p[s]; !ok || got != v {
			wrong = append(wrong, fmt.Sprintf("%s is %v (there: %v), want %v", s, got, ok, v))
		}
	}
	return strings.Join(wrong, "\n")
}

func linkInfo(direction, ecmp string, from, to ident.Port, kind string) string {
	// sorted by label name, as the parser gives them: in the order of the exposition
	return fmt.Sprintf("trainyard_link_info{fabric=lab,link=%s,switch=%s,port=%s,peer_kind=%s,peer=%s,peer_port=%s,peer_link=%s,direction=%s,ecmp_group=%s}",
		from, from.Device, from.Name, kind, to.Device, to.Name, to, direction, ecmp)
}

// TestFabricRoleOnTheLab runs the program against six real switches: every cable of the plan is found from LLDP, BGP
// and addresses are right, counters are the kernel's, a cut cable and a stopped agent show within seconds, and the
// others go on.
func TestFabricRoleOnTheLab(t *testing.T) {
	if err := lab.Require(); err != nil {
		t.Fatal(err)
	}
	l, err := lab.Up(t.Context(), lab.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	program := filepath.Join(dir, "trainyard-exporter")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "..").CombinedOutput(); err != nil {
		t.Fatalf("build the exporter: %v\n%s", err, out)
	}
	plan := lab.Plan(false)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	defer func() {
		if t.Failed() {
			b, _ := os.ReadFile(log.Name())
			t.Logf("the exporter's log:\n%s", b)
		}
	}()
	exporter, err := l.Start(lab.Mgmt, lab.Command{Argv: []string{program, "--role=fabric", "--config.file=" + writeInventory(t, dir, plan)}, Stderr: log})
	if err != nil {
		t.Fatal(err)
	}
	const url = "http://127.0.0.1:9601/metrics"

	series := map[string]float64{}
	for _, s := range plan.Switches {
		series[fmt.Sprintf("trainyard_switch_up{fabric=lab,switch=%s}", s.Name)] = 1
		series[fmt.Sprintf("trainyard_link_unresolved{fabric=lab,switch=%s}", s.Name)] = 0
	}
	for _, c := range plan.Cables {
		a, b := ident.Port{Fabric: "lab", Device: c.A, Name: c.APort}, ident.Port{Fabric: "lab", Device: c.B, Name: c.BPort}
		series[fmt.Sprintf("trainyard_switch_port_up{fabric=lab,switch=%s,port=%s}", c.A, c.APort)] = 1
		series[fmt.Sprintf("trainyard_switch_port_address_info{fabric=lab,switch=%s,port=%s,address=%s}", c.A, c.APort, c.AAddr)] = 1
		if !c.Fabric {
			series[linkInfo("access", "", a, b, "node")] = 1
			continue
		}
		series[linkInfo("up", "lab/"+c.A+":up", a, b, "switch")] = 1
		series[linkInfo("down", "lab/"+c.A+":down", b, a, "switch")] = 1
		spine, _ := plan.Switch(c.B)
		series[fmt.Sprintf("trainyard_bgp_peer_established{fabric=lab,switch=%s,peer=%s}", c.A, c.BAddr.Addr())] = 1
		series[fmt.Sprintf("trainyard_bgp_peer_info{fabric=lab,switch=%s,peer=%s,remote_asn=%d,port=%s}", c.A, c.BAddr.Addr(), spine.ASN, c.APort)] = 1
		series[fmt.Sprintf("trainyard_switch_port_speed_bytes_per_second{fabric=lab,switch=%s,port=%s}", c.A, c.APort)] = float64(l.RateMbit(c.A, c.APort)) * 1e6 / 8
	}
	until(t, l, lab.Mgmt, url, 30*time.Second, func(p page) string { return want(p, series) })

	t.Run("counters are the kernel's", func(t *testing.T) {
		if _, err := l.Exec(t.Context(), "n1", "ping", "-c", "200", "-i", "0.005", "-s", "1400", "-q", "-I", "10.1.1.2", "10.3.5.2"); err != nil {
			t.Fatal(err)
		}
		before, err := l.PortCounters("l1", "h1")
		if err != nil {
			t.Fatal(err)
		}
		name := "trainyard_switch_port_receive_bytes_total{fabric=lab,switch=l1,port=h1}"
		p := until(t, l, lab.Mgmt, url, 5*time.Second, func(p page) string {
			if p[name] < float64(before.RxBytes) {
				return fmt.Sprintf("%s is %v, the kernel had %d", name, p[name], before.RxBytes)
			}
			return ""
		})
		after, err := l.PortCounters("l1", "h1")
		if err != nil {
			t.Fatal(err)
		}
		if p[name] > float64(after.RxBytes) || before.RxBytes < 200*1400 {
			t.Errorf("%s is %v, the kernel has %d to %d", name, p[name], before.RxBytes, after.RxBytes)
		}
	})

	t.Run("a cut cable", func(t *testing.T) {
		if err := l.CutLink("s1", "l3"); err != nil {
			t.Fatal(err)
		}
		down := map[string]float64{}
		for _, end := range []string{"switch=s1,port=lf3", "switch=l3,port=sp1"} {
			down["trainyard_switch_port_up{fabric=lab,"+end+"}"] = 0
			down["trainyard_switch_port_flaps_total{fabric=lab,"+end+"}"] = 1
		}
		until(t, l, lab.Mgmt, url, 5*time.Second, func(p page) string { return want(p, down) })
		until(t, l, lab.Mgmt, url, 20*time.Second, func(p page) string {
			return want(p, map[string]float64{"trainyard_bgp_peer_established{fabric=lab,switch=l3,peer=10.0.31.1}": 0})
		})
		if err := l.RestoreLink("s1", "l3"); err != nil {
			t.Fatal(err)
		}
		until(t, l, lab.Mgmt, url, 30*time.Second, func(p page) string { return want(p, series) })
	})

	t.Run("a node", func(t *testing.T) {
		conf := filepath.Join(dir, "node.yaml")
		if err := os.WriteFile(conf, []byte("fabric: lab\ndevices: rail\\d+\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		node, err := l.Start("n5", lab.Command{Argv: []string{program, "--role=node", "--node-name=n5", "--interval=1s", "--config.file=" + conf}, Stderr: log})
		if err != nil {
			t.Fatal(err)
		}
		defer node.Stop(5 * time.Second)
		nics := map[string]float64{}
		host, _ := plan.Host("n5")
		for _, n := range host.NICs {
			nics[fmt.Sprintf("trainyard_nic_info{node=n5,device=%s,rail=%d,address=%s,fabric=lab}", n.Device, n.Rail, n.Addr)] = 1
			nics[fmt.Sprintf("node_network_up{node=n5,device=%s}", n.Device)] = 1
		}
		p := until(t, l, "n5", "http://127.0.0.1:9600/metrics", 10*time.Second, func(p page) string { return want(p, nics) })
		// The counters are those of the node's namespace, not of the machine.
		kernel, err := l.NetSNMP("n5")
		if err != nil {
			t.Fatal(err)
		}
		if got := p["node_netstat_Tcp_OutRsts{node=n5}"]; got > float64(kernel["Tcp.OutRsts"]) {
			t.Errorf("resets of the node are %v, the kernel has %d", got, kernel["Tcp.OutRsts"])
		}
	})

	t.Run("an agent that ends", func(t *testing.T) {
		conf := filepath.Join(l.Dir, "l2", "snmp", "snmpd.pid")
		pid, err := os.ReadFile(conf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Exec(t.Context(), "l2", "kill", "-KILL", strings.TrimSpace(string(pid))); err != nil {
			t.Fatal(err)
		}
		p := until(t, l, lab.Mgmt, url, 10*time.Second, func(p page) string {
			return want(p, map[string]float64{"trainyard_switch_up{fabric=lab,switch=l2}": 0, "trainyard_source_success{source=snmp/l2}": 0})
		})
		for s := range p {
			if strings.HasPrefix(s, "trainyard_switch_port") && strings.Contains(s, "switch=l2,") {
				t.Errorf("still there: %s", s)
			}
		}
		if msg := want(p, map[string]float64{"trainyard_switch_up{fabric=lab,switch=l1}": 1, "trainyard_switch_up{fabric=lab,switch=s2}": 1}); msg != "" {
			t.Error(msg)
		}
	})

	exporter.Stop(5 * time.Second)
	if b, _ := os.ReadFile(log.Name()); !strings.Contains(string(b), "exporter stopped") {
		t.Error("the exporter did not stop in good order")
	}
}

// writeInventory asks one leaf by community and all other switches by SNMPv3.
func writeInventory(t *testing.T, dir string, plan lab.Topology) string {
	t.Helper()
	for name, text := range map[string]string{"community": lab.SNMPCommunity, "auth": lab.SNMPAuthPass, "priv": lab.SNMPPrivPass} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `fabric: lab
interval: 1020ms
topology_interval: 2s
timeout: 500ms
credentials:
  v2: {version: v2c, community: {file: %[1]s/community}}
  v3: {version: v3, user: %[2]s, auth: sha256, auth_pass: {file: %[1]s/auth}, priv: aes, priv_pass: {file: %[1]s/priv}}
nodes: {pattern: '(n\d+)'}
switches:
`, dir, lab.SNMPUser)
	for _, s := range plan.Switches {
		credentials := "v3"
		if s.Name == "l1" {
			credentials = "v2"
		}
		fmt.Fprintf(&b, "  - {name: %s, address: %s, tier: %d, balancing: hash, vrf: default, credentials: %s, ports: '(sp|lf|h)\\d+'}\n", s.Name, s.Mgmt, s.Tier, credentials)
	}
	path := filepath.Join(dir, "inventory.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
