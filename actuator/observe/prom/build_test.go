// SPDX-License-Identifier: Apache-2.0

package prom_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/observe/prom"
	"github.com/trainyard/trainyard/actuator/observe/prom/promtest"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

var at = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func limits() prom.Limits { return prom.Limits{Fabric: promtest.Fabric, MaxAge: 3 * time.Second} }

func build(t *testing.T, edit func(map[prom.Query][]prom.Sample)) fleet.Snapshot {
	t.Helper()
	y := promtest.Collision()
	y.Edit = edit
	return prom.Build(y.Results(at), limits())
}

func port(s string) ident.Port {
	p, err := ident.ParsePort(s)
	if err != nil {
		panic(err)
	}
	return p
}

// TestCollision reads the whole yard and looks at one thing of each kind.
func TestCollision(t *testing.T) {
	s := build(t, nil)
	if len(s.Problems) != 0 {
		t.Fatalf("problems with a healthy Prometheus: %q", s.Problems)
	}
	if !s.At.Equal(at) || s.Fabric.Name != "lab" {
		t.Errorf("snapshot of %s at %s", s.Fabric.Name, s.At)
	}
	// 2 x 4 cables between switches and 16 to nodes, each in both directions.
	if len(s.Fabric.Links) != 48 || len(s.Links) != 48 || len(s.Fabric.NICs) != 16 || len(s.NICs) != 16 || len(s.Nodes) != 8 || len(s.Fabric.Switches) != 6 {
		t.Errorf("%d links, %d loads, %d NICs, %d NIC loads, %d nodes, %d switches", len(s.Fabric.Links), len(s.Links), len(s.Fabric.NICs), len(s.NICs), len(s.Nodes), len(s.Fabric.Switches))
	}
	hot := s.Fabric.Links[port("lab/l1:sp1")]
	want := topo.Link{From: port("lab/l1:sp1"), To: port("lab/s1:lf1"), Direction: topo.Up, ECMPGroup: "lab/l1:up", BytesPerSecond: 12.5e6, Up: true}
	if hot != want {
		t.Errorf("link %+v, want %+v", hot, want)
	}
	// Two rings at 6 MB/s on the wire for 0.104 s of each 0.109 s: 2 * 6e6 * 0.104 / 0.109.
	if got := s.Links[hot.From].BytesPerSecond; math.Abs(got-11.45e6) > 0.01e6 {
		t.Errorf("load of the hot link %.2f MB/s", got/1e6)
	}
	host := s.Fabric.Links[port("lab/n2:rail0")]
	if host.To != port("lab/l1:h2") || host.Direction != topo.Host || s.Links[host.From].BytesPerSecond == 0 {
		t.Errorf("host link %+v with load %+v", host, s.Links[host.From])
	}
	nic := s.Fabric.NICs[netip.MustParseAddr("10.3.7.2")]
	if nic != (topo.NIC{Node: "n7", Device: "rail0", Rail: 0, Addr: netip.MustParseAddr("10.3.7.2"), Attached: port("lab/l3:h7")}) {
		t.Errorf("NIC %+v", nic)
	}
	if got := s.Fabric.Addresses[port("lab/l3:sp2")]; got != netip.MustParsePrefix("10.0.32.0/31") {
		t.Errorf("address of l3's port to s2 is %s", got)
	}
	a := s.Jobs[0]
	if a.ID != "job-a" || a.Gang != "workers" || a.Collective != "ring" || a.Connections != 1 || len(a.Ranks) != 4 || a.Missing != nil {
		t.Errorf("job %+v", a)
	}
	if got := a.StepSeconds; math.Abs(got-0.109) > 1e-9 {
		t.Errorf("step %g s, want 0.005 + 6e5*1.04/6e6", got)
	}
	if r := a.Ranks[2]; r.Node != "n5" || r.Addrs[1] != netip.MustParseAddr("10.4.5.2") || r.ComputeSeconds != 0.005 {
		t.Errorf("rank 2 is %+v", r)
	}
	if len(a.BytesPerSecondByRail) != 2 || math.Abs(a.BytesPerSecondByRail[0]-6e5/0.109) > 1 {
		t.Errorf("payload %v", a.BytesPerSecondByRail)
	}
}

