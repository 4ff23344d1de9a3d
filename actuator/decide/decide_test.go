// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"testing"

	"github.com/trainyard/trainyard/actuator/decide"
	"github.com/trainyard/trainyard/actuator/fleet/fleettest"
	"github.com/trainyard/trainyard/actuator/topo/topotest"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

func collision() fleettest.Yard {
	return fleettest.Yard{
		Fabric: topotest.Lab(),
		Jobs: []fleettest.Job{
			{ID: "job-a", Nodes: []string{"n1", "n2", "n5", "n6"}, Compute: 0.04, Bytes: 4e6},
			{ID: "job-b", Nodes: []string{"n3", "n4", "n7", "n8"}, Compute: 0.04, Bytes: 4e6, Start: 0.07},
		},
		Via: map[string][]string{
			"job-a n2>n5 0": {"s1"}, "job-b n4>n7 0": {"s1"}, // the collision
			"job-a n6>n1 0": {"s1"}, "job-b n8>n3 0": {"s2"},
			"job-a n2>n5 1": {"s1"}, "job-b n4>n7 1": {"s2"},
			"job-a n6>n1 1": {"s2"}, "job-b n8>n3 1": {"s1"},
		},
	}
}

func TestCollision(t *testing.T) {
	s := collision().Snapshot()
	p := decide.Propose(s, ident.Port{Fabric: "lab", Device: "l1", Name: "sp1"}, decide.Default(), nil, 1)
	t.Logf("%+v\n%s\n%+v\n%v", p.Diagnosis, p.Reason, p.Chosen, p.Notes)
	for _, j := range s.Jobs {
		t.Logf("%+v", j)
	}
	for _, c := range p.Candidates {
		t.Logf("%s %+v", c.Summary, c.Forecast)
	}
	if p.Chosen == nil {
		t.Fatal(p.Reason)
	}
}
