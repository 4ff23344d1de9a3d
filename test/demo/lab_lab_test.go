// SPDX-License-Identifier: Apache-2.0

//go:build lab

package main

import (
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/test/lab"
	"github.com/trainyard/trainyard/test/tools/toolbox"
)

func TestMain(m *testing.M) {
	beRank()
	os.Exit(m.Run())
}

// The act run on real switches, with its figures computed anew from kernel counters and from iperf3, and the routes read in
// the namespaces.
func TestActOnTheLab(t *testing.T) {
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
	made, err := newLab(ctx, t.Output(), dir, bin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	}()
	y := made.(*realYard)
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

	// One host route in all kernels of the fabric, on l1, to a NIC of pod B, out of the port to the other spine; the story
	// tells of the same one.
	var routes []string
	var moved string
	for _, s := range y.lab.Switches {
		all, err := y.lab.Routes(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range all {
			if k.Prefix.Bits() == 32 {
				routes = append(routes, s.Name+" "+k.Prefix.String())
				if s.Name == "l1" && len(k.NextHops) == 1 && k.NextHops[0].Device == "sp2" {
					moved = k.Prefix.String()
				}
			}
		}
	}
	if len(routes) != 1 || moved == "" || !strings.Contains(res.Story, moved) {
		t.Errorf("host routes %q; moved to sp2: %q; the story:\n%s", routes, moved, res.Story)
	}

	// Steps that job-a reports, and bytes that the kernel of l3 has sent to n5, tell of the same speed before, during and after.
	j := y.jobs[jobA]
	n := len(j.Spec.Hosts)
	perStep := float64(j.Spec.Bytes) / float64(n) / float64(len(j.Spec.Rails)) * float64(2*(n-1))
	for what, s := range map[string]span{"before": res.Before, "congested": res.During, "after": res.After} {
		byBytes := perStep / s.Stream
		t.Logf("%s: step %.3f s by the job, %.3f s by kernel counters", what, s.Step, byBytes)
		if math.Abs(byBytes/s.Step-1) > 0.10 {
			t.Errorf("%s: a step takes %.3f s by the job and %.3f s by kernel counters", what, s.Step, byBytes)
		}
	}

	if moved == "" {
		return
	}
	// The leaf's own kernel sends every source port to that NIC over the other spine now, and iperf3 is the witness.
	to := netip.MustParsePrefix(moved).Addr()
	from := y.lab.Hosts[2].NICs[0].Addr // n3, behind l1
	port := y.lab.TakePorts(1)
	if p, err := y.lab.PickSourcePort(ctx, "tcp", from, to, port, "s1", nil); err == nil {
		t.Errorf("source port %d still takes s1 to %s", p, to)
	}
	sent := func(device string) float64 {
		c, err := y.lab.PortCounters("l1", device)
		if err != nil {
			t.Fatal(err)
		}
		return float64(c.TxBytes)
	}
	before := sent("sp2")
	iperf, err := y.lab.Iperf3(ctx, lab.Iperf{From: from, To: to, Port: port, Duration: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("iperf3 %s: %.1f Mbit/s, %d bytes, %d retransmits; l1:sp2 sent %.0f bytes", iperf.Version, iperf.BitsPerSecond/1e6, iperf.Bytes, iperf.Retransmits, sent("sp2")-before)
	if over := sent("sp2") - before; iperf.Bytes == 0 || over < float64(iperf.Bytes)/y.lab.Config().PayloadShare() {
		t.Errorf("l1:sp2 sent %.0f bytes, iperf3 alone received %d", over, iperf.Bytes)
	}
}
