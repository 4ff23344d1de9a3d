// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// PromQL's rate() divides by its window, whatever part of the window the samples cover. Counters carry the time at
// which they were read, and a scrape brings them in later; with a short window and a busy machine, rate() showed half of
// a steady load. That is no matter for an alert, which asks again; a decision compares loads with a model to within
// 10 %. So the samples themselves are asked for, and the rate is taken between two of them: the newest, and the one that
// lies about a window before it. How old the newest is, is asked for beside it.

type rawSeries struct {
	Metric map[string]*string `json:"metric"`
	Values [][]jsontext.Value `json:"values"`
}

// decodeRates reads a range vector and works out one rate for each set of the labels in per. Of exporters that read the
// same thing, the one with the newest sample counts. A series with fewer than two samples has no rate.
func decodeRates(body []byte, per []string, at time.Time, window time.Duration) ([]Sample, []string, error) {
	a, err := decodeAnswer(body, "matrix")
	if err != nil {
		return nil, nil, err
	}
	var raw []rawSeries
	if err := json.Unmarshal(a.Data.Result, &raw, json.RejectUnknownMembers(true)); err != nil {
		return nil, nil, fmt.Errorf("decode matrix: %w", err)
	}
	newest, rates := map[string]time.Time{}, map[string]Sample{}
	for i, r := range raw {
		labels, err := decodeLabels(r.Metric)
		if err != nil {
			return nil, nil, fmt.Errorf("decode matrix: series %d: %w", i, err)
		}
		points := make([]point, len(r.Values))
		for j, v := range r.Values {
			if points[j].at, points[j].value, err = decodePoint(v); err != nil {
				return nil, nil, fmt.Errorf("decode matrix: series %d: %w", i, err)
			}
			if points[j].at.After(at) || j > 0 && !points[j].at.After(points[j-1].at) {
				return nil, nil, fmt.Errorf("decode matrix: series %d: its times are not in order", i)
			}
		}
		rate, ok := slope(points, window)
		if !ok {
			continue
		}
		kept := map[string]string{}
		var key strings.Builder
		for _, l := range per {
			kept[l] = labels[l]
			fmt.Fprintf(&key, "%q", labels[l])
		}
		if last := points[len(points)-1].at; last.After(newest[key.String()]) {
			newest[key.String()], rates[key.String()] = last, Sample{kept, rate}
		}
	}
	out := make([]Sample, 0, len(rates))
	for _, s := range rates {
		out = append(out, s)
	}
	return out, a.Warnings, nil
}

// point is one sample of a counter.
type point struct {
	at    time.Time
	value float64
}

// slope is the rate per second of a counter over about one window before its newest sample. A counter that falls has
// begun anew from zero.
func slope(points []point, window time.Duration) (perSecond float64, ok bool) {
	if len(points) < 2 {
		return 0, false
	}
	last := points[len(points)-1]
	// The sample next to the beginning of the window, on whichever side, but never the newest itself.
	begin := last.at.Add(-window)
	first := slices.IndexFunc(points, func(p point) bool { return !p.at.Before(begin) })
	if first > 0 && (first == len(points)-1 || begin.Sub(points[first-1].at) < points[first].at.Sub(begin)) {
		first--
	}
	increase := 0.0
	for i := first + 1; i < len(points); i++ {
		if d := points[i].value - points[i-1].value; d >= 0 {
			increase += d
		} else {
			increase += points[i].value
		}
	}
	return increase / last.at.Sub(points[first].at).Seconds(), true
}
