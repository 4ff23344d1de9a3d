// SPDX-License-Identifier: Apache-2.0

//go:build lab

package bgp_test

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/test/lab"
	"github.com/trainyard/trainyard/test/lab/ring"
)

// TestMove moves a flow back and forth by every kind of change that the driver can make and looks at what the flow sees of it
// (field rule 8): make before break loses nothing. The longest gap is printed and not asserted: on a busy machine it is the time in
// which the probe got no CPU.
func TestMove(t *testing.T) {
	l := up(t, lab.Config{})
	c := startController(t, l, driverConfig(l, "l1"))
	c.reconcile()
	p, err := ring.StartProbe(t.Context(), l, ring.Probe{From: "n1", To: "n5", Spine: "s1", PacketsPerSecond: 250})
	must(t, err)
	t.Cleanup(p.Kill)

	steps := []struct {
		route *plan.Route // nil = withdraw
		want  []string
	}{
		{ptr(pin(l, "n5", 2)), []string{"sp2"}},
		{ptr(pin(l, "n5", 1)), []string{"sp1"}},
		{ptr(weights(l, "n5", 1, 3)), []string{"sp1*25", "sp2*75"}},
		{ptr(weights(l, "n5", 3, 1)), []string{"sp1*75", "sp2*25"}},
		{ptr(pin(l, "n5", 2)), []string{"sp2"}},
		{nil, nil},
		{ptr(weights(l, "n5", 1, 1)), []string{"sp1*50", "sp2*50"}},
		{nil, nil},
	}
	const rounds = 2
	var slowest time.Duration
	for range rounds {
		for _, s := range steps {
			o := order{Op: "withdraw", Routes: []plan.Route{pin(l, "n5", 1)}}
			if s.route != nil {
				o = order{Op: "apply", Routes: []plan.Route{*s.route}}
			}
			begin := time.Now()
			if r := c.do(o).Result; r.Outcome != act.Done || !r.Changed {
				t.Fatalf("%+v: %+v", o, r)
			}
			eventually(t, l, nic(l, "n5"), settle, s.want...)
			slowest = max(slowest, time.Since(begin))
			pause(t.Context(), 50*time.Millisecond)
		}
	}
	r, err := p.Stop(t.Context())
	must(t, err)
	t.Logf("%d changes, the slowest in the kernel after %s; probe of 250 packets a second: %s", rounds*len(steps), slowest.Round(time.Millisecond), r)
	if r.Lost > 0 {
		t.Errorf("%d packets lost over changes of the route", r.Lost)
	}
}

func ptr[T any](v T) *T { return &v }
