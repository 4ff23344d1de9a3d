// SPDX-License-Identifier: Apache-2.0

// Package story runs tests that are written as text: commands, a line of dashes, the result. Blocks are separated
// by empty lines, lines that begin with # are comments. With -update the results are rewritten, to be reviewed
// like prose.
package story

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the results of the stories in testdata")

const rule = "----"

// Run runs every file that matches the pattern. start begins one story and returns the function that answers a
// block: it gets the block's commands and returns the result, which ends without a newline.
func Run(t *testing.T, pattern string, start func(t *testing.T) func(t *testing.T, commands []string) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("stories %s: none found (%v)", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			answer := start(t)
			var out []string
			for n, b := range strings.Split(strings.Trim(string(text), "\n"), "\n\n") {
				commands, want, found := strings.Cut(b, "\n"+rule)
				if !found && !*update {
					out = append(out, b)
					continue
				}
				var run []string
				for _, line := range strings.Split(commands, "\n") {
					if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
						run = append(run, line)
					}
				}
				if len(run) == 0 { // prose between blocks
					out = append(out, b)
					continue
				}
				got := answer(t, run)
				if want = strings.TrimPrefix(want, "\n"); got != want && !*update {
					t.Errorf("%s, block %d:\n%s\n--- got\n%s\n--- want\n%s", file, n+1, commands, got, want)
				}
				block := commands + "\n" + rule
				if got != "" {
					block += "\n" + got
				}
				out = append(out, block)
			}
			if *update {
				if err := os.WriteFile(file, []byte(strings.Join(out, "\n\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
