// SPDX-License-Identifier: Apache-2.0

//go:build lab

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainyard/trainyard/test/tools/toolbox"
)

func TestMain(m *testing.M) {
	beRank()
	os.Exit(m.Run())
}

// The alert on the real fabric: a job alone raises nothing, two jobs on one uplink raise it within seconds.
func TestAlertOnTheLab(t *testing.T) {
	ctx := t.Context()
	root, err := toolbox.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := os.Getenv("DEMO_DIR")
	bin, err := build(ctx, root, filepath.Join(t.TempDir(), "bin"))
	if err != nil {
		t.Log(err)
	}
	y, err := newLab(ctx, t.Output(), dir, bin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = y.Close() }()
	c, err := startMonitoring(ctx, y, dir)
	if err != nil {
		t.Fatal(err)
	}
	say := newTimeline(t.Output())
	r := &run{yard: y, control: c, say: say}
	show := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			l, err := y.Look(ctx)
			if err != nil {
				t.Fatal(err)
			}
			r.looks = append(r.looks, l)
			links, err := c.firing(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if len(links) > 0 {
				say.event("firing %v", links)
			}
			say.status(ctx, r)
		}
	}
	if err := y.StartJob(ctx, jobA); err != nil {
		t.Fatal(err)
	}
	show(10 * time.Second)
	if err := y.StartJob(ctx, jobB); err != nil {
		t.Fatal(err)
	}
	say.mark(time.Now())
	show(10 * time.Second)
	l := r.looks[len(r.looks)-1]
	say.event("retransmits %v resets %v gap %v", l.Retransmits, l.Resets, l.Longest)
}
