// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/config"
)

const whole = `profile: lab
listen: 127.0.0.1:9610
prometheus:
  url: http://127.0.0.1:9090
  fabric: lab
  window: 4s
alertmanager:
  url: http://127.0.0.1:9093
  receiver: actuator
  filter: ['fabric="lab"']
  every: 2s
journal_dir: journal
policies_file: policies.yaml
stop_file: /run/trainyard/stop
lease: 15s
driver:
  kind: bgp
  bgp:
    leaves:
      - {name: l1, address: 10.255.0.3, asn: 65001, password_file: secrets/l1}
    prefixes: [10.1.0.0/16]
    pins: {local_address: 10.255.0.254}
log: {level: debug, format: json}
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "actuator.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	path := write(t, whole)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	if c.JournalDir != filepath.Join(dir, "journal") || c.StopFile != "/run/trainyard/stop" || c.Driver.BGP.Leaves[0].PasswordFile != filepath.Join(dir, "secrets/l1") {
		t.Errorf("paths %q %q %q", c.JournalDir, c.StopFile, c.Driver.BGP.Leaves[0].PasswordFile)
	}
	if c.Prometheus.Window != 4*time.Second || c.Prometheus.MaxAge != 3*time.Second {
		t.Errorf("window %s as written, age %s from the profile", c.Prometheus.Window, c.Prometheus.MaxAge)
	}
	if c.Driver.BGP.Pins.HoldTime != 9*time.Second || c.Driver.BGP.Pins.LocalAddress != netip.MustParseAddr("10.255.0.254") {
		t.Errorf("pins %+v", c.Driver.BGP.Pins)
	}
}

func TestDefaults(t *testing.T) {
	for _, p := range []config.Profile{config.Production, config.Lab} {
		if err := config.Default(p).Validate(); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	c, err := config.Load(write(t, ""))
	if err != nil || c.Profile != config.Production || c.Prometheus.Window != time.Minute || c.Driver.Kind != config.None {
		t.Errorf("an empty file gives %+v, %v", c, err)
	}
}

// TestRefused: each fault is named by its YAML path, or by line and column where the YAML itself is at fault.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "listn: 127.0.0.1:1\n", `[1:1] unknown field "listn"`},
		{"unknown key in a section", "prometheus:\n  url: http://h\n  windw: 3s\n", `[3:3] unknown field "windw"`},
		{"doubled key", "lease: 3s\nlease: 4s\n", `mapping key "lease" already defined`},
		{"bare number for a duration", "lease: 3\n", "[1:8]"},
		{"no YAML", "a: [", "[1:4]"},
		{"profile", "profile: test\n", `$.profile: "test" is none of production, lab`},
		{"open to the world", "listen: 0.0.0.0:9610\n", `$.listen: "0.0.0.0:9610" is reachable from other machines and no credentials are configured: set web.tokens_file, or listen on 127.0.0.1`},
		{"open to the world by name", "listen: :9610\n", `$.listen: ":9610" is reachable`},
		{"no port", "listen: 127.0.0.1\n", `$.listen: "127.0.0.1" is not host:port`},
		{"half of TLS", "web: {tls_cert_file: c.pem}\n", "$.web.tls_cert_file: certificate and key come together"},
		{"prometheus", "prometheus: {url: 'prometheus:9090', timeout: 0s}\n", "$.prometheus.timeout: 0s is outside"},
		{"both faults of one section", "prometheus: {url: 'prometheus:9090', timeout: 0s}\n", "$.prometheus.url: scheme"},
		{"alertmanager", "alertmanager: {every: 1ms}\n", "$.alertmanager.every: 1ms is outside 100ms..1h"},
		{"journal", "journal_dir: ''\n", "$.journal_dir: empty"},
		{"lease", "lease: 1h\n", "$.lease: 1h0m0s is outside"},
		{"driver", "driver: {kind: snmp}\n", `$.driver.kind: "snmp" is none of none, bgp`},
		{"bgp", "driver: {kind: bgp}\n", "$.driver.bgp.leaves: none given"},
		{"bgp leaf", "driver: {kind: bgp, bgp: {leaves: [{name: l1, asn: 1}]}}\n", "$.driver.bgp.leaves[0].address: want an IPv4 address"},
		{"log level", "log: {level: loud}\n", `$.log.level: "loud" is none of debug, info, warn, error`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := config.Load(write(t, c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error\n%v\nwant %q in it", err, c.want)
			}
		})
	}
	if _, err := config.Load("/does/not/exist.yaml"); err == nil || !strings.Contains(err.Error(), "read configuration: open /does/not/exist.yaml") {
		t.Errorf("error %v", err)
	}
}
