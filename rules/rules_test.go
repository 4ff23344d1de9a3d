// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/trainyard/trainyard/exporter/catalog"
)

type ruleFile struct {
	Groups []struct {
		Name     string `yaml:"name"`
		Interval string `yaml:"interval"`
		Rules    []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	KeepFiring  string            `yaml:"keep_firing_for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func allRules(t *testing.T, profile string) []rule {
	t.Helper()
	files, err := Files(profile)
	if err != nil {
		t.Fatal(err)
	}
	var all []rule
	for name, content := range files {
		var f ruleFile
		if err := yaml.UnmarshalWithOptions(content, &f, yaml.Strict()); err != nil {
			t.Fatalf("%s/%s: %v", profile, name, err)
		}
		for _, g := range f.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

func TestCommittedRulesAreCurrent(t *testing.T) {
	for _, p := range Profiles {
		want, err := Render(p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Files(p.Name)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Errorf("%s holds %d files, the templates make %d", p.Name, len(got), len(want))
		}
		for name := range want {
			if string(got[name]) != string(want[name]) {
				t.Errorf("%s/%s is out of date: go run ./rules/cmd/render", p.Name, name)
			}
		}
	}
}

// An alert without a runbook wakes somebody who then does not know what to do. That each alert carries the labels of the
// catalogue, also those that its expression gives, is checked on the alerts that fire in the stories.
func TestEveryAlert(t *testing.T) {
	for _, p := range Profiles {
		seen := map[string]bool{}
		for _, r := range allRules(t, p.Name) {
			if r.Alert == "" {
				continue
			}
			seen[r.Alert] = true
			if _, ok := catalog.LookupAlert(r.Alert); !ok {
				t.Errorf("%s: alert %s is not in the catalogue", p.Name, r.Alert)
			}
			if r.Labels["owner"] == "" {
				t.Errorf("%s: alert %s has no owner", p.Name, r.Alert)
			}
			if !slices.Contains([]string{"info", "warning", "critical"}, r.Labels["severity"]) {
				t.Errorf("%s: alert %s has severity %q", p.Name, r.Alert, r.Labels["severity"])
			}
			for _, a := range []string{"summary", "description", "runbook_url"} {
				if r.Annotations[a] == "" {
					t.Errorf("%s: alert %s has no %s", p.Name, r.Alert, a)
				}
			}
			path := filepath.Join("..", r.Annotations["runbook_url"])
			book, err := os.ReadFile(path)
			if err != nil {
				t.Errorf("%s: alert %s: %v", p.Name, r.Alert, err)
			}
			for _, part := range []string{"# " + r.Alert, "## What it means", "## Look first", "## What to do", "## When it is wrong"} {
				if !strings.Contains(string(book), part) {
					t.Errorf("%s lacks %q", path, part)
				}
			}
		}
		for _, a := range catalog.Alerts() {
			if !seen[a.Name] {
				t.Errorf("%s: no rule raises %s of the catalogue", p.Name, a.Name)
			}
		}
	}
}

var metric = regexp.MustCompile(`\b(trainyard|node)_[a-zA-Z0-9_]+`)

// A misspelt metric is an alert that never fires.
func TestEveryMetricIsInTheCatalogue(t *testing.T) {
	for _, r := range allRules(t, "production") {
		for _, name := range metric.FindAllString(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(r.Expr, ""), -1) {
			if name == "numa_node" || name == "trainyard_" {
				continue
			}
			if _, ok := catalog.Lookup(name); !ok {
				t.Errorf("rule %s%s uses %s, which is not in the catalogue", r.Record, r.Alert, name)
			}
		}
	}
}

var recorded = regexp.MustCompile(`\b[a-z_]+:[a-z_]+(:[a-z_]+)?`)

// A rule sees what the rules above it have recorded at the same moment, and what stands below it an interval late.
func TestRulesUseOnlyWhatStandsAbove(t *testing.T) {
	for _, p := range Profiles {
		files, err := Files(p.Name)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			var f ruleFile
			if err := yaml.Unmarshal(content, &f); err != nil {
				t.Fatal(err)
			}
			for _, g := range f.Groups {
				above := map[string]bool{}
				for _, r := range g.Rules {
					for _, used := range recorded.FindAllString(r.Expr, -1) {
						if !above[used] {
							t.Errorf("%s/%s: %s%s uses %s, which is not recorded above it", p.Name, name, r.Record, r.Alert, used)
						}
					}
					above[r.Record] = true
				}
			}
		}
	}
}