// TestRouteHeals: the fake itself must show the effect of a route, or the whole-loop test would prove nothing.
func TestRouteHeals(t *testing.T) {
	y := promtest.Collision()
	y.Routes = []plan.Route{{Switch: "l1", Prefix: netip.MustParsePrefix("10.3.7.2/32"), Kind: plan.Pin, NextHops: []plan.NextHop{{Addr: netip.MustParseAddr("10.0.32.0")}}}}
	s := prom.Build(y.Results(at), limits())
	if got := s.Jobs[1].StepSeconds; math.Abs(got-0.057) > 1e-9 {
		t.Errorf("step with the pin %g s, want 0.005 + 6e5*1.04/12e6", got)
	}
}

func drop(q prom.Query, label, value string) func(map[prom.Query][]prom.Sample) {
	return func(v map[prom.Query][]prom.Sample) {
		v[q] = slices.DeleteFunc(v[q], func(x prom.Sample) bool { return label == "" || x.Labels[label] == value })
	}
}

func set(q prom.Query, label, value string, to float64) func(map[prom.Query][]prom.Sample) {
	return func(v map[prom.Query][]prom.Sample) {
		for i, x := range v[q] {
			if x.Labels[label] == value {
				v[q][i].Value = to
			}
		}
	}
}

func relabel(q prom.Query, label, value, change, to string) func(map[prom.Query][]prom.Sample) {
	return func(v map[prom.Query][]prom.Sample) {
		for _, x := range v[q] {
			if x.Labels[label] == value {
				x.Labels[change] = to
			}
		}
	}
}

// twice adds a copy of the samples that match, with one label changed.
func twice(q prom.Query, label, value, change, to string) func(map[prom.Query][]prom.Sample) {
	return func(v map[prom.Query][]prom.Sample) {
		for _, x := range v[q] {
			if x.Labels[label] == value {
				m := map[string]string{}
				for k, val := range x.Labels {
					m[k] = val
				}
				m[change] = to
				v[q] = append(v[q], prom.Sample{Labels: m, Value: x.Value})
			}
		}
	}
}

