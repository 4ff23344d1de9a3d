// SPDX-License-Identifier: Apache-2.0

// Package sourcetest tests sources against fake machines: a txtar archive holds the files of one machine, and below
// them, as "metrics" and "error", what the source must make of it. Run the tests with -update to rewrite both.
package sourcetest

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainyard/trainyard/exporter/prom"
	"github.com/trainyard/trainyard/exporter/source"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Run reads every machine in testdata/*.txtar with the source that build makes for its root directory.
func Run(t *testing.T, build func(root string) source.Source) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fake machine in testdata (%v)", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { runOne(t, path, build) })
	}
}

func runOne(t *testing.T, path string, build func(root string) source.Source) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	want := map[string]string{}
	machine := archive.Files[:0:0]
	for _, f := range archive.Files {
		if f.Name == "metrics" || f.Name == "error" {
			want[f.Name] = string(f.Data)
			continue
		}
		machine = append(machine, f)
		file := filepath.Join(root, f.Name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	samples, err := build(root).Read(t.Context())
	got := map[string]string{"metrics": string(prom.Render(samples))}
	if err != nil {
		got["error"] = strings.ReplaceAll(err.Error(), root, "") + "\n"
	}
	if *update {
		archive.Files = slices.Clone(machine)
		for _, name := range []string{"metrics", "error"} {
			if got[name] != "" {
				archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(got[name])})
			}
		}
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range []string{"metrics", "error"} {
		if got[name] != want[name] {
			t.Errorf("%s differs (rewrite with -update); got:\n%s\nwant:\n%s", name, got[name], want[name])
		}
	}
}
