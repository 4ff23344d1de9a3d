// SPDX-License-Identifier: Apache-2.0

package netstat

import (
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/exporter/catalog"
	"github.com/trainyard/trainyard/exporter/source"
	"github.com/trainyard/trainyard/exporter/source/sourcetest"
)

func TestFakeMachines(t *testing.T) {
	sourcetest.Run(t, func(root string) source.Source { return New(filepath.Join(root, "proc"), "n1") })
}

func TestEveryFieldHasItsRow(t *testing.T) {
	for proto, fields := range catalog.NetstatFields {
		for _, f := range fields {
			if _, ok := catalog.Lookup("node_netstat_" + proto + "_" + f); !ok {
				t.Errorf("%s %s is not in the catalogue", proto, f)
			}
		}
	}
}

// The values are the fourth, second and first after the names' own places: in "Tcp: A RetransSegs / Tcp: 1 25" the
// second name goes with the second value, 25.
func TestNamesGoWithValues(t *testing.T) {
	samples, err := New("", "n1").parse([]byte("Tcp: A RetransSegs B OutRsts\nTcp: -1 25 3 4\n"))
	if err != nil || len(samples) != 2 || samples[0].Value != 25 || samples[1].Value != 4 {
		t.Errorf("got %v, %v", samples, err)
	}
}

func FuzzNetstat(f *testing.F) {
	f.Add([]byte("Tcp: A RetransSegs B OutRsts\nTcp: -1 25 3 4\nTcp:\n"))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = New("", "n1").parse(text) })
}
