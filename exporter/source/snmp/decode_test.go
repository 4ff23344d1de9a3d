// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"context"
	"fmt"
	"testing"

	"github.com/gosnmp/gosnmp"
)

// Speed by hand: ifHighSpeed 400000 is 400,000 * 1,000,000 bit/s; / 8 = 50,000,000,000 bytes per second. ifSpeed would
// have said 4294967295 bit/s, a tenth of a percent of it.
func TestSpeedByHand(t *testing.T) {
	a, err := parseAgent("1.3.6.1.2.1.31.1.1.1.1.7 text Ethernet7\n1.3.6.1.2.1.31.1.1.1.15.7 number 400000\n1.3.6.1.2.1.2.2.1.5.7 number 4294967295")
	if err != nil {
		t.Fatal(err)
	}
	ports, err := readPorts(t.Context(), a)
	if err != nil || len(ports) != 1 || ports[0].speed != 50_000_000_000 {
		t.Errorf("got %+v, %v", ports, err)
	}
}

// Field case E1: bytes that are no UTF-8 are replaced, and rows that become alike stay apart.
func TestNamesThatAreNotUTF8(t *testing.T) {
	a, err := parseAgent("1.3.6.1.2.1.31.1.1.1.1.1 hex cad0ccfd\n1.3.6.1.2.1.31.1.1.1.1.2 hex cad0ccfe\n1.3.6.1.2.1.31.1.1.1.1.3 hex 4574683100")
	if err != nil {
		t.Fatal(err)
	}
	ports, err := readPorts(t.Context(), a)
	if err != nil || len(ports) != 3 || ports[0].name != "\uFFFD#1" || ports[1].name != "\uFFFD#2" || ports[2].name != "Eth1" {
		t.Errorf("got %+v, %v", ports, err)
	}
}

func TestFlaps(t *testing.T) {
	for _, c := range []struct {
		what  string
		polls []port
		again int // the poll before which the agent was started anew
		want  uint64
	}{
		{"nothing happens", []port{{up: true, changed: 10}, {up: true, changed: 10}, {up: true, changed: 10}}, 0, 0},
		{"it goes down and comes back", []port{{up: true, changed: 10}, {up: false, changed: 500}, {up: true, changed: 900}}, 0, 1},
		{"down and up between two polls", []port{{up: true, changed: 10}, {up: true, changed: 900}}, 0, 1},
		{"up and down between two polls", []port{{up: false, changed: 10}, {up: false, changed: 900}}, 0, 1},
		{"it was down from the start and comes up", []port{{up: false, changed: 10}, {up: true, changed: 900}}, 0, 0},
		{"the agent computes ifLastChange from an age", []port{{up: true, changed: 1000}, {up: true, changed: 1003}, {up: true, changed: 998}}, 0, 0},
		{"the agent starts anew", []port{{up: true, changed: 90000}, {up: true, changed: 0}}, 1, 0},
		{"the agent starts anew and the port is down", []port{{up: true, changed: 90000}, {up: false, changed: 0}}, 1, 1},
		{"over the wrap of sysUpTime", []port{{up: true, changed: 4294960000}, {up: false, changed: 100}, {up: true, changed: 400}}, 0, 1},
	} {
		var f flaps
		for i, p := range c.polls {
			f = f.next(p, c.again > 0 && i == c.again)
		}
		if f.count != c.want {
			t.Errorf("%s: %d flaps, want %d", c.what, f.count, c.want)
		}
	}
}

