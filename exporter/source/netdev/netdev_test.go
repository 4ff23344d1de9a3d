// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"net/netip"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/trainyard/trainyard/exporter/source"
	"github.com/trainyard/trainyard/exporter/source/sourcetest"
)

func TestFakeMachines(t *testing.T) {
	addresses := map[string][]netip.Prefix{
		"rail0": {netip.MustParsePrefix("fe80::1/64"), netip.MustParsePrefix("10.1.1.2/24"), netip.MustParsePrefix("10.9.9.9/24")},
		"rail1": {netip.MustParsePrefix("fe80::2/64"), netip.MustParsePrefix("2001:db8::2/64")},
	}
	sourcetest.Run(t, func(root string) source.Source {
		s := New(Config{
			Procfs: filepath.Join(root, "proc"), Sysfs: filepath.Join(root, "sys"), Node: "n1", Fabric: "lab",
			Devices: regexp.MustCompile(`rail\d+|ens7`), Rail: regexp.MustCompile(`rail(\d+)`), Rails: map[string]int{"ens7": 3},
		})
		s.addresses = func(device string) ([]netip.Prefix, error) { return addresses[device], nil }
		return s
	})
}

// 100 Gbit/s: sysfs says 100000 Mbit/s; 100000 * 1,000,000 / 8 = 12,500,000,000 bytes per second.
func TestSpeedByHand(t *testing.T) {
	for _, s := range readOne(t, "a: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n", "100000\n") {
		if s.Row.Name == "node_network_speed_bytes" && s.Value != 12_500_000_000 {
			t.Errorf("speed is %v", s.Value)
		}
	}
	for _, s := range readOne(t, "a: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n", "-1\n") {
		if s.Row.Name == "node_network_speed_bytes" {
			t.Errorf("unknown speed is given as %v", s.Value)
		}
	}
}

// The devices of this machine, as the kernel gives them: whatever they are, loopback has no carrier and an address
// that is not global.
func TestThisMachine(t *testing.T) {
	s := New(Config{Procfs: "/proc", Sysfs: "/sys", Node: "n1", Devices: regexp.MustCompile(".*")})
	samples, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range samples {
		if sample.Row.Name == "trainyard_nic_info" && sample.Label("device") == "lo" {
			if sample.Label("address") != "" {
				t.Errorf("loopback has the address %s", sample.Label("address"))
			}
			return
		}
	}
	t.Error("no loopback device found")
}
