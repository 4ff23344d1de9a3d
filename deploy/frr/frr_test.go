// SPDX-License-Identifier: Apache-2.0

package frr

import (
	"flag"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func full() Params {
	return Params{
		ASN: 65001, Pins: netip.MustParseAddr("10.255.0.254"), Weights: netip.MustParseAddr("10.255.0.253"),
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16"), netip.MustParsePrefix("10.4.0.0/16")},
		Feed:     []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16"), netip.MustParsePrefix("10.4.0.0/16"), netip.MustParsePrefix("10.0.0.0/16")},
		Password: "not-this-one", TTLSecurityHops: 1,
	}
}

func TestRenderLeafPeers(t *testing.T) {
	pins := full()
	pins.Weights, pins.Password, pins.TTLSecurityHops = netip.Addr{}, "", 0
	for name, p := range map[string]Params{"full": full(), "pins-only": pins} {
		got, err := RenderLeafPeers(p)
		if err != nil {
			t.Fatal(err)
		}
		path := "testdata/" + name + ".conf"
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
	}
}

func TestRenderRefusesALeafWithoutBounds(t *testing.T) {
	for what, change := range map[string]func(*Params){
		"no prefixes":             func(p *Params) { p.Prefixes = nil },
		"want an IPv4 prefix":     func(p *Params) { p.Prefixes = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")} },
		"IPv4 address of its own": func(p *Params) { p.Weights = p.Pins },
		"no feed":                 func(p *Params) { p.Feed = nil },
		"no AS number":            func(p *Params) { p.ASN = 0 },
		"the password has blanks": func(p *Params) { p.Password = "a\nneighbor 1.2.3.4 remote-as 1" },
		"254":                     func(p *Params) { p.TTLSecurityHops = 300 },
		"a limit of -1":           func(p *Params) { p.MaximumPrefix = -1 },
	} {
		p := full()
		change(&p)
		if text, err := RenderLeafPeers(p); err == nil || text != "" || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %q, %v", what, text, err)
		}
	}
}
