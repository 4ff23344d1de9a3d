// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/rules"
)

var update = flag.Bool("update", false, "copy the production rules into the chart anew")

// Helm reads no file outside the chart, so the chart holds a copy of the production rules; it must be the same.
func TestChartHasTheProductionRules(t *testing.T) {
	files, err := rules.Files("production")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("trainyard", "rules")
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(there) != len(files) {
		t.Errorf("the chart has %d rule files, production has %d", len(there), len(files))
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != string(want) {
			t.Errorf("%s of the chart is out of date: go test ./deploy/helm -update", name)
		}
	}
}