// TestProblems spoils one thing at a time. Each must be named with its place, and what is doubtful must be absent.
func TestProblems(t *testing.T) {
	const hot = "lab/l1:sp1"
	absent := func(p string) func(fleet.Snapshot) string {
		return func(s fleet.Snapshot) string {
			if _, ok := s.Fabric.Links[port(p)]; ok {
				return p + " stands all the same"
			}
			return ""
		}
	}
	noLoad := func(p string) func(fleet.Snapshot) string {
		return func(s fleet.Snapshot) string {
			if _, ok := s.Links[port(p)]; ok {
				return p + " has a load all the same"
			}
			return ""
		}
	}
	noNIC := func(a string) func(fleet.Snapshot) string {
		return func(s fleet.Snapshot) string {
			if _, ok := s.Fabric.NICs[netip.MustParseAddr(a)]; ok {
				return a + " stands all the same"
			}
			return ""
		}
	}
	missing := func(what string) func(fleet.Snapshot) string {
		return func(s fleet.Snapshot) string {
			for _, m := range s.Jobs[0].Missing {
				if strings.Contains(m, what) {
					return ""
				}
			}
			return fmt.Sprintf("job misses %q, not %q", s.Jobs[0].Missing, what)
		}
	}
	for _, c := range []struct {
		name string
		edit func(map[prom.Query][]prom.Sample)
		want string
		also func(fleet.Snapshot) string
	}{
		{"no load", drop(prom.PortTransmit, "port", "sp1"), "link lab/l1:sp1: its load is not reported", noLoad(hot)},
		{"load is NaN", set(prom.PortTransmit, "port", "sp1", math.NaN()), "lab/l1:sp1: port transmit rate is NaN", noLoad(hot)},
		{"load is infinite", set(prom.PortTransmit, "port", "sp1", math.Inf(1)), "lab/l1:sp1: port transmit rate is +Inf", noLoad(hot)},
		{"load below zero", set(prom.PortTransmit, "port", "sp1", -1), "lab/l1:sp1: port transmit rate is -1, below zero", noLoad(hot)},
		{"load twice", twice(prom.PortTransmit, "port", "sp1", "instance", "other"), "lab/l1:sp1: port transmit rate is reported more than once", noLoad(hot)},
		{"no age", drop(prom.PortAge, "port", "sp1"), "link lab/l1:sp1: the age of its counters is not known", noLoad(hot)},
		{"stale counters", set(prom.PortAge, "port", "sp1", 9), "link lab/l1:sp1: its load is 9.0 s old, at most 3s is accepted", nil},
		{"no errors", drop(prom.LinkErrors, "link", hot), "link lab/l1:sp1: its errors are not reported", nil},
		{"no flaps", drop(prom.LinkFlaps, "link", hot), "link lab/l1:sp1: its flaps are not reported", nil},
		{"no speed", drop(prom.PortSpeed, "switch", "s1"), "link lab/s1:lf1: its speed is not reported; refused", absent(hot)},
		{"state unknown", drop(prom.PortUp, "switch", "l1"), "link lab/l1:sp1: whether it is up is not reported", func(s fleet.Snapshot) string {
			if s.Fabric.Links[port(hot)].Up {
				return "and yet it is up"
			}
			return ""
		}},
		{"no address", drop(prom.PortAddress, "switch", "l3"), "port lab/l3:sp2: its address is not reported", nil},
		{"two addresses", twice(prom.PortAddress, "port", "sp2", "address", "10.9.9.9/31"), "port lab/l3:sp2: has more than one address; none is used", nil},
		{"address is none", relabel(prom.PortAddress, "port", "sp2", "address", "here"), `port lab/l3:sp2: address "here" is no address with a prefix length`, nil},
		{"peer does not point back", drop(prom.LinkInfo, "link", "lab/s1:lf1"), "link lab/l1:sp1: its peer lab/s1:lf1 does not name it back; refused", absent(hot)},
		{"two peers", twice(prom.LinkInfo, "link", hot, "ecmp_group", "other"), "link lab/l1:sp1: leads to two peers; refused", absent(hot)},
		{"unresolved peer", relabel(prom.LinkInfo, "link", hot, "peer_link", ""), `link lab/l1:sp1: its peer "s1" port "lf1" is not exactly one object of the inventory; refused`, absent(hot)},
		{"peer disagrees", relabel(prom.LinkInfo, "link", hot, "peer_port", "lf9"), `link lab/l1:sp1: peer "s1" port "lf9" and peer link "lab/s1:lf1" disagree; refused`, absent(hot)},
		{"name disagrees", relabel(prom.LinkInfo, "link", hot, "port", "sp9"), `link lab/l1:sp9: calls itself "lab/l1:sp1"; refused`, absent(hot)},
		{"direction unknown", relabel(prom.LinkInfo, "link", hot, "direction", "sideways"), `link lab/l1:sp1: direction "sideways" is none of up, down, access; refused`, absent(hot)},
		{"switch down", set(prom.SwitchUp, "switch", "s1", 0), "switch lab/s1: its agent does not answer", nil},
		{"switch gone", func(v map[prom.Query][]prom.Sample) {
			for _, q := range []prom.Query{prom.SwitchInfo, prom.LinkInfo, prom.PortSpeed, prom.PortUp, prom.PortAge} {
				drop(q, "switch", "s1")(v)
			}
			set(prom.SwitchUp, "switch", "s1", 0)(v)
		}, "switch lab/s1: its agent does not answer", absent(hot)},
		{"switch not described", drop(prom.SwitchInfo, "switch", "s1"), "link lab/s1:lf1: its switch is not described; refused", absent("lab/s1:lf1")},
		{"switch described twice", twice(prom.SwitchInfo, "switch", "s1", "chassis_id", "other"), "switch lab/s1: two descriptions that differ; refused", nil},
		{"tier unknown", relabel(prom.SwitchInfo, "switch", "s1", "tier", "attic"), `switch lab/s1: tier "attic" is neither a number nor leaf, spine or core`, nil},
		{"no NIC", drop(prom.NICInfo, "node", "n7"), "link lab/l3:h7: leads to lab/n7:rail0, of which no NIC with rail and address is reported", noNIC("10.3.7.2")},
		{"NIC without leaf", drop(prom.LinkInfo, "link", "lab/l3:h7"), "NIC lab/n7:rail0: no leaf port names it as its neighbour; refused", noNIC("10.3.7.2")},
		{"address of two NICs", relabel(prom.NICInfo, "address", "10.3.7.2", "address", "10.3.8.2"), "NIC lab/n8:rail0: it or its address 10.3.8.2 is reported more than once; refused", noNIC("10.3.8.2")},
		{"NIC with two addresses", twice(prom.NICInfo, "address", "10.3.7.2", "address", "10.3.77.2"), "NIC lab/n7:rail0: it or its address 10.3.77.2 is reported more than once; refused", nil},
		{"NIC on two leaves", relabel(prom.LinkInfo, "link", "lab/l3:h7", "peer_link", "lab/n8:rail0"), "disagree; refused", nil},
		{"rail is none", relabel(prom.NICInfo, "node", "n7", "rail", "left"), `NIC lab/n7:rail0: rail "left" is no number from 0 to 63; refused`, noNIC("10.3.7.2")},
		{"no NIC load", drop(prom.NICTransmit, "node", "n7"), "NIC n7:rail0: its load is not reported", nil},
		{"stale NIC", set(prom.NICAge, "node", "n7", 10), "NIC n7:rail0: its load is 10.0 s old, at most 3s is accepted", nil},
		{"no node signals", drop(prom.NodeZeroWin, "node", "n7"), "node n7: zero windows or retransmits are not reported", nil},
		{"no step time", drop(prom.StepSeconds, "job_id", "job-a"), "job job-a gang workers: missing: step time", missing("step time")},
		{"step time NaN", set(prom.StepSeconds, "job_id", "job-a", math.NaN()), "job job-a gang workers: step seconds is NaN", missing("step time")},
		{"a rank is missing", drop(prom.RankAddress, "rank", "3"), "job job-a gang workers: missing: 3 of 4 ranks are reported", missing("3 of 4 ranks")},
		{"rank with a strange address", relabel(prom.RankAddress, "address", "10.1.1.2", "address", "10.9.9.9"), "missing: a NIC with the address 10.9.9.9 of rank 0 on n1", missing("10.9.9.9")},
		{"rank on another node", relabel(prom.RankAddress, "address", "10.1.1.2", "node", "n9"), "missing: agreement on rank 0: it says n9 rail 0, the NIC with 10.1.1.2 is on n1 rail 0", missing("agreement")},
		{"no step counter", drop(prom.JobSteps, "job_id", "job-a"), "missing: step counter", missing("step counter")},
		{"no compute time", drop(prom.Compute, "rank", "1"), "missing: compute time of rank 1 on n2", missing("compute time of rank 1")},
		{"no bytes", drop(prom.JobStepBytes, "rail", "1"), "missing: bytes sent on rail 1", missing("rail 1")},
		{"stale job", set(prom.JobReportsAge, "job_id", "job-a", 30), "job job-a gang workers: its report is 30.0 s old", nil},
		{"two shapes", twice(prom.JobInfo, "job_id", "job-a", "ranks", "8"), "job job-a gang workers: its ranks disagree on its shape; refused", nil},
		{"no shape", drop(prom.JobInfo, "job_id", "job-a"), "job job-a gang workers: has ranks in the fabric but its shape is not reported", nil},
		{"hostile label", relabel(prom.SwitchInfo, "switch", "s1", "switch", "s1\n:evil/"), "a switch is refused: device of port", nil},
		{"everything is gone", func(v map[prom.Query][]prom.Sample) { clear(v) }, "", func(s fleet.Snapshot) string {
			if len(s.Fabric.Links)+len(s.Jobs) != 0 {
				return "something stands all the same"
			}
			return ""
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := build(t, c.edit)
			if c.want != "" && !slices.ContainsFunc(s.Problems, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("no problem says %q:\n%s", c.want, strings.Join(s.Problems, "\n"))
			}
			if c.also != nil {
				if bad := c.also(s); bad != "" {
					t.Error(bad)
				}
			}
		})
	}
}