// Field case E5: 4294967000 then 200 is a wrap and no restart.
func TestClock(t *testing.T) {
	for _, c := range []struct {
		what          string
		before, after clock
		restarted     bool
	}{
		{"time goes on", clock{uptime: 100}, clock{uptime: 200}, false},
		{"a wrap", clock{uptime: 4294967000}, clock{uptime: 200}, false},
		{"a wrap, the engine's clock goes on", clock{4294967000, true, 3, 42949670}, clock{200, true, 3, 42949672}, false},
		{"a restart just before the wrap would be", clock{4294967000, true, 3, 42949670}, clock{200, true, 4, 2}, true},
		{"a restart", clock{uptime: 50000}, clock{uptime: 200}, true},
		{"a restart that takes long enough for more uptime", clock{500, true, 3, 5}, clock{700, true, 4, 7}, true},
	} {
		if got := c.after.restartedSince(c.before); got != c.restarted {
			t.Errorf("%s: restarted %v", c.what, got)
		}
	}
	k := clock{uptime: 1000}
	for ticks, want := range map[uint32]float64{1000: 0, 900: 1, 0: 10, 1001: 0, 4294967000: 12.96} { // the last one: 1000 + 296 ticks over the wrap
		if got := k.age(ticks); got != want {
			t.Errorf("age of %d at 1000 is %v, want %v", ticks, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		pdu  gosnmp.SnmpPDU
		want value
	}{
		{gosnmp.SnmpPDU{Name: ".1.3", Type: gosnmp.Integer, Value: -5}, value{kind: number, num: 1<<64 - 5}},
		{gosnmp.SnmpPDU{Name: ".1.3", Type: gosnmp.Counter32, Value: uint(7)}, value{kind: number, num: 7}},
		{gosnmp.SnmpPDU{Name: ".1.3", Type: gosnmp.TimeTicks, Value: uint32(7)}, value{kind: number, num: 7}},
		{gosnmp.SnmpPDU{Name: ".1.3", Type: gosnmp.Counter64, Value: uint64(1<<64 - 1)}, value{kind: number, num: 1<<64 - 1}},
		{gosnmp.SnmpPDU{Name: ".1.3", Type: gosnmp.OctetString, Value: []byte("x")}, value{kind: text, bytes: []byte("x")}},
		{gosnmp.SnmpPDU{Name: ".1.3", Type: gosnmp.IPAddress, Value: "255.0.0.1"}, value{kind: text, bytes: []byte{255, 0, 0, 1}}},
		{gosnmp.SnmpPDU{Name: ".1.3", Type: gosnmp.IPAddress, Value: nil}, value{}},
		{gosnmp.SnmpPDU{Name: ".1.3", Type: gosnmp.NoSuchInstance}, value{}},
		{gosnmp.SnmpPDU{Name: ".1.3", Type: gosnmp.EndOfMibView}, value{kind: endOfMIB}},
	} {
		got, err := decode(c.pdu)
		if err != nil || fmt.Sprint(got.value) != fmt.Sprint(c.want) {
			t.Errorf("%+v: %+v, %v", c.pdu, got, err)
		}
	}
	if _, err := decode(gosnmp.SnmpPDU{Name: "x"}); err == nil {
		t.Error("a name that is no OID was accepted")
	}
}

// Whatever an agent answers, a poll ends, does not panic, and gives port names that are all unlike.
func FuzzAnswers(f *testing.F) {
	f.Add("1.3.6.1.2.1.1.3.0 number 5\n1.3.6.1.2.1.31.1.1.1.1.1 text eth\n1.3.6.1.2.1.31.1.1.1.1.2 text eth\n1.3.6.1.2.1.31.1.1.1.15.1 number 18446744073709551615", 3)
	f.Add("1.0.8802.1.1.2.1.4.1.1.4.0.3.1 number 4\n1.0.8802.1.1.2.1.4.1.1.5.0.3.1 hex 0102\n1.0.8802.1.1.2.1.4.1.1.9.0.3.1 text x\n1.3.6.1.2.1.4.20.1.2.10.0.0.1 number 7\n1.3.6.1.2.1.4.20.1.3.10.0.0.1 hex ff", 0)
	f.Add("1.3.6.1.2.1.15.2.0 number 65001\n1.3.6.1.2.1.15.3.1.2.10.0.0.1 number 6\n1.3.6.1.2.1.15.3.1.2.10.0.0.999 number 6", 100)
	f.Fuzz(func(t *testing.T, lines string, most int) {
		a, err := parseAgent(lines)
		if err != nil {
			return
		}
		a.most = max(0, most)
		ctx := context.Background()
		ports, err := readPorts(ctx, a)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, p := range ports {
			if seen[p.name] || p.name == "" {
				t.Fatalf("port name %q twice or empty", p.name)
			}
			seen[p.name] = true
		}
		_, _, _ = readBGP(ctx, a)
		topo, _ := readTopology(ctx, a, ports)
		for _, n := range topo.neighbours {
			if n.port != "" && !seen[n.port] {
				t.Fatalf("neighbour on a port that is not there: %+v", n)
			}
		}
	})
}

// A packet that anybody may send must not take the exporter down.
func FuzzPackets(f *testing.F) {
	g := &gosnmp.GoSNMP{Version: gosnmp.Version2c, Community: "public"}
	packet, err := g.SnmpEncodePacket(gosnmp.GetResponse, []gosnmp.SnmpPDU{{Name: ".1.3.6.1.2.1.31.1.1.1.1.1", Type: gosnmp.OctetString, Value: []byte("eth1")}}, 0, 0)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packet)
	f.Fuzz(func(_ *testing.T, packet []byte) {
		g := &gosnmp.GoSNMP{Version: gosnmp.Version2c, Community: "public"}
		_, _ = answer(g.SnmpDecodePacket(packet))
	})
}
