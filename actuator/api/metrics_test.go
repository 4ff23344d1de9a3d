// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/api"
	"github.com/trainyard/trainyard/actuator/api/apitest"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/exporter/catalog"
)

// TestMetrics touches every metric once and compares names, help and labels with the catalogue.
func TestMetrics(t *testing.T) {
	m := api.NewMetrics()
	m.Watch(api.Watched{Incidents: apitest.All, Routes: func() (int, int) { return 2, 1 }, Policies: func() policy.Set {
		act, watch := policy.Default(), policy.Default()
		act.Name, act.Mode, watch.Name, watch.Pool = "a", policy.Act, "w", "new"
		return policy.Set{Policies: []policy.Policy{act, watch}, Pools: map[string]policy.Mode{"default": policy.Advise}}
	}})
	for _, v := range apitest.All() {
		if v.Over {
			m.Ended(v)
		}
	}
	m.Delivery("taken")
	m.Appended(1, time.Millisecond)
	m.Verified(plan.Forecast{Gain: 0.48}, flow.Verification{Outcome: flow.Better}, 0.45)
	m.Verified(plan.Forecast{Gain: 0.48}, flow.Verification{Outcome: flow.Inconclusive}, 0)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text := w.Body.String()
	for _, want := range []string{
		`trainyard_incidents{state="holding"} 1`, `trainyard_incidents{state="asked"} 1`, `trainyard_incidents{state="acting"} 0`,
		`trainyard_incidents_total{outcome="refused"} 2`, `trainyard_incidents_total{outcome="watched"} 2`, `trainyard_incidents_total{outcome="undone"} 0`,
		`trainyard_actuator_refusals_total{reason="no picture"} 1`, `trainyard_actuator_refusals_total{reason="nothing better"} 1`,
		`trainyard_actuator_mode{mode="advise",pool="default"} 1`, `trainyard_actuator_mode{mode="act",pool="default"} 0`, `trainyard_actuator_mode{mode="watch",pool="new"} 1`,
		`trainyard_actuator_routes_desired 2`, `trainyard_actuator_routes_installed 1`, `trainyard_intake_deliveries_total{result="taken"} 1`,
		`trainyard_journal_append_duration_seconds_count 1`,
		// 0.45 of 0.48 is 6 % less than forecast.
		`trainyard_forecast_error_ratio_bucket{le="-0.05"} 1`, `trainyard_forecast_error_ratio_bucket{le="-0.1"} 0`, `trainyard_forecast_error_ratio_count 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	served := 0
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[1] != "HELP" || !strings.HasPrefix(fields[2], "trainyard_") {
			continue
		}
		served++
		row, ok := catalog.Lookup(fields[2])
		if !ok {
			t.Errorf("%s is not in the catalogue", fields[2])
			continue
		}
		if help := strings.TrimSpace(strings.SplitN(line, fields[2], 2)[1]); help != row.Help {
			t.Errorf("%s: help %q, the catalogue says %q", fields[2], help, row.Help)
		}
		for l := range strings.Lines(text) {
			if name, rest, ok := strings.Cut(l, "{"); ok && name == row.Name {
				var labels []string
				inside, _, _ := strings.Cut(rest, "}")
				for part := range strings.SplitSeq(inside, ",") {
					label, _, _ := strings.Cut(part, "=")
					labels = append(labels, label)
				}
				want := slices.Sorted(slices.Values(row.Labels))
				if slices.Sort(labels); !slices.Equal(labels, want) {
					t.Errorf("%s has the labels %q, the catalogue says %q", name, labels, want)
				}
			}
		}
	}
	if served != 9 {
		t.Errorf("%d metrics of ours are served, the catalogue's family has 9", served)
	}
}