// TestPassedOver: what is no part of the training fabric is no problem either.
func TestPassedOver(t *testing.T) {
	add := func(labels ...string) func(map[prom.Query][]prom.Sample) {
		return func(v map[prom.Query][]prom.Sample) {
			m := map[string]string{"fabric": "lab", "switch": "l1", "port": "e9", "link": "lab/l1:e9"}
			for i := 0; i < len(labels); i += 2 {
				m[labels[i]] = labels[i+1]
			}
			v[prom.LinkInfo] = append(v[prom.LinkInfo], prom.Sample{Labels: m, Value: 1})
		}
	}
	for name, edit := range map[string]func(map[prom.Query][]prom.Sample){
		"a stranger":             add("peer", "storage7", "peer_port", "eth0"),
		"a leaf beside the leaf": add("peer_kind", "switch", "peer", "l2", "peer_port", "e9", "peer_link", "lab/l2:e9"),
		"a NIC without rail": func(v map[prom.Query][]prom.Sample) {
			v[prom.NICInfo] = append(v[prom.NICInfo], prom.Sample{Labels: map[string]string{"fabric": "lab", "node": "n1", "device": "mgmt", "address": "10.255.0.11"}, Value: 1})
		},
		"a job on another fabric": func(v map[prom.Query][]prom.Sample) {
			v[prom.JobInfo] = append(v[prom.JobInfo], prom.Sample{Labels: map[string]string{"job_id": "x", "ranks": "2"}, Value: 1})
		},
		"another fabric altogether": func(v map[prom.Query][]prom.Sample) {
			v[prom.SwitchInfo] = append(v[prom.SwitchInfo], prom.Sample{Labels: map[string]string{"fabric": "other", "switch": "s1", "tier": "1"}, Value: 1})
		},
	} {
		if s := build(t, edit); len(s.Problems) != 0 || len(s.Fabric.Links) != 48 || len(s.Fabric.NICs) != 16 || len(s.Jobs) != 2 {
			t.Errorf("%s: %d links, problems %q", name, len(s.Fabric.Links), s.Problems)
		}
	}
	if s := build(t, add("peer", "s1", "peer_port", "lf9")); !slices.Contains(s.Problems, `link lab/l1:e9: its peer "s1" port "lf9" is not exactly one object of the inventory; refused`) {
		t.Errorf("a doubtful link to a switch of ours is no problem: %q", s.Problems)
	}
}

