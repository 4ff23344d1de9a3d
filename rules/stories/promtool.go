// SPDX-License-Identifier: Apache-2.0

// Package stories tells what must and what must not raise an alert, as small yards over time, and renders the stories as
// promtool's unit tests for either profile. promtool is the judge: nothing here evaluates PromQL.
//
// The rendered files are not committed, against our custom: each is two megabytes of series that say less than the story
// that they come from. To read one: go run ./rules/cmd/render -stories DIR.
package stories

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/trainyard/trainyard/rules"
	"github.com/trainyard/trainyard/rules/yard"
)

// Story is one yard and what is asked of it. Times are ticks: scrapes since the start.
type Story struct {
	Name   string
	Phases []int // lengths in ticks; change, if it comes, comes with the second
	Yard   func(*yard.Yard)
	Alerts []AlertCheck
	Values []ValueCheck
	Rules  string // the one rule file that it is about; "" = it wants to see all of them
	Long   bool   // half an hour of it: rules are evaluated less often there
}

// AlertCheck says which alerts of a name fire at a tick: these and no others.
type AlertCheck struct {
	At    int
	Alert string
	Want  []Alert
}

// Alert is one firing alert, without its name.
type Alert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// ValueCheck says what an expression gives at a tick.
type ValueCheck struct {
	At   int
	Expr string
	Want []Sample
}

// Sample is one sample of an expected vector.
type Sample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

type file struct {
	RuleFiles    []string `yaml:"rule_files"`
	Interval     string   `yaml:"evaluation_interval"`
	FuzzyCompare bool     `yaml:"fuzzy_compare"`
	Tests        []test   `yaml:"tests"`
}

type test struct {
	Name     string       `yaml:"name"`
	Interval string       `yaml:"interval"`
	Input    []yard.Input `yaml:"input_series"`
	Alerts   []alertTest  `yaml:"alert_rule_test,omitempty"`
	Values   []valueTest  `yaml:"promql_expr_test,omitempty"`
}

type alertTest struct {
	At    string  `yaml:"eval_time"`
	Alert string  `yaml:"alertname"`
	Want  []Alert `yaml:"exp_alerts"`
}

type valueTest struct {
	Expr string   `yaml:"expr"`
	At   string   `yaml:"eval_time"`
	Want []Sample `yaml:"exp_samples"`
}

// Render makes the promtool file of a profile: its short stories, or the long ones. Rule files are those of
// the given names (all of the profile if there are none) in dir. With every greater than one, rules are evaluated at every
// so many ticks only; the data is as dense as ever.
func Render(p rules.Profile, dir string, every int, stories []Story, files ...string) ([]byte, error) {
	tick, err := time.ParseDuration(p.Scrape)
	if err != nil {
		return nil, fmt.Errorf("scrape interval of profile %s: %w", p.Name, err)
	}
	if len(files) == 0 {
		all, err := rules.Files(p.Name)
		if err != nil {
			return nil, err
		}
		files = sortedKeys(all)
	}
	at := func(ticks int) string { // promtool knows no fractions
		return fmt.Sprintf("%dms", (time.Duration(ticks) * tick).Milliseconds())
	}
	f := file{Interval: at(every), FuzzyCompare: true}
	for _, name := range files {
		f.RuleFiles = append(f.RuleFiles, filepath.Join(dir, name))
	}
	for _, s := range stories {
		y := yard.New(tick, s.Phases...)
		if s.Yard != nil {
			s.Yard(y)
		}
		t := test{Name: s.Name, Interval: at(1), Input: y.Inputs()}
		for _, c := range s.Alerts {
			t.Alerts = append(t.Alerts, alertTest{at(c.At), c.Alert, c.Want})
		}
		for _, c := range s.Values {
			t.Values = append(t.Values, valueTest{c.Expr, at(c.At), c.Want})
		}
		f.Tests = append(f.Tests, t)
	}
	out, err := yaml.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("spell the stories of profile %s: %w", p.Name, err)
	}
	return out, nil
}
