// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

var epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func testPolicy(mode policy.Mode) policy.Policy {
	p := policy.Default()
	p.Name, p.Mode = "relieve", mode
	p.Match = policy.Match{Alerts: []string{"FabricLinkCongested"}, Clusters: []string{policy.Any}, Fabrics: []string{"lab"}}
	p.Cooldown, p.Hold, p.ApprovalTimeout, p.VerifyDeadline = 5*time.Minute, time.Minute, 10*time.Minute, time.Minute
	return p
}

func testAlert(fp, port string, starts time.Time, firing bool) AlertEvent {
	return AlertEvent{
		Fingerprint: fp, StartsAt: starts, Firing: firing, Name: "FabricLinkCongested",
		Target: ident.Port{Fabric: "lab", Device: "l1", Name: port}, Source: "webhook",
	}
}

// testProposal moves steps prefixes of the target's own subnet, so that plans for different targets share no route.
func testProposal(target ident.Port, steps int) *Proposal {
	h := byte(0)
	for _, c := range []byte(target.Name) {
		h = h*31 + c
	}
	p := plan.Plan{Target: target, Summary: fmt.Sprintf("move %d", steps), Forecast: plan.Forecast{
		Regime: "test", Gain: 0.3, PathsLeft: 1, BlackoutBoundS: 0.5, Jobs: []plan.JobForecast{{JobID: "job-a"}},
	}}
	for i := range steps {
		p.Steps = append(p.Steps, plan.Step{Route: plan.Route{
			Switch: target.Device, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, h, byte(i), 2}), 32), Kind: plan.Pin,
			NextHops: []plan.NextHop{{Addr: netip.MustParseAddr("10.0.32.0")}},
		}})
	}
	return &Proposal{Diagnosis: fault.Diagnosis{Cause: fault.HashCollision, Reason: "two flows"}, Explains: true, Chosen: &p, Candidates: []plan.Plan{p}, Reason: "best"}
}

func goodFacts(s State, now time.Time) guard.Facts {
	return guard.Facts{Wall: now, StopRead: true, LeaseHeld: true, LeaseEpoch: s.Epoch, ClockSane: true, DriverAsked: true, DataRead: true, DataAge: 1}
}

func (p *Proposal) keys() []plan.RouteKey {
	var ks []plan.RouteKey
	for _, s := range p.Chosen.Steps {
		ks = append(ks, s.Route.Key())
	}
	return ks
}
