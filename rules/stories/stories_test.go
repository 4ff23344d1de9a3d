// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"regexp"
	"testing"

	"github.com/trainyard/trainyard/exporter/catalog"
	"github.com/trainyard/trainyard/rules"
)

// Each alert of the catalogue has a story in which it fires and one in which something happens and it does not.
func TestEveryAlertHasStories(t *testing.T) {
	for _, p := range rules.Profiles {
		names := alertFiles(t, p)
		fires, quiet := map[string]int{}, map[string]int{}
		for _, s := range All(p) {
			for _, c := range s.Alerts {
				if len(c.Want) > 0 {
					fires[c.Alert]++
					if s.Rules != "" && !names[c.Alert][s.Rules] {
						t.Errorf("%s, story %q: alert %s is not in %s", p.Name, s.Name, c.Alert, s.Rules)
					}
				} else {
					quiet[c.Alert]++
				}
				for _, w := range c.Want {
					if err := catalog.CheckLabels(c.Alert, w.Labels); err != nil {
						t.Errorf("%s, story %q: %v", p.Name, s.Name, err)
					}
				}
			}
		}
		for _, a := range catalog.Alerts() {
			if fires[a.Name] == 0 || quiet[a.Name] == 0 {
				t.Errorf("%s: alert %s fires in %d checks and is quiet in %d, want some of both", p.Name, a.Name, fires[a.Name], quiet[a.Name])
			}
		}
	}
}

// Times that lie beyond a story's end would be checked against nothing.
func TestChecksLieInTheirStory(t *testing.T) {
	for _, p := range rules.Profiles {
		for _, s := range All(p) {
			n := 0
			for _, ticks := range s.Phases {
				n += ticks
			}
			for _, c := range s.Alerts {
				if c.At >= n {
					t.Errorf("%s, story %q (%d ticks): a check at tick %d", p.Name, s.Name, n, c.At)
				}
			}
			for _, c := range s.Values {
				if c.At >= n {
					t.Errorf("%s, story %q (%d ticks): a check at tick %d", p.Name, s.Name, n, c.At)
				}
			}
		}
	}
}

// alertFiles says in which rule files each alert stands.
func alertFiles(t *testing.T, p rules.Profile) map[string]map[string]bool {
	t.Helper()
	files, err := rules.Files(p.Name)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]map[string]bool{}
	for name, content := range files {
		for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllSubmatch(content, -1) {
			if alert := string(m[1]); in[alert] == nil {
				in[alert] = map[string]bool{name: true}
			} else {
				in[alert][name] = true
			}
		}
	}
	return in
}
