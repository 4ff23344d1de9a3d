// SPDX-License-Identifier: Apache-2.0

//go:build tools

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/test/tools/toolbox"
)

// The act run on the plant, with its figures computed anew from the plant's own counters, which neither the control side nor
// the demo's table uses.
func TestActOnThePlant(t *testing.T) {
	ctx := t.Context()
	root, err := toolbox.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := build(ctx, root, filepath.Join(t.TempDir(), "bin"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	y := newSimulated(ctx, dir)
	defer func() { _ = y.Close() }()
	say := newTimeline(t.Output())
	c, err := startControl(ctx, y, dir, policy.Act, bin, say)
	if err != nil {
		t.Fatal(err)
	}
	r := &pass{yard: y, control: c, mode: policy.Act, plan: defaultSchedule, say: say}
	res, err := r.do(ctx)
	if err != nil {
		t.Fatal(err)
	}
	watch, _ := good() // only the act run is judged here
	for _, err := range check(watch, res) {
		t.Error(err)
	}

	// The plant's forwarding tables hold exactly the route that the incident's story tells of.
	routes := y.plant.Routes()
	if len(routes) != 1 || routes[0].Kind != plan.Pin || routes[0].Prefix.Bits() != 32 {
		t.Errorf("routes that stand: %v", routes)
	} else if !strings.Contains(res.Story, routes[0].Prefix.String()) {
		t.Errorf("the story does not name %s:\n%s", routes[0].Prefix, res.Story)
	}
	// The steps that job-a reports and the bytes that its stream delivered tell of the same speed.
	reading, err := y.plant.Job(jobA)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range reading.Steps {
		if s.At.After(res.After.From) && s.At.Before(res.After.To) {
			n++
		}
	}
	span := res.After.To.Sub(res.After.From).Seconds()
	byBytes, bySteps := res.After.Stream*span/bytesPerStep, float64(n)
	if d := byBytes - bySteps; d > 2 || d < -2 {
		t.Errorf("after: %.1f steps by bytes, %.0f by the job's reports", byBytes, bySteps)
	}
}
