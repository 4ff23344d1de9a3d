// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/config"
	"github.com/trainyard/trainyard/actuator/policy"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return t0.Add(seconds(s)) }

// A span takes only steps that lie wholly inside it, and the stream's rate from the looks at its edges.
func TestSpan(t *testing.T) {
	steps := map[string][]step{jobA: {{at(0.2), 0.2}, {at(0.4), 0.2}, {at(1.4), 1}, {at(2.4), 1}, {at(2.6), 0.2}}}
	var looks []look
	for s := 0.0; s <= 3; s += 0.5 {
		looks = append(looks, look{At: at(s), Steps: steps, StreamBytes: 100 * s})
	}
	s := spanOf(looks, at(0.3), at(2.5))
	if s.Steps != 2 || s.Step != 1 || s.WorstStep != 1 || math.Abs(s.Stream-100) > 1e-9 || !math.IsNaN(s.StepB) {
		t.Errorf("span is %+v: want the two steps of 1 s and 100 bytes a second", s)
	}
	if s := spanOf(looks, at(5), at(6)); !math.IsNaN(s.Step) || !math.IsNaN(s.Stream) {
		t.Errorf("a span without data is %+v", s)
	}
}

// good are two runs that show what they should.
func good() (watch, act result) {
	before, slow := span{Step: 0.2}, span{Step: 0.4}
	watch = result{Mode: policy.Watch, Before: before, During: slow, After: slow, Congested: at(0), Alert: at(2)}
	act = result{Mode: policy.Act, Before: before, During: slow, After: before, Congested: at(0), Alert: at(2), Route: at(3), Verified: at(5), Writes: 1, Routes: []string{"x"}}
	return watch, act
}

// Each promise of the demo, broken by itself, is named.
func TestCheck(t *testing.T) {
	if errs := check(good()); errs != nil {
		t.Fatalf("two good runs fail: %v", errs)
	}
	for want, spoil := range map[string]func(watch, act *result){
		"watch mode wrote 1 routes":    func(w, _ *result) { w.Writes = 1 },
		"congestion did not last":      func(w, _ *result) { w.After.Step = 0.2 },
		"no alert came":                func(w, _ *result) { w.Alert = time.Time{} },
		"act mode wrote no route":      func(_, a *result) { a.Route = time.Time{} },
		"not verified":                 func(_, a *result) { a.Verified = time.Time{} },
		"more than 1.10 times":         func(_, a *result) { a.After.Step = 0.23 },
		"less than 1.5 times better":   func(_, a *result) { a.During.Step = 0.25 },
		"1 connections were reset":     func(_, a *result) { a.Resets = 1 },
		"act mode: a step takes NaN s": func(_, a *result) { a.After.Step = math.NaN() },
	} {
		w, a := good()
		spoil(&w, &a)
		var all []string
		for _, err := range check(w, a) {
			all = append(all, err.Error())
		}
		if text := strings.Join(all, "\n"); !strings.Contains(text, want) {
			t.Errorf("want %q, got %q", want, text)
		}
	}
}

func TestTable(t *testing.T) {
	w, a := good()
	a.Forecast = &forecast{0.19, 0.2, 0.21}
	var b strings.Builder
	printTable(&b, w, a, false)
	for _, want := range []string{"0.400 s (2.00 x)", "0.200 s (1.00 x)", "0.200 s [0.190..0.210]", "5.00 s", "never", "+0.0 %"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// The configuration that the demo writes is one that the actuator reads.
func TestSetup(t *testing.T) {
	c := actuatorSetup{Dir: t.TempDir(), Listen: "127.0.0.1:9610", Prometheus: "http://127.0.0.1:9090", Alertmanager: "http://127.0.0.1:9093", Mode: policy.Act}
	path, err := c.write(c.yaml("plant"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cfg.PoliciesFile)
	if err != nil {
		t.Fatal(err)
	}
	set, err := policy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := set.Find("FabricLinkCongested", "", "plant"); !ok || set.Mode(p) != policy.Act {
		t.Errorf("policy %+v in mode %s, found %v", p, set.Mode(p), ok)
	}
}

func TestResultsAreWrittenWithoutWhatWasNotMeasured(t *testing.T) {
	text, err := json.Marshal(spanOf(nil, time.Time{}, time.Time{}))
	if err != nil || strings.Contains(string(text), `"step_seconds"`) || !strings.Contains(string(text), `"steps":0`) {
		t.Errorf("%s, %v", text, err)
	}
	if text, err = json.Marshal(span{Step: 0.5}); err != nil || !strings.Contains(string(text), `"step_seconds":0.5`) {
		t.Errorf("%s, %v", text, err)
	}
}
