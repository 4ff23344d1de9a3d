// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// TestSlope works rates out by hand. The window is 2 s; times are in seconds.
func TestSlope(t *testing.T) {
	type p struct{ at, value float64 }
	for _, c := range []struct {
		name   string
		points []p
		want   float64
		ok     bool
	}{
		{"nothing", nil, 0, false},
		{"one sample", []p{{1, 5}}, 0, false},
		{"steady", []p{{0, 0}, {0.5, 50}, {1, 100}, {1.5, 150}, {2, 200}}, 100, true},
		{"the newest scrapes are late: the part that is covered counts", []p{{0.1, 10}, {0.6, 60}}, 100, true},
		{"what lies before the window is left out", []p{{0, 0}, {1, 1000}, {2, 1100}, {3, 1200}}, 100, true},
		{"the sample nearest to the beginning of the window", []p{{0, 0}, {0.9, 90}, {1.9, 90}, {3, 310}}, 220 / 2.1, true},
		{"a gap wider than the window", []p{{0, 0}, {5, 500}}, 100, true},
		{"begins anew", []p{{0, 900}, {1, 1000}, {2, 50}}, 75, true},
		{"stands still", []p{{0, 7}, {1, 7}, {2, 7}}, 0, true},
	} {
		var points []point
		for _, x := range c.points {
			points = append(points, point{time.UnixMilli(int64(1e12 + 1000*x.at)), x.value})
		}
		got, ok := slope(points, 2*time.Second)
		if ok != c.ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g, %v; want %g, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestDecodeRates(t *testing.T) {
	at := time.UnixMilli(1796040000000).UTC()
	series := func(instance string, points ...string) string {
		return fmt.Sprintf(`{"metric":{"__name__":"x","instance":%q,"port":"sp1"},"values":[%s]}`, instance, strings.Join(points, ","))
	}
	answer := func(series ...string) []byte {
		return []byte(`{"status":"success","data":{"resultType":"matrix","result":[` + strings.Join(series, ",") + `]}}`)
	}
	// Two exporters read the port; the one that was scraped last counts.
	got, _, err := decodeRates(answer(
		series("old", `[1796039997,"0"]`, `[1796039998,"7"]`), series("new", `[1796039998.5,"100"]`, `[1796039999.5,"150"]`), series("lone", `[1796039999.9,"1"]`),
	), []string{"port"}, at, 2*time.Second)
	if err != nil || len(got) != 1 || got[0].Value != 50 || len(got[0].Labels) != 1 || got[0].Labels["port"] != "sp1" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []struct{ body, want string }{
		{string(answer(series("a", `[1796039999,"0"]`, `[1796039998,"7"]`))), "its times are not in order"},
		{string(answer(series("a", `[1796039999,"0"]`, `[1796040001,"7"]`))), "its times are not in order"},
		{string(answer(series("a", `[1796039999]`))), "a point has 1 members"},
		{string(answer(`{"metric":{"port":null},"values":[]}`)), `label "port" is null`},
		{string(answer(`{"metric":{},"histograms":[]}`)), "unknown object member"},
		{`{"status":"success","data":{"resultType":"vector","result":[]}}`, "want a matrix"},
	} {
		if _, _, err := decodeRates([]byte(c.body), []string{"port"}, at, time.Second); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.body, err, c.want)
		}
	}
}
