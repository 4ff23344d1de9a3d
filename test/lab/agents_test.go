// SPDX-License-Identifier: Apache-2.0

//go:build lab

package lab_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"

	"github.com/trainyard/trainyard/test/lab"
	"github.com/trainyard/trainyard/test/lab/ring"
)

// snmp connects to a switch's agent from the management network.
func snmp(t *testing.T, l *lab.Lab, place string, v3 bool) *gosnmp.GoSNMP {
	t.Helper()
	s, _ := l.Switch(place)
	g := &gosnmp.GoSNMP{Target: s.Mgmt.String(), Port: 161, Version: gosnmp.Version2c, Community: lab.SNMPCommunity, Timeout: time.Second, Retries: 3, MaxRepetitions: 40}
	if v3 {
		g.Version, g.Community, g.SecurityModel, g.MsgFlags = gosnmp.Version3, "", gosnmp.UserSecurityModel, gosnmp.AuthPriv
		g.SecurityParameters = &gosnmp.UsmSecurityParameters{
			UserName: lab.SNMPUser, AuthenticationProtocol: gosnmp.SHA256, AuthenticationPassphrase: lab.SNMPAuthPass,
			PrivacyProtocol: gosnmp.AES, PrivacyPassphrase: lab.SNMPPrivPass,
		}
	}
	must(t, l.Do(lab.Mgmt, g.Connect))
	t.Cleanup(func() { _ = g.Conn.Close() })
	return g
}

// column walks one column of a table: index -> value.
func column(t *testing.T, g *gosnmp.GoSNMP, oid string) map[string]string {
	t.Helper()
	pdus, err := g.BulkWalkAll(oid)
	must(t, err)
	out := map[string]string{}
	for _, p := range pdus {
		value := fmt.Sprint(p.Value)
		if b, ok := p.Value.([]byte); ok {
			value = string(b)
		}
		out[strings.TrimPrefix(p.Name, "."+oid+".")] = value
	}
	return out
}

func TestAgents(t *testing.T) {
	ctx := testContext(t, time.Minute)
	l := up(ctx, t, lab.Config{})
	t.Run("IF-MIB", func(t *testing.T) {
		g := snmp(t, l, "l1", true)
		names, speeds := column(t, g, "1.3.6.1.2.1.31.1.1.1.1"), column(t, g, "1.3.6.1.2.1.31.1.1.1.15")
		got := map[string]string{}
		for index, name := range names {
			got[name] = speeds[index]
		}
		for _, port := range l.Ports("l1") {
			if got[port] != "100" {
				t.Errorf("ifHighSpeed of %s is %q, want 100", port, got[port])
			}
		}
	})
	t.Run("counters move every second", func(t *testing.T) {
		s, err := ring.StartStream(ctx, l, ring.Stream{From: "n1", To: "n5", Spine: "s1", Mbit: 40})
		must(t, err)
		g := snmp(t, l, "l1", false)
		names := column(t, g, "1.3.6.1.2.1.31.1.1.1.1")
		index := ""
		for i, name := range names {
			if name == "sp1" {
				index = i
			}
		}
		values := map[string]bool{}
		for range 4 {
			values[column(t, g, "1.3.6.1.2.1.31.1.1.1.10")[index]] = true
			must(t, pause(ctx, 1200*time.Millisecond))
		}
		if len(values) < 4 {
			t.Errorf("ifHCOutOctets of l1:sp1 had %d values in 4 reads 1.2 s apart: %v", len(values), slices.Sorted(maps.Keys(values)))
		}
		_, err = s.Stop(ctx)
		must(t, err)
	})
	t.Run("LLDP-MIB", func(t *testing.T) {
		want := map[string][]string{
			"l1": {"n1:rail0", "n2:rail0", "n3:rail0", "n4:rail0", "s1:lf1", "s2:lf1"},
			"l4": {"n5:rail1", "n6:rail1", "n7:rail1", "n8:rail1", "s1:lf4", "s2:lf4"},
			"s2": {"l1:sp2", "l2:sp2", "l3:sp2", "l4:sp2"},
		}
		for place, peers := range want {
			var got []string
			must(t, poll(ctx, 10*time.Second, func() error { // neighbours speak once a second
				g := snmp(t, l, place, false)
				names, ports := column(t, g, "1.0.8802.1.1.2.1.4.1.1.9"), column(t, g, "1.0.8802.1.1.2.1.4.1.1.7")
				got = nil
				for index, name := range names {
					got = append(got, name+":"+ports[index])
				}
				slices.Sort(got)
				if !slices.Equal(got, peers) {
					return fmt.Errorf("%s sees %v, want %v", place, got, peers)
				}
				return nil
			}))
		}
	})
	t.Run("BGP4-MIB", func(t *testing.T) {
		must(t, poll(ctx, 10*time.Second, func() error {
			states := column(t, snmp(t, l, "s1", false), "1.3.6.1.2.1.15.3.1.2")
			for _, peer := range []string{"10.0.11.0", "10.0.21.0", "10.0.31.0", "10.0.41.0"} {
				if states[peer] != "6" {
					return fmt.Errorf("s1's peers are %v, want %s established (6)", states, peer)
				}
			}
			return nil
		}))
	})
	t.Run("an agent that restarts keeps its identity", func(t *testing.T) {
		g := snmp(t, l, "l2", true)
		if _, err := g.Get([]string{"1.3.6.1.2.1.1.5.0"}); err != nil {
			t.Fatal(err)
		}
		_, err := l.Exec(ctx, "l2", "sh", "-c", "kill $(cat "+l.Dir+"/l2/snmp/snmpd.pid)")
		must(t, err)
		must(t, poll(ctx, 5*time.Second, func() error {
			if _, err := l.Exec(ctx, "l2", "sh", "-c", "kill -0 $(cat "+l.Dir+"/l2/snmp/snmpd.pid) 2>/dev/null"); err == nil {
				return fmt.Errorf("the agent still runs")
			}
			return nil
		}))
		_, err = l.StartSNMP(ctx, "l2")
		must(t, err)
		r, err := g.Get([]string{"1.3.6.1.2.1.1.5.0"})
		must(t, err)
		if name := string(r.Variables[0].Value.([]byte)); name != "l2" {
			t.Errorf("sysName is %q, want l2", name)
		}
	})
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// poll asks until ok is content.
func poll(ctx context.Context, limit time.Duration, ok func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := ok()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
