// SPDX-License-Identifier: Apache-2.0

//go:build lab

package bgp_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/act/bgp"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/test/lab"
)

// up builds a lab without agents, which nothing here looks at.
func up(t *testing.T, cfg lab.Config) *lab.Lab {
	t.Helper()
	cfg.NoAgents = true
	cfg.Log = t.Output()
	l, err := lab.Up(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// driverConfig is the driver's configuration for some leaves of the lab.
func driverConfig(l *lab.Lab, leaves ...string) bgp.Config {
	cfg := bgp.Default()
	cfg.Pins.LocalAddress, cfg.Weights.LocalAddress = lab.ControllerPins, lab.ControllerWeights
	for i := 1; i <= lab.Leaves; i++ {
		cfg.Prefixes = append(cfg.Prefixes, netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", i)))
	}
	for _, name := range leaves {
		s, _ := l.Switch(name)
		leaf := bgp.Leaf{Name: name, Address: s.Mgmt, ASN: s.ASN}
		for j := 1; j <= lab.Spines; j++ {
			leaf.Uplinks = append(leaf.Uplinks, lab.LinkSubnet(s.Index, j).Addr().Next())
		}
		cfg.Leaves = append(cfg.Leaves, leaf)
	}
	return cfg
}

// nic is the host route of rail 0 of a host.
func nic(l *lab.Lab, host string) netip.Prefix {
	h, _ := l.Host(host)
	return netip.PrefixFrom(h.NICs[0].Addr, 32)
}

// pin sends l1's traffic for rail 0 of a host behind l3 through spine j: next hop is l3's end of its link with the spine.
func pin(l *lab.Lab, host string, j int) plan.Route {
	return plan.Route{Switch: "l1", Prefix: nic(l, host), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: lab.LinkSubnet(3, j).Addr()}}}
}

// weights splits it over both spines.
func weights(l *lab.Lab, host string, w1, w2 uint8) plan.Route {
	return plan.Route{Switch: "l1", Prefix: nic(l, host), Kind: plan.Weights, NextHops: []plan.NextHop{
		{Addr: lab.LinkSubnet(1, 1).Addr().Next(), Weight: w1}, {Addr: lab.LinkSubnet(1, 2).Addr().Next(), Weight: w2},
	}}
}

// hops reads the kernel's next hops for a host route of l1, as "device" or "device*weight"; nil if there is no such route.
func hops(t *testing.T, l *lab.Lab, p netip.Prefix) []string {
	t.Helper()
	r, ok, err := l.Route("l1", p)
	must(t, err)
	if !ok {
		return nil
	}
	var out []string
	for _, h := range r.NextHops {
		if len(r.NextHops) == 1 {
			out = append(out, h.Device)
		} else {
			out = append(out, fmt.Sprintf("%s*%d", h.Device, h.Weight))
		}
	}
	return out
}

// settle bounds waits for changes that take a tenth of a second on a machine that is not busy.
const settle = 5 * time.Second

// eventually polls until the kernel has the wanted next hops and returns how long that took.
func eventually(t *testing.T, l *lab.Lab, p netip.Prefix, limit time.Duration, want ...string) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		got := hops(t, l, p)
		if slices.Equal(got, want) {
			return time.Since(begin)
		}
		if time.Since(begin) > limit {
			t.Fatalf("the kernel of l1 has %v for %s after %s, want %v", got, p, limit, want)
		}
		pause(t.Context(), 5*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
