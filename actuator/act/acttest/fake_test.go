// SPDX-License-Identifier: Apache-2.0

package acttest_test

import (
	"net/netip"
	"testing"

	"github.com/trainyard/trainyard/actuator/act/acttest"
	"github.com/trainyard/trainyard/actuator/plan"
)

func TestFakeConforms(t *testing.T) {
	pin := func(prefix, hop string) plan.Route {
		return plan.Route{Switch: "l1", Prefix: netip.MustParsePrefix(prefix), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: netip.MustParseAddr(hop)}}}
	}
	acttest.Run(t, func(*testing.T) acttest.Subject {
		elsewhere := pin("10.3.5.2/32", "10.0.32.0")
		elsewhere.Switch = "l9"
		return acttest.Subject{
			Driver: &acttest.Fake{Switches: []string{"l1"}},
			Routes: []acttest.Pair{
				{Route: pin("10.3.5.2/32", "10.0.32.0"), Other: pin("10.3.5.2/32", "10.0.31.0")},
				{Route: pin("10.3.7.2/32", "10.0.32.0"), Other: pin("10.3.7.2/32", "10.0.31.0")},
			},
			Impossible: []plan.Route{elsewhere},
		}
	})
}
