// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ring

import (
	"encoding/json"
	"testing"
	"time"
)

func TestStatsOfAWindow(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	j := &Job{Spec: Spec{JobID: "j", Hosts: []string{"n1", "n2"}}, changed: make(chan struct{})}
	for _, s := range []Step{
		{Rank: 0, N: 0, End: at(100), Total: 900 * time.Millisecond, LongestGap: time.Second, Stalls: 7}, // before the window
		{Rank: 0, N: 1, End: at(200), Total: 100 * time.Millisecond, Compute: 20 * time.Millisecond, Collective: 80 * time.Millisecond, LongestGap: 5 * time.Millisecond, Bytes: 10},
		{Rank: 1, N: 1, End: at(210), Total: 140 * time.Millisecond, Compute: 40 * time.Millisecond, Collective: 100 * time.Millisecond, LongestGap: 30 * time.Millisecond, Bytes: 10, Retransmits: 2, Stalls: 1},
		{Rank: 0, N: 2, End: at(300), Total: 900 * time.Millisecond}, // after it
	} {
		line, err := json.Marshal(rankLine{Step: &s})
		if err != nil {
			t.Fatal(err)
		}
		j.take(s.Rank, line)
	}
	got := j.Stats(at(200), at(300))
	want := Stats{
		Steps: 1, Mean: 120 * time.Millisecond, Median: 140 * time.Millisecond, Worst: 140 * time.Millisecond, Compute: 30 * time.Millisecond,
		Collective: 90 * time.Millisecond, LongestGap: 30 * time.Millisecond, Stalls: 1, Retransmits: 2, Bytes: 20,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if s := j.Stats(at(400), time.Time{}); s != (Stats{}) {
		t.Errorf("an empty window gives %+v", s)
	}
}

func TestStartNeedsMain(t *testing.T) {
	if _, err := startWorker(nil, "n1", "rank", nil, nil); err == nil {
		t.Error("a program that would start itself over and over is not stopped")
	}
}
