// SPDX-License-Identifier: Apache-2.0

//go:build tools

package main

import (
	"net/netip"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/plan"
)

// The plant under the real Prometheus and the lab's rules: a job alone raises nothing, two jobs on one uplink raise the
// alert within seconds, and a route moved by hand ends it.
func TestAlertOnThePlant(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	y := newSimulated(ctx, dir)
	defer func() { _ = y.Close() }()
	c, err := startMonitoring(ctx, y, dir)
	if err != nil {
		t.Fatal(err)
	}
	// until waits for the alert to fire or not, and returns how long that took; 0 = it did not come to that in time.
	until := func(fires bool, patience time.Duration) time.Duration {
		began := time.Now()
		for time.Since(began) < patience {
			links, err := c.firing(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if len(links) > 0 == fires {
				t.Logf("firing %v after %s", links, time.Since(began))
				return max(time.Since(began), 1)
			}
			time.Sleep(50 * time.Millisecond)
		}
		return 0
	}
	if err := y.StartJob(ctx, jobA); err != nil {
		t.Fatal(err)
	}
	if d := until(true, 10*time.Second); d != 0 {
		t.Fatalf("job-a alone raised the alert after %s", d)
	}
	if err := y.StartJob(ctx, jobB); err != nil {
		t.Fatal(err)
	}
	if until(true, 6*time.Second) == 0 {
		t.Fatal("two jobs on one uplink raised no alert within 6 s")
	}
	pin := plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix("10.3.7.2/32"), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: netip.MustParseAddr("10.0.32.0")}}}
	if r := y.plant.Driver().Apply(ctx, act.PermitFunc(func(time.Time) error { return nil }), pin); !r.OK() {
		t.Fatal(r)
	}
	if until(false, 12*time.Second) == 0 {
		t.Error("12 s after the route the alert still fires")
	}
}
