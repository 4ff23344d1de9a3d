// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

const sound = `
version: 1
pools:
  default: {mode: advise}
policies:
- name: relieve
  match: {alerts: [FabricLinkCongested], clusters: ["*"], fabrics: [lab]}
  mode: act
  budgets: {max_concurrent: 2}
  cooldown: 90s
  windows: [{days: [mon, tue], from: "22:00", to: "02:00"}]
`

func TestParse(t *testing.T) {
	s, err := Parse([]byte(sound))
	if err != nil {
		t.Fatal(err)
	}
	p := s.Policies[0]
	if p.Cooldown != 90*time.Second || p.Budgets.MaxConcurrent != 2 || p.Budgets.PerHour != Default().Budgets.PerHour || p.Goal != RelieveLink {
		t.Errorf("%+v", p)
	}
	if m := s.Mode(p); m != Advise {
		t.Errorf("mode %s: the pool's ceiling does not bind", m)
	}
	if _, ok := s.Find("FabricLinkCongested", "", "lab"); !ok {
		t.Error("the alert is not found")
	}
	for _, c := range [][3]string{{"Other", "", "lab"}, {"FabricLinkCongested", "", "other"}, {"", "", "lab"}, {"FabricLinkCongested", "", ""}} {
		if _, ok := s.Find(c[0], c[1], c[2]); ok {
			t.Errorf("%v is found", c)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"version: 1", "version: 2", "$.version"},
		{"mode: act", "mod: act", "mod"},
		{"mode: act", "mode: auto", `$.policies[0].mode: "auto"`},
		{"mode: advise", "mode: x", "$.pools.default.mode"},
		{"fabrics: [lab]", "fabrics: []", "$.policies[0].match.fabrics: empty"},
		{`clusters: ["*"], `, "", "$.policies[0].match.clusters: empty"},
		{"[FabricLinkCongested]", `["*"]`, "$.policies[0].match.alerts[0]"},
		{"max_concurrent: 2", "max_concurrent: 0", "$.policies[0].budgets.max_concurrent: 0"},
		{"cooldown: 90s", "cooldown: -1s", "$.policies[0].cooldown"},
		{"cooldown: 90s", "cooldown: soon", "cooldown"},
		{"name: relieve", "name: ''", "$.policies[0].name: empty"},
		{"name: relieve", "name: relieve\n  goal: reboot", "$.policies[0].goal"},
		{`from: "22:00"`, `from: "26:00"`, "$.policies[0].windows[0]: from"},
		{"days: [mon, tue]", "days: []", "$.policies[0].windows[0]: days"},
		{"cooldown: 90s", "settle: 10m", "$.policies[0].settle"},
	} {
		_, err := Parse([]byte(strings.Replace(sound, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
	}
}

// Windows are half open, and those over midnight belong to the day on which they begin.
func TestWindows(t *testing.T) {
	s, err := Parse([]byte(sound))
	if err != nil {
		t.Fatal(err)
	}
	monday := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at   time.Duration
		open bool
	}{
		{22*time.Hour - time.Nanosecond, false}, {22 * time.Hour, true}, {26*time.Hour - time.Nanosecond, true}, {26 * time.Hour, false},
		{46 * time.Hour, true}, {49 * time.Hour, true}, {50 * time.Hour, false}, {70 * time.Hour, false}, {time.Hour, false},
	} {
		if got := s.Policies[0].Open(monday.Add(c.at)); got != c.open {
			t.Errorf("%v: open = %v", c.at, got)
		}
	}
	if !Default().Open(monday) {
		t.Error("a policy without windows is closed")
	}
}

func TestModeOfAPolicyThatIsGone(t *testing.T) {
	s, err := Parse([]byte(sound))
	if err != nil {
		t.Fatal(err)
	}
	p := s.Policies[0]
	if m := (Set{}).Mode(p); m != Watch {
		t.Error(m)
	}
	s.Pools = nil
	if m := s.Mode(p); m != Act {
		t.Error(m)
	}
	s.Policies[0].Mode = Watch
	if m := s.Mode(p); m != Watch {
		t.Error(m)
	}
	if Weaker("", Act) != "" || Weaker(Act, "typo") != "typo" {
		t.Error("an unknown mode is not the weakest")
	}
}

func TestHash(t *testing.T) {
	a, b := Default(), Default()
	if a.Hash() != b.Hash() {
		t.Error("equal policies differ")
	}
	b.Cooldown++
	if a.Hash() == b.Hash() {
		t.Error("different policies are equal")
	}
}
