// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/actuator/traffic"
)

func rank(n int, node string, addrs ...string) traffic.Rank {
	r := traffic.Rank{Rank: n, Node: node, Addrs: map[int]netip.Addr{}}
	for rail, a := range addrs {
		if a != "" {
			r.Addrs[rail] = netip.MustParseAddr(a)
		}
	}
	return r
}

func TestRing(t *testing.T) {
	three := []traffic.Rank{rank(0, "n1", "10.1.1.2", "10.2.1.2"), rank(1, "n2", "10.1.2.2", "10.2.2.2"), rank(2, "n5", "10.3.5.2", "10.4.5.2")}
	for _, c := range []struct {
		name string
		job  traffic.Job
		nics map[string]float64
		want string
	}{
		{
			"payload of the job", traffic.Job{Ranks: three, Collective: "ring", BytesPerSecondByRail: []float64{1448e3, 2896e3}}, nil,
			"10.1.1.2>10.1.2.2 1514000 measured\n10.2.1.2>10.2.2.2 3028000 measured\n10.1.2.2>10.3.5.2 1514000 measured\n" +
				"10.2.2.2>10.4.5.2 3028000 measured\n10.3.5.2>10.1.1.2 1514000 measured\n10.4.5.2>10.2.1.2 3028000 measured",
		},
		{
			"counters of the nics where the job says nothing",
			traffic.Job{Ranks: []traffic.Rank{rank(0, "n1", "10.1.1.2"), rank(1, "n2", "10.1.2.2")}, Collective: "ring"},
			map[string]float64{"10.1.1.2": 5e6},
			"10.1.1.2>10.1.2.2 5000000 inferred\n10.1.2.2>10.1.1.2 0 assumed\n! job j: neither the job nor nic 10.1.2.2 reports what it sends",
		},
		{
			"two ranks of a node share its nic",
			traffic.Job{Ranks: []traffic.Rank{rank(0, "n1", "10.1.1.2"), rank(1, "n2", "10.1.2.2"), rank(2, "n1", "10.1.1.2"), rank(3, "n3", "10.1.3.2")}, Collective: "ring"},
			map[string]float64{"10.1.1.2": 6e6, "10.1.2.2": 3e6, "10.1.3.2": 3e6},
			"10.1.1.2>10.1.2.2 3000000 assumed\n10.1.2.2>10.1.1.2 3000000 inferred\n10.1.1.2>10.1.3.2 3000000 assumed\n10.1.3.2>10.1.1.2 3000000 inferred",
		},
		{"ranks of one node", traffic.Job{Ranks: []traffic.Rank{rank(0, "n1", "10.1.1.2"), rank(1, "n1", "10.1.1.3")}, Collective: "ring"}, nil, ""},
		{"a rail missing", traffic.Job{Ranks: []traffic.Rank{rank(0, "n1", "10.1.1.2"), rank(1, "n2")}, Collective: "ring"}, nil, "! job j: rank 1 has no nic on rail 0, rank 0 sends to it"},
		{"another collective", traffic.Job{Ranks: three, Collective: "tree"}, nil, `! job j: no matrix for collective "tree"`},
		{"one rank", traffic.Job{Ranks: three[:1], Collective: "ring"}, nil, ""},
		{"reported in part", traffic.Job{Ranks: three[:1], Collective: "ring", Missing: []string{"2 of 3 ranks report"}}, nil, "! job j: 2 of 3 ranks report"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.job.ID = "j"
			nics := map[netip.Addr]float64{}
			for a, v := range c.nics {
				nics[netip.MustParseAddr(a)] = v
			}
			m, problems := traffic.Ring([]traffic.Job{c.job}, nics)
			var lines []string
			for _, f := range m.Flows {
				lines = append(lines, fmt.Sprintf("%s>%s %.0f %s", f.Src, f.Dst, f.BytesPerSecond, f.Provenance))
			}
			for _, p := range problems {
				lines = append(lines, "! "+p)
			}
			if got := strings.Join(lines, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if m.Source != traffic.RingSource || slices.ContainsFunc(m.Flows, func(f traffic.Flow) bool { return f.Connections < 1 }) {
				t.Errorf("source %q, flows %+v", m.Source, m.Flows)
			}
		})
	}
}

func TestNamed(t *testing.T) {
	jobs := []traffic.Job{{ID: "a", Gang: "g0"}, {ID: "b", Gang: "g0"}, {ID: "a", Gang: "g1"}}
	var got []string
	for _, j := range traffic.Named(jobs) {
		got = append(got, j.ID)
	}
	if want := []string{"a/g0", "b", "a/g1"}; !slices.Equal(got, want) || jobs[0].ID != "a" {
		t.Errorf("%v, want %v, and the input untouched: %v", got, want, jobs)
	}
}

func TestByNIC(t *testing.T) {
	a, b := netip.MustParseAddr("10.1.1.2"), netip.MustParseAddr("10.1.2.2")
	m := traffic.Matrix{Flows: []traffic.Flow{{Src: a, Dst: b, BytesPerSecond: 1e6}, {Src: a, Dst: b, BytesPerSecond: 3e6}, {Src: b, Dst: a}}}
	got, ok := traffic.ByNIC(m, map[netip.Addr]float64{a: 8e6, b: 5e6}, "counters")
	if !ok || got.Flows[0].BytesPerSecond != 2e6 || got.Flows[1].BytesPerSecond != 6e6 || got.Flows[2].BytesPerSecond != 5e6 ||
		got.Flows[0].Provenance != traffic.Assumed || got.Flows[2].Provenance != traffic.Inferred || got.Source != "ring from ranks, rates from counters" {
		t.Errorf("%+v %v", got, ok)
	}
	if _, ok := traffic.ByNIC(m, map[netip.Addr]float64{a: 8e6}, "counters"); ok {
		t.Error("a nic that is not measured")
	}
}