// TestFabricIsFound: without a configured fabric there must be exactly one.
func TestFabricIsFound(t *testing.T) {
	y := promtest.Collision()
	l := limits()
	l.Fabric = ""
	if s := prom.Build(y.Results(at), l); s.Fabric.Name != "lab" || len(s.Problems) != 0 {
		t.Errorf("fabric %q, problems %q", s.Fabric.Name, s.Problems)
	}
	y.Edit = twice(prom.SwitchInfo, "switch", "s1", "fabric", "other")
	s := prom.Build(y.Results(at), l)
	if s.Fabric.Name != "" || len(s.Fabric.Links) != 0 || !slices.Contains(s.Problems, `2 fabrics are reported ("lab", "other", ...) and none is configured`) {
		t.Errorf("fabric %q with %d links, problems %q", s.Fabric.Name, len(s.Fabric.Links), s.Problems)
	}
}

func config() prom.Config {
	c := prom.LabConfig()
	c.Fabric = promtest.Fabric
	return c
}

func observer(t *testing.T, s *promtest.Server, edit func(*prom.Config)) *prom.Observer {
	t.Helper()
	c := config()
	c.URL = s.URL
	if edit != nil {
		edit(&c)
	}
	o, err := prom.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestSnapshotOverHTTP asks the fake Prometheus and must see what Build saw without HTTP.
func TestSnapshotOverHTTP(t *testing.T) {
	srv := promtest.Serve(t, promtest.Collision(), config())
	s, err := observer(t, srv, nil).Observe(context.Background())
	if err != nil || len(s.Problems) != 0 || len(s.Links) != 48 {
		t.Fatalf("%d links, problems %q, error %v", len(s.Links), s.Problems, err)
	}
}

// TestPrometheusFails covers what a Prometheus can do to us. None of it may hang, and each says what happened.
func TestPrometheusFails(t *testing.T) {
	ok := func(result string) string { return `{"status":"success","data":` + result + `}` }
	scalar := ok(`{"resultType":"scalar","result":[1796040000.000,"1796040000"]}`)
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("query") == "time()" {
				body := scalar
				fmt.Fprint(w, body)
				return
			}
			fmt.Fprint(w, body)
		}
	}
	for _, c := range []struct {
		name  string
		fault http.HandlerFunc
		want  string
	}{
		{"503", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "starting up", http.StatusServiceUnavailable)
		}, `status 503: "starting up"`},
		{"refused query", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"status":"error","errorType":"execution","error":"too many samples"}`)
		}, "status 422: execution: too many samples"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		}, "status 302"},
		{"garbage", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "ask its time: decode answer"},
		{"time is no number", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, ok(`{"resultType":"scalar","result":["now","1"]}`))
		}, "the time of a point is not a number"},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "context deadline exceeded"},
		{"endless", func(w http.ResponseWriter, r *http.Request) {
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "answer is longer than 32 MiB"},
		{"matrix", answer(ok(`{"resultType":"matrix","result":[]}`)), `answer is a "matrix", want a vector`},
		{"null label", answer(ok(`{"resultType":"vector","result":[{"metric":{"a":null},"value":[1796040000,"1"]}]}`)), `label "a" is null`},
		{"two members of one name", answer(ok(`{"resultType":"vector","result":[{"metric":{"a":"1","a":"2"},"value":[1796040000,"1"]}]}`)), "duplicate object member name"},
		{"histogram", answer(ok(`{"resultType":"vector","result":[{"metric":{},"histogram":[1796040000,{}]}]}`)), "unknown object member name"},
		{"short point", answer(ok(`{"resultType":"vector","result":[{"metric":{},"value":[1796040000]}]}`)), "a point has 1 members"},
		{"value is a number", answer(ok(`{"resultType":"vector","result":[{"metric":{},"value":[1796040000,1]}]}`)), "the value of a point is not a string"},
		{"value is a word", answer(ok(`{"resultType":"vector","result":[{"metric":{},"value":[1796040000,"one"]}]}`)), `the value of a point, "one", is not a number`},
		{"another time", answer(ok(`{"resultType":"vector","result":[{"metric":{},"value":[1796040001,"1"]}]}`)), "asked for Nov 30"},
		{"trailing data", answer(ok(`{"resultType":"vector","result":[]}`) + `{}`), "decode answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := promtest.Serve(t, promtest.Collision(), config())
			own := promtest.ServeHandler(t, c.fault)
			o := observer(t, srv, func(p *prom.Config) {
				p.URL = own
				p.Timeout = 5 * time.Second
				if c.name == "hangs" {
					p.Timeout = 100 * time.Millisecond
				}
			})
			s, err := o.Observe(context.Background())
			if err == nil {
				t.Fatalf("no error; problems %q", s.Problems)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want %q in it", err, c.want)
			}
			if !strings.HasPrefix(err.Error(), "observe by Prometheus "+own) {
				t.Errorf("error %q does not name the place", err)
			}
		})
	}
}

// TestPartialAnswer: one query that fails is no picture; in recorded answers it is a problem, as is a warning.
func TestPartialAnswer(t *testing.T) {
	y := promtest.Collision()
	srv := promtest.Serve(t, y, config())
	inner := srv.URL
	flaps := prom.Expressions(config())[prom.LinkFlaps]
	own := promtest.ServeHandler(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") == flaps {
			http.Error(w, "query timed out", http.StatusServiceUnavailable)
			return
		}
		resp, err := http.Get(inner + r.URL.RequestURI())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(w, resp.Body)
	})
	_, err := observer(t, srv, func(p *prom.Config) { p.URL = own }).Observe(context.Background())
	if want := `1 of 29 queries failed, the first (link flaps): status 503: "query timed out"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	r := y.Results(at)
	r.Failures, r.Warnings = map[prom.Query]string{prom.LinkFlaps: "timed out"}, []string{"a store did not answer"}
	s := prom.Build(r, limits())
	for _, want := range []string{`query "link flaps" failed: timed out`, "Prometheus warns: a store did not answer"} {
		if !slices.Contains(s.Problems, want) {
			t.Errorf("problems %q, want %q", s.Problems, want)
		}
	}
}

