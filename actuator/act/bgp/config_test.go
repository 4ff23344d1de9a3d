// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

const example = `
leaves:
  - name: l1
    address: 10.255.0.3
    asn: 65001
    password_file: /etc/trainyard/bgp-password
    uplinks: [10.0.11.1, 10.0.12.1]
prefixes: [10.3.0.0/16, 10.4.0.0/16]
pins:
  local_address: 10.255.0.254
  hold_time: 9s
  keepalive: 3s
weights:
  local_address: 10.255.0.253
  hold_time: 3s
  keepalive: 1s
ttl_security_hops: 1
restart_time: 60s
`

func TestConfigReadsFromYAMLOverTheDefaults(t *testing.T) {
	cfg := Default()
	if err := yaml.NewDecoder(strings.NewReader(example), yaml.Strict()).Decode(&cfg); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Leaves = []Leaf{{
		Name: "l1", Address: netip.MustParseAddr("10.255.0.3"), ASN: 65001, PasswordFile: "/etc/trainyard/bgp-password",
		Uplinks: []netip.Addr{netip.MustParseAddr("10.0.11.1"), netip.MustParseAddr("10.0.12.1")},
	}}
	want.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16"), netip.MustParsePrefix("10.4.0.0/16")}
	want.Pins.LocalAddress, want.Weights.LocalAddress = netip.MustParseAddr("10.255.0.254"), netip.MustParseAddr("10.255.0.253")
	want.TTLSecurityHops, want.RestartTime = 1, 60*time.Second
	if d := cmp.Diff(want, cfg, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestValidateNamesEachMistake(t *testing.T) {
	valid := func() Config {
		cfg := Default()
		if err := yaml.Unmarshal([]byte(example), &cfg); err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for want, change := range map[string]func(*Config){
		"leaves: none given":                     func(c *Config) { c.Leaves = nil },
		"leaves[1].name: l1 is given twice":      func(c *Config) { c.Leaves = append(c.Leaves, c.Leaves[0]) },
		"leaves[0].address: want an IPv4":        func(c *Config) { c.Leaves[0].Address = netip.Addr{} },
		"leaves[0].asn: missing":                 func(c *Config) { c.Leaves[0].ASN = 0 },
		"prefixes: none given":                   func(c *Config) { c.Prefixes = nil },
		"prefixes[0]: 0.0.0.0/0 is too wide":     func(c *Config) { c.Prefixes[0] = netip.MustParsePrefix("0.0.0.0/0") },
		"prefixes[1]: want an IPv4 prefix":       func(c *Config) { c.Prefixes[1] = netip.MustParsePrefix("10.3.1.1/16") },
		"pins.hold_time: want whole seconds":     func(c *Config) { c.Pins.HoldTime = 3500 * time.Millisecond },
		"pins.keepalive: want whole seconds":     func(c *Config) { c.Pins.Keepalive = 4 * time.Second },
		"weights.hold_time: want 3s":             func(c *Config) { c.Weights.HoldTime = 9 * time.Second },
		"weights.local_address: is the same":     func(c *Config) { c.Weights.LocalAddress = c.Pins.LocalAddress },
		"max_routes_per_leaf: want at least 1":   func(c *Config) { c.MaxRoutesPerLeaf = 0 },
		"max_next_hops: want 2 to 64":            func(c *Config) { c.MaxNextHops = 1 },
		"ttl_security_hops: want 0 (off) to 254": func(c *Config) { c.TTLSecurityHops = -1 },
		"restart_time: want whole seconds":       func(c *Config) { c.RestartTime = 2 * time.Hour },
		"max_pause: want more than 0":            func(c *Config) { c.MaxPause = 0 },
	} {
		cfg := valid()
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	cfg := valid()
	cfg.Weights.LocalAddress = netip.Addr{}
	if err := cfg.Validate(); err != nil || cfg.HasWeights() {
		t.Errorf("without weights: %v", err)
	}
}

func TestPassword(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	l := Leaf{Name: "l1", PasswordFile: path}
	if _, err := l.password(); err == nil || !strings.Contains(err.Error(), "read the BGP password of leaf l1") {
		t.Errorf("no file: %v", err)
	}
	for text, want := range map[string]string{"secret\n": "secret", "\n": "", strings.Repeat("x", 81): ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := l.password()
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%.10q: %q, %v", text, got, err)
		}
	}
}
