// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
	"github.com/trainyard/trainyard/test/lab"
)

// fabricMbit is the rate of a link that no case slows down; hosts are faster, so that only the fabric holds streams.
const (
	fabricMbit = 100
	hostMbit   = 400
)

// testCase is a set of streams over links of which some are slower.
type testCase struct {
	name    string
	slow    map[string]int // "l1:sp1" -> Mbit/s
	streams []stream
}

// stream goes from one NIC to another over one spine.
type stream struct {
	from, to lab.NIC
	spine    string
}

func (s stream) String() string {
	return fmt.Sprintf("%s.%d>%s.%d@%s", s.from.Host, s.from.Rail, s.to.Host, s.to.Rail, s.spine)
}

// links are the two that a stream shares with others: up to its spine and down from it.
func (s stream) links() []ident.Port {
	return []ident.Port{
		{Fabric: "lab", Device: s.from.Leaf, Name: lab.PortToSpine(s.spine)},
		{Fabric: "lab", Device: s.spine, Name: "lf" + s.to.Leaf[1:]},
	}
}

// fixedCases are built so that some links are held below their speed by a bottleneck elsewhere: those are what a
// simple count of streams gets wrong.
func fixedCases() []testCase {
	return []testCase{
		{"three streams share an uplink", nil, streams("n1.0>n5.0@s1 n2.0>n6.1@s1 n3.0>n7.1@s1")},
		{"parking lot", nil, streams("n1.0>n5.0@s1 n2.0>n6.0@s1 n3.0>n7.1@s1 n1.1>n8.1@s1 n5.0>n6.1@s1")},
		{"slow uplink", map[string]int{"l2:sp1": 40}, streams("n1.1>n5.1@s1 n2.1>n6.1@s1 n3.0>n7.1@s1")},
		{"slow downlink", map[string]int{"s1:lf3": 30}, streams("n1.0>n5.0@s1 n2.0>n6.0@s1 n3.0>n7.1@s1 n4.1>n8.1@s1")},
		{"two spines", map[string]int{"l1:sp2": 40}, streams("n1.0>n5.0@s1 n2.0>n6.0@s2 n3.0>n7.1@s2 n1.1>n8.0@s1")},
	}
}

// randomCases draws streams between pods and within, and slows two links.
func randomCases(seed uint64, n int) []testCase {
	rng := rand.New(rand.NewPCG(seed, 0))
	hosts := lab.Plan(false).Hosts
	var cases []testCase
	for i := range n {
		c := testCase{name: fmt.Sprintf("random %d", i+1), slow: map[string]int{}}
		for range 2 {
			leaf, spine := rng.IntN(lab.Leaves)+1, rng.IntN(lab.Spines)+1
			port := fmt.Sprintf("l%d:sp%d", leaf, spine)
			if rng.IntN(2) == 0 {
				port = fmt.Sprintf("s%d:lf%d", spine, leaf)
			}
			c.slow[port] = 25 + 5*rng.IntN(10)
		}
		for len(c.streams) < 8 {
			s := stream{
				from: hosts[rng.IntN(lab.Hosts)].NICs[rng.IntN(lab.Rails)], to: hosts[rng.IntN(lab.Hosts)].NICs[rng.IntN(lab.Rails)],
				spine: fmt.Sprintf("s%d", rng.IntN(lab.Spines)+1),
			}
			same := func(o stream) bool { return o.from.Addr == s.from.Addr && o.to.Addr == s.to.Addr }
			if s.from.Leaf != s.to.Leaf && s.from.Host != s.to.Host && !slices.ContainsFunc(c.streams, same) {
				c.streams = append(c.streams, s)
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// streams reads "n1.0>n5.0@s1 ...".
func streams(text string) []stream {
	hosts := lab.Plan(false)
	nic := func(s string) lab.NIC {
		name, rail, _ := strings.Cut(s, ".")
		h, ok := hosts.Host(name)
		if !ok || rail != "0" && rail != "1" {
			panic("bench: no NIC " + s) // the text is in this file
		}
		return h.NICs[rail[0]-'0']
	}
	var out []stream
	for _, f := range strings.Fields(text) {
		pair, spine, _ := strings.Cut(f, "@")
		from, to, _ := strings.Cut(pair, ">")
		out = append(out, stream{nic(from), nic(to), spine})
	}
	return out
}
