// SPDX-License-Identifier: Apache-2.0

//go:build tools

package stories

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/trainyard/trainyard/rules"
)

// sameAnyway are mutants that no story can kill because they mean the same, with the reason.
var sameAnyway = map[string]string{
	"FabricLinkCongested: [max -> min] at the start": "a link has one series; the aggregation only drops labels",
}

// TestMutationCheck changes every threshold, operator and clause of every alert, one at a time, and asks whether a story
// fails. All mutants of a rule file stand as alerts of their own beside the originals, and every check of a story is asked
// of each mutant too, so that one run of promtool judges them all.
func TestMutationCheck(t *testing.T) {
	p, _ := rules.Lookup("production")
	files, err := rules.Files(p.Name)
	if err != nil {
		t.Fatal(err)
	}
	total, killed := 0, 0
	for _, name := range sortedKeys(files) {
		whatOf, dead := judge(t, p, name, files[name])
		for _, mutant := range slices.Sorted(maps.Keys(whatOf)) {
			what := whatOf[mutant]
			reason, same := sameAnyway[what]
			switch {
			case same && dead[mutant]:
				t.Errorf("killed after all, though listed as %q: %s", reason, what)
			case same:
				t.Logf("means the same (%s): %s", reason, what)
			case !dead[mutant]:
				t.Errorf("no story notices: %s", what)
			default:
				killed++
			}
			if !same {
				total++
			}
		}
	}
	t.Logf("mutation check of the alerts: %d of %d mutants killed", killed, total)
}

// judge makes the mutants of all alerts of a rule file and runs the stories that speak of these alerts. It returns what
// each mutant changes and which of them failed a check.
func judge(t *testing.T, p rules.Profile, name string, content []byte) (whatOf map[string]string, dead map[string]bool) {
	t.Helper()
	mutated, mutants, whatOf := mutate(t, p, content)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), mutated, 0o644); err != nil {
		t.Fatal(err)
	}
	var asked []Story
	short, _ := split(p)
	for _, s := range short {
		var checks []AlertCheck
		for _, c := range s.Alerts {
			for _, mutant := range mutants[c.Alert] {
				m := AlertCheck{At: c.At, Alert: mutant}
				for _, w := range c.Want {
					if c.Alert == linkCongested {
						w.Annotations = nil
					}
					m.Want = append(m.Want, w)
				}
				checks = append(checks, m)
			}
		}
		if s.Alerts, s.Values = checks, nil; len(checks) > 0 {
			asked = append(asked, s)
		}
	}
	out, err := promtool(t, "test", "rules", testFile(t, p, dir, 1, asked, name))
	if err == nil {
		t.Fatalf("promtool found nothing wrong with any mutant of %s", name)
	}
	dead = map[string]bool{}
	for _, m := range regexp.MustCompile(`alertname: ([A-Za-z0-9_]+), time:`).FindAllStringSubmatch(out, -1) {
		dead[m[1]] = true
	}
	if len(dead) == 0 {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	return whatOf, dead
}

// mutate adds the mutants of every alert to a rule file, by name of the alert.
func mutate(t *testing.T, p rules.Profile, content []byte) (mutated []byte, mutants map[string][]string, whatOf map[string]string) {
	t.Helper()
	var f struct {
		Groups []struct {
			Name     string           `yaml:"name"`
			Interval string           `yaml:"interval"`
			Rules    []map[string]any `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(content, &f); err != nil {
		t.Fatal(err)
	}
	mutants, whatOf = map[string][]string{}, map[string]string{}
	for i := range f.Groups {
		for _, original := range f.Groups[i].Rules {
			alert, ok := original["alert"].(string)
			if !ok {
				continue
			}
			add := func(what, key string, value any) {
				m := maps.Clone(original)
				mutant := fmt.Sprintf("%s_%d", alert, len(mutants[alert]))
				if m["alert"] = mutant; value == nil {
					delete(m, key)
				} else {
					m[key] = value
				}
				if alert == linkCongested {
					delete(m, "annotations") // they ask Prometheus, a hundred times over
				}
				f.Groups[i].Rules = append(f.Groups[i].Rules, m)
				mutants[alert] = append(mutants[alert], mutant)
				whatOf[mutant] = alert + ": " + what
			}
			for _, m := range Mutants(strings.TrimSpace(original["expr"].(string))) {
				add(m.What, "expr", m.Expr)
			}
			held := ticks(p, original["for"].(string))
			add("no for", "for", nil)
			add("twice the for", "for", fmt.Sprintf("%ds", int(2*float64(held)*tickSeconds(p))))
			if _, ok := original["keep_firing_for"]; ok {
				add("no keep_firing_for", "keep_firing_for", nil)
			}
		}
	}
	mutated, err := yaml.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return mutated, mutants, whatOf
}
