// SPDX-License-Identifier: Apache-2.0

//go:build lab

package lab_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/test/lab"
	"github.com/trainyard/trainyard/test/lab/ring"
)

const holderEnv = "TRAINYARD_LAB_TEST_HOLDER"

func TestMain(m *testing.M) {
	ring.Main()
	if os.Getenv(holderEnv) != "" {
		hold()
	}
	os.Exit(m.Run())
}

// hold is the program that TestSweep kills: it has a lab with traffic and says where.
func hold() {
	ctx := context.Background()
	l, err := lab.Up(ctx, lab.Config{})
	if err == nil {
		_, err = ring.Start(ctx, l, ring.Spec{JobID: "held", Hosts: []string{"n1", "n5"}})
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println(l.Namespace(""), l.Dir)
	select {}
}

// leftovers lists what there still is of a lab: namespaces, processes, the state directory.
func leftovers(t *testing.T, prefix, dir string) []string {
	t.Helper()
	var left []string
	names, err := filepath.Glob("/run/netns/" + prefix + "*")
	must(t, err)
	left = append(left, names...)
	if _, err := os.Stat(dir); err == nil {
		left = append(left, dir)
	}
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, p := range procs {
		raw, err := os.ReadFile(p)
		if err == nil && (strings.Contains(string(raw), dir) || strings.Contains(string(raw), prefix)) {
			left = append(left, strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	return left
}

func TestUpAndDown(t *testing.T) {
	ctx := testContext(t, time.Minute)
	begin := time.Now()
	l, err := lab.Up(ctx, lab.Config{Log: t.Output()})
	must(t, err)
	took := time.Since(begin)
	defer l.Close()
	subnet := netip.MustParsePrefix("10.3.7.0/24")
	r, ok, err := l.Route("l1", subnet)
	must(t, err)
	if !ok || len(r.NextHops) != lab.Spines || r.Protocol != "bgp" {
		t.Errorf("l1's route to %s is %+v, want one of BGP over both spines", subnet, r)
	}
	// Every host reaches every other on both rails, and the source address chooses the rail.
	for _, pair := range [][2]string{{"n1", "n5"}, {"n5", "n1"}, {"n2", "n3"}, {"n8", "n4"}} {
		from, _ := l.Host(pair[0])
		to, _ := l.Host(pair[1])
		for rail := range lab.Rails {
			before, err := l.PortCounters(pair[0], from.NICs[rail].Device)
			must(t, err)
			_, err = l.Exec(ctx, pair[0], "ping", "-c", "2", "-i", "0.01", "-W", "1", "-I", from.NICs[rail].Addr.String(), to.NICs[rail].Addr.String())
			must(t, err)
			after, err := l.PortCounters(pair[0], from.NICs[rail].Device)
			must(t, err)
			if after.TxPackets < before.TxPackets+2 {
				t.Errorf("%s sent %d packets on rail %d, want 2 pings at least", pair[0], after.TxPackets-before.TxPackets, rail)
			}
		}
	}
	// ECMP chooses by header: the port that the leaf's kernel names for a spine is the one that the packet takes.
	for _, spine := range []string{"s1", "s2"} {
		before, err := l.PortCounters("l1", lab.PortToSpine(spine))
		must(t, err)
		p, err := ring.StartProbe(ctx, l, ring.Probe{From: "n1", To: "n5", Spine: spine})
		must(t, err)
		time.Sleep(300 * time.Millisecond)
		res, err := p.Stop(ctx)
		must(t, err)
		after, err := l.PortCounters("l1", lab.PortToSpine(spine))
		must(t, err)
		if over := after.TxPackets - before.TxPackets; over < res.Sent {
			t.Errorf("%d of %d probe packets over %s", over, res.Sent, spine)
		}
		t.Logf("probe over %s: %s", spine, res)
	}
	prefix, dir := l.Namespace(""), l.Dir
	begin = time.Now()
	must(t, l.Close())
	t.Logf("up and converged in %.1f s, down in %.1f s", took.Seconds(), time.Since(begin).Seconds())
	if left := leftovers(t, prefix, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestTwoLabsSideBySide(t *testing.T) {
	ctx := testContext(t, time.Minute)
	a := up(ctx, t, lab.Config{})
	b := up(ctx, t, lab.Config{SharedSpineAS: true})
	ping := func(l *lab.Lab) error {
		_, err := l.Exec(ctx, "n1", "ping", "-c", "1", "-W", "1", "-I", "10.1.1.2", "10.3.5.2")
		return err
	}
	must(t, ping(a))
	must(t, ping(b))
	must(t, a.Close())
	must(t, ping(b))
	if ping(a) == nil {
		t.Error("the closed lab still answers")
	}
}

func TestUpThatFailsLeavesNothing(t *testing.T) {
	ctx := testContext(t, time.Minute)
	tmp := t.TempDir() // a place of our own, so that what is in it is this lab's; FRR's user must get there
	must(t, os.Chmod(tmp, 0o711))
	must(t, os.Chmod(filepath.Dir(tmp), 0o711))
	t.Setenv("TMPDIR", tmp)
	for name, interrupt := range map[string]bool{"bad configuration": false, "interrupt": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			var dir string
			var owner struct{ Prefix string }
			_, err := lab.Up(ctx, lab.Config{BGPConfig: func(lab.FRRInput) (string, error) {
				dirs, _ := filepath.Glob(filepath.Join(tmp, "trainyard-lab-*"))
				if dir == "" && len(dirs) == 1 {
					dir = dirs[0]
					raw, err := os.ReadFile(filepath.Join(dir, "owner.json"))
					if err != nil || json.Unmarshal(raw, &owner) != nil {
						t.Errorf("no owner in %s", dir)
					}
				}
				if interrupt {
					cancel()
					return "", ctx.Err()
				}
				return "", errors.New("no configuration today")
			}})
			if err == nil || dir == "" || owner.Prefix == "" {
				t.Fatalf("Up says %v, in %q for %q", err, dir, owner.Prefix)
			}
			if left := leftovers(t, owner.Prefix, dir); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			t.Log(err)
		})
	}
}

func TestSweep(t *testing.T) {
	ctx := testContext(t, time.Minute)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), holderEnv+"=1")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	f := strings.Fields(line)
	if len(f) != 2 || f[0] == "error" {
		t.Fatalf("the holder says %q", line)
	}
	must(t, lab.Sweep())
	if left := leftovers(t, f[0], f[1]); len(left) < 15 {
		t.Errorf("Sweep took from a living lab: %q is left", left)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	before := len(leftovers(t, f[0], f[1]))
	must(t, lab.Sweep())
	if left := leftovers(t, f[0], f[1]); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	t.Logf("%d things of the killed lab swept", before)
}
