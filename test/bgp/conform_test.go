// SPDX-License-Identifier: Apache-2.0

//go:build lab

package bgp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/actuator/act/acttest"
	"github.com/trainyard/trainyard/actuator/act/bgp"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/deploy/frr"
	"github.com/trainyard/trainyard/test/lab"
)

// insideEnv carries the configuration to the part of TestConformance that runs in the management namespace.
const insideEnv = "TRAINYARD_TEST_BGP_INSIDE"

const password = "correct-horse"

// guarded is the lab's configuration with a password and GTSM on the controller's peers, which the lab does without.
func guarded(in lab.FRRInput) (string, error) {
	text, err := lab.BGPConfig(in)
	if err != nil || !in.Leaf {
		return text, err
	}
	p := frr.Params{ASN: in.ASN, Pins: in.ControlPins, Weights: in.ControlWts, Prefixes: in.HostNets, Feed: in.FabricNets}
	open, err := frr.RenderLeafPeers(p)
	if err != nil {
		return "", err
	}
	rest, ok := strings.CutSuffix(text, open)
	if !ok {
		return "", errors.New("the lab's bgpd.conf does not end with what deploy/frr renders")
	}
	p.Password, p.TTLSecurityHops = password, 1
	shut, err := frr.RenderLeafPeers(p)
	return rest + shut, err
}

// TestConformance runs the suite of actuator/act/acttest against FRR, configured by our own template; the far side is what the
// leaf's kernel has. The driver's sockets must be of the management namespace, so the suite runs in a child process.
func TestConformance(t *testing.T) {
	l := up(t, lab.Config{BGPConfig: guarded})
	cfg := driverConfig(l, "l1")
	cfg.TTLSecurityHops = 1

	// The refused cases first: they leave the leaf as it was.
	wrong := cfg
	wrong.Leaves = slices.Clone(cfg.Leaves)
	wrong.Leaves[0].PasswordFile = passwordFile(t, "wrong-horse")
	const want = "no answer to a SYN signed with the password: wrong password"
	c := startController(t, l, wrong)
	var a answer
	for begin := time.Now(); !strings.Contains(a.Error, want); { // the first try may still be under way on a busy machine
		if time.Since(begin) > 2*settle {
			t.Fatalf("wrong password: %q, want it to say %q", a.Error, want)
		}
		a = c.do(order{Op: "reconcile", Routes: []plan.Route{pin(l, "n5", 2)}})
	}
	c.kill()
	t.Logf("wrong password: %s", a.Error)
	if got := hops(t, l, nic(l, "n5")); got != nil {
		t.Errorf("wrong password, but the kernel has %v", got)
	}

	cfg.Leaves[0].PasswordFile = passwordFile(t, password)
	raw, err := json.Marshal(cfg)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	var out bytes.Buffer
	p, err := l.Start(lab.Mgmt, lab.Command{
		Argv: []string{self, "-test.run", "^TestInside$", "-test.v"}, Stdout: &out, Stderr: &out, Nice: -10,
		Env: []string{insideEnv + "=" + string(raw), insideEnv + "_LEAF=" + l.Namespace("l1")},
	})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err = p.Wait(ctx)
	p.Kill()
	t.Logf("in the management namespace:\n%s", out.String())
	must(t, err)

	// The switch bounds us, too: a controller whose configuration allows too much is told nothing, but its route is not taken.
	wide := cfg
	wide.Prefixes = append(slices.Clone(cfg.Prefixes), netip.MustParsePrefix("192.0.2.0/24"))
	foreign, allowed := pin(l, "n5", 2), pin(l, "n6", 2)
	foreign.Prefix = netip.MustParsePrefix("192.0.2.1/32")
	c = startController(t, l, wide)
	c.reconcile(foreign, allowed)
	eventually(t, l, allowed.Prefix, settle, "sp2")
	if got := hops(t, l, foreign.Prefix); got != nil {
		t.Errorf("the leaf took %s: %v", foreign, got)
	}
	c.do(order{Op: "close"})
}

func passwordFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
	return path
}

// TestInside is the child of TestConformance, and nothing by itself.
func TestInside(t *testing.T) {
	raw := os.Getenv(insideEnv)
	if raw == "" {
		return
	}
	var cfg bgp.Config
	must(t, json.Unmarshal([]byte(raw), &cfg))
	d, err := bgp.New(cfg, acttest.Always, slog.New(slog.NewTextHandler(t.Output(), nil)))
	must(t, err)
	defer func() { must(t, d.Close(context.Background(), false)) }()
	must(t, d.Prime(t.Context(), nil))

	leaf, err := netns.GetFromName(os.Getenv(insideEnv + "_LEAF"))
	must(t, err)
	defer leaf.Close()
	kernel, err := netlink.NewHandleAt(leaf)
	must(t, err)
	defer kernel.Close()

	l := &lab.Lab{Topology: lab.Plan(false)} // for its address plan only
	elsewhere, spine := pin(l, "n5", 2), pin(l, "n5", 2)
	elsewhere.Switch = "l9"
	spine.NextHops = []plan.NextHop{{Addr: lab.LinkSubnet(1, 2).Addr().Next()}}
	wide, foreign := pin(l, "n5", 2), pin(l, "n5", 2)
	wide.Prefix = netip.MustParsePrefix("10.3.5.0/24")
	foreign.Prefix = netip.MustParsePrefix("192.0.2.1/32")
	acttest.Run(t, func(*testing.T) acttest.Subject {
		return acttest.Subject{
			Driver: d,
			Routes: []acttest.Pair{
				{Route: pin(l, "n5", 1), Other: pin(l, "n5", 2)},
				{Route: weights(l, "n6", 1, 3), Other: weights(l, "n6", 3, 1)},
				{Route: pin(l, "n7", 1), Other: weights(l, "n7", 1, 3)},
			},
			Impossible: []plan.Route{elsewhere, spine, wide, foreign, weights(l, "n6", 0, 3)},
			Seen:       func(t *testing.T) []plan.Route { return kernelRoutes(t, kernel) },
			Settle:     settle,
		}
	})
}

// kernelRoutes reads l1's host routes back as the routes that made them. The kernel has what FRR resolved: one gateway, the
// spine, for a pin; gateways with weights in per cent for weights, which here are quarters.
func kernelRoutes(t *testing.T, h *netlink.Handle) []plan.Route {
	t.Helper()
	raw, err := h.RouteList(nil, unix.AF_INET)
	must(t, err)
	spineOf := func(gw []byte) int { // gw is the spine's end of l1's link: 10.0.(10+j).1
		return int(gw[len(gw)-2]) - 10
	}
	var out []plan.Route
	for _, r := range raw {
		if r.Protocol != unix.RTPROT_BGP || r.Dst == nil {
			continue
		}
		if ones, _ := r.Dst.Mask.Size(); ones != 32 {
			continue
		}
		a, _ := netip.AddrFromSlice(r.Dst.IP.To4())
		pr := plan.Route{Switch: "l1", Prefix: netip.PrefixFrom(a, 32), Kind: plan.Pin}
		if len(r.MultiPath) == 0 {
			pr.NextHops = []plan.NextHop{{Addr: lab.LinkSubnet(3, spineOf(r.Gw)).Addr()}}
		}
		for _, n := range r.MultiPath {
			pr.Kind = plan.Weights
			w := n.Hops + 1
			if w%25 != 0 {
				t.Logf("kernel weight %d is no quarter", w)
			}
			pr.NextHops = append(pr.NextHops, plan.NextHop{Addr: lab.LinkSubnet(1, spineOf(n.Gw)).Addr().Next(), Weight: uint8(w / 25)})
		}
		out = append(out, pr)
	}
	return out
}