func TestPrometheusDown(t *testing.T) {
	srv := promtest.Serve(t, promtest.Collision(), config())
	o := observer(t, srv, func(p *prom.Config) { p.URL = "http://127.0.0.1:1" })
	_, err := o.Observe(context.Background())
	if err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "query=") {
		t.Errorf("error %v", err)
	}
}

// TestTokenIsReadEachTime: a rotated token needs no restart, and a missing file says so.
func TestTokenIsReadEachTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	var got string
	own := promtest.ServeHandler(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		http.Error(w, "no", http.StatusUnauthorized)
	})
	srv := promtest.Serve(t, promtest.Collision(), config())
	o := observer(t, srv, func(p *prom.Config) { p.URL, p.TokenFile = own, file })
	if _, err := o.Observe(context.Background()); err == nil || !strings.Contains(err.Error(), "read token file") {
		t.Errorf("error %v", err)
	}
	for _, token := range []string{"one", "two"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := o.Observe(context.Background())
		if err == nil || !strings.Contains(err.Error(), "status 401") || strings.Contains(err.Error(), token) {
			t.Errorf("error %v", err)
		}
		if got != "Bearer "+token {
			t.Errorf("sent %q", got)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		edit func(*prom.Config)
		want string
	}{
		{func(c *prom.Config) { c.URL = "prometheus:9090" }, `url: scheme "prometheus", want http or https`},
		{func(c *prom.Config) { c.URL = "http://user:secret@host" }, "url: credentials in a URL end up in logs; use token_file"},
		{func(c *prom.Config) { c.URL = "http://ho st" }, "url: not a URL"},
		{func(c *prom.Config) { c.Fabric = `a"} or up{a="` }, "fabric: "},
		{func(c *prom.Config) { c.Window = 0 }, "window: 0s is outside 1s..1h0m0s"},
		{func(c *prom.Config) { c.Timeout = time.Hour }, "timeout: 1h0m0s is outside 100ms..1m0s"},
	} {
		cfg := prom.DefaultConfig()
		c.edit(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	if err := errorsOf(prom.DefaultConfig(), prom.LabConfig()); err != nil {
		t.Error(err)
	}
}

func errorsOf(cs ...prom.Config) error {
	for _, c := range cs {
		if err := c.Validate(); err != nil {
			return err
		}
	}
	return nil
}
