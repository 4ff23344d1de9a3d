// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestConfigurations shows what the daemons of a leaf and of a spine are told.
func TestConfigurations(t *testing.T) {
	l := &Lab{Topology: Plan(false), Dir: "/lab", prefix: "ty000000-", rates: map[portKey]int{}}
	for _, c := range l.Cables {
		l.rates[portKey{c.A, c.APort}], l.rates[portKey{c.B, c.BPort}] = 100, 100
	}
	for _, name := range []string{"l1", "s1"} {
		s, _ := l.Switch(name)
		in := l.frrInput(s)
		in.AgentX = true
		bgp, err := BGPConfig(in)
		if err != nil {
			t.Fatal(err)
		}
		if s.Tier == 0 { // what a leaf lets its controller do is deploy/frr's golden file
			bgp, _, _ = strings.Cut(bgp, "! trainyard:")
		}
		golden(t, name+".bgpd.conf", bgp)
		golden(t, name+".snmpd.conf", l.snmpdConf(s))
	}
	golden(t, "tbf.tc", queueScript("sp1", 100, false))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

func TestParseNetSNMP(t *testing.T) {
	got := map[string]int64{}
	parseNetSNMP([]byte("Tcp: RtoMin MaxConn RetransSegs\nTcp: 200 -1 17\nIpExt: InCEPkts\nIpExt: 9\n"), got)
	want := map[string]int64{"Tcp.RtoMin": 200, "Tcp.MaxConn": -1, "Tcp.RetransSegs": 17, "IpExt.InCEPkts": 9}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s = %d, want %d", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
}

func TestOwnerIsAlive(t *testing.T) {
	_, start, err := statOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    owner
		want bool
		why  string
	}{
		{owner{"p", os.Getpid(), start}, true, "this process"},
		{owner{"p", os.Getpid(), "1"}, false, "the same id, another start: a process that came later"},
		{owner{"p", 1 << 30, start}, false, "no such process"},
	} {
		if got := c.o.alive(); got != c.want {
			t.Errorf("%s: alive is %v", c.why, got)
		}
	}
}

func TestConfigRefusesNonsense(t *testing.T) {
	if _, err := (Config{FabricMbit: -1}).withDefaults(); err == nil {
		t.Error("a negative rate is taken")
	}
	c, err := Config{FabricMbit: 40}.withDefaults()
	if err != nil || c.HostMbit != 40 {
		t.Errorf("defaults of a 40 Mbit/s lab: %+v, %v", c, err)
	}
}
