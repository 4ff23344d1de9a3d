// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/trainyard/trainyard/exporter/source"
)

// readOne reads a machine with one device "a" of the given line of net/dev and sysfs speed.
func readOne(t *testing.T, line, speed string) []source.Sample {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"net/dev": "heading | x\n" + line, "class/net/a/speed": speed} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := New(Config{Procfs: root, Sysfs: root, Node: "n1", Devices: regexp.MustCompile("a")})
	s.addresses = func(string) ([]netip.Prefix, error) { return nil, nil }
	samples, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return samples
}
