// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEveryRowKeepsTheRules(t *testing.T) {
	seen := map[string]string{}
	used := map[string]bool{}
	for _, f := range Families() {
		for _, r := range f.Rows {
			if err := r.Check(); err != nil {
				t.Errorf("family %s: %v", f.Title, err)
			}
			if other, ok := seen[r.Name]; ok {
				t.Errorf("metric %s stands in %q and in %q", r.Name, other, f.Title)
			}
			seen[r.Name] = f.Title
			for _, l := range r.Labels {
				used[l] = true
			}
			got, ok := Lookup(r.Name)
			if !ok || got.Help != r.Help {
				t.Errorf("Lookup(%q) does not find its row", r.Name)
			}
		}
	}
	for l := range labelWords {
		if !used[l] {
			t.Errorf("label %q is in the allow-list and nobody uses it", l)
		}
	}
	if _, ok := Lookup("trainyard_nothing"); ok {
		t.Error("Lookup finds a metric that is not there")
	}
}

func TestCheckRefuses(t *testing.T) {
	good := Row{Name: "trainyard_x_bytes_total", Help: "X.", Unit: Bytes, Kind: Counter, Labels: []string{"node"}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Row){
		"the label job":              func(r *Row) { r.Labels = []string{"job"} },
		"the label instance":         func(r *Row) { r.Labels = []string{"instance"} },
		"a label twice":              func(r *Row) { r.Labels = []string{"node", "node"} },
		"a counter without _total":   func(r *Row) { r.Name = "trainyard_x_bytes" },
		"a gauge with _total":        func(r *Row) { r.Kind = Gauge },
		"a unit that is not in name": func(r *Row) { r.Unit = Seconds },
		"a name with a unit without": func(r *Row) { r.Unit = None },
		"milliseconds":               func(r *Row) { r.Name, r.Unit = "trainyard_x_milliseconds_total", None },
		"info without _info":         func(r *Row) { r.Kind = Info },
		"a foreign prefix":           func(r *Row) { r.Name = "gpu_x_bytes_total" },
		"an unknown kind":            func(r *Row) { r.Kind = Unknown },
		"no help":                    func(r *Row) { r.Help = "" },
		"a hyphen":                   func(r *Row) { r.Name = "trainyard_x-y_bytes_total" },
		"shared, but not with them":  func(r *Row) { r.Shared = true },
	} {
		r := good
		change(&r)
		if r.Check() == nil {
			t.Errorf("%s: not refused: %+v", name, r)
		}
	}
}

func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "metrics.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != Reference() {
		t.Errorf("%s is out of date: run `go run ./exporter/catalog/cmd/reference`", path)
	}
}

func TestAlerts(t *testing.T) {
	for _, a := range Alerts() {
		if a.About == "" || !slices.Contains(a.Labels, "severity") || !slices.Contains(a.Labels, "owner") {
			t.Errorf("alert %s: wants a meaning, severity and owner", a.Name)
		}
		for _, l := range a.Labels {
			if _, ok := labelWords[l]; !ok && !slices.Contains(everyAlert, l) {
				t.Errorf("alert %s: label %q is not in the allow-list", a.Name, l)
			}
		}
	}
	labels := map[string]string{"severity": "warning", "owner": "fabric", "fabric": "f", "link": "f/l1:sp1", "switch": "l1", "port": "sp1"}
	if err := CheckLabels("FabricLinkCongested", labels); err != nil {
		t.Error(err)
	}
	labels["port"] = ""
	if err := CheckLabels("FabricLinkCongested", labels); err == nil || !strings.Contains(err.Error(), "port") {
		t.Errorf("an empty label was not named: %v", err)
	}
	if CheckLabels("Nobody", labels) == nil {
		t.Error("an alert outside the table was accepted")
	}
}
