// SPDX-License-Identifier: Apache-2.0

//go:build tools

package stories

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/rules"
	"github.com/trainyard/trainyard/test/tools/toolbox"
)

// promtool runs the real thing and returns what it says.
func promtool(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := toolbox.Path("promtool")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "GOGC=800", "GOMAXPROCS=1") // half of its time is garbage collection otherwise
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// testFile renders stories into a file beside which nothing lies.
func testFile(t *testing.T, p rules.Profile, rulesDir string, every int, stories []Story, files ...string) string {
	t.Helper()
	content, err := Render(p, rulesDir, every, stories, files...)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), p.Name+".yaml")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func rulesDir(t *testing.T, p rules.Profile) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", p.Name))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// split parts the short stories from the long ones.
func split(p rules.Profile) (short, long []Story) {
	for _, s := range All(p) {
		if s.Long {
			long = append(long, s)
		} else {
			short = append(short, s)
		}
	}
	return short, long
}

// byRules parts stories by the rules that they want to see: fewer rules take less time.
func byRules(stories []Story) map[string][]Story {
	parts := map[string][]Story{}
	for _, s := range stories {
		parts[s.Rules] = append(parts[s.Rules], s)
	}
	return parts
}

func TestPromtool(t *testing.T) {
	for _, p := range rules.Profiles {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			dir := rulesDir(t, p)
			files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
			if err != nil || len(files) == 0 {
				t.Fatalf("rule files in %s: %v, %v", dir, files, err)
			}
			if out, err := promtool(t, append([]string{"check", "rules", "--lint=all", "--lint-fatal"}, files...)...); err != nil {
				t.Errorf("promtool check rules: %v\n%s", err, out)
			}
			short, long := split(p)
			for only, stories := range byRules(short) {
				var names []string
				if only != "" {
					names = append(names, only)
				}
				if out, err := promtool(t, "test", "rules", testFile(t, p, dir, 1, stories, names...)); err != nil {
					t.Errorf("promtool test rules: %v\n%s", err, out)
				}
			}
			// Half an hour: rules at every tenth scrape, or this would take minutes.
			if out, err := promtool(t, "test", "rules", testFile(t, p, dir, 10, long)); err != nil {
				t.Errorf("promtool test rules, long stories: %v\n%s", err, out)
			}
		})
	}
}
