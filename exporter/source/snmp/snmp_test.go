// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/trainyard/trainyard/exporter/config"
	"github.com/trainyard/trainyard/exporter/prom"
	"github.com/trainyard/trainyard/exporter/source"
	_ "github.com/trainyard/trainyard/exporter/source/sourcetest" // for its -update flag
)

// The fake fabrics of testdata: an inventory, what each agent has at each round of polls (l1.walk, l1.walk.2, ...; a
// missing file of a later round means "as before", an empty one "no answer"), and after the last round all metrics,
// the log, and the errors.
func TestFakeFabrics(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fake fabrics (%v)", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { fakeFabric(t, path) })
	}
}

func fakeFabric(t *testing.T, path string) {
	t.Setenv("TRAINYARD_TEST_COMMUNITY", "public")
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	var input []txtar.File
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
		if !slices.Contains([]string{"metrics", "log", "errors"}, f.Name) {
			input = append(input, f)
		}
	}
	inventory := filepath.Join(t.TempDir(), "inventory.yaml")
	if err := os.WriteFile(inventory, []byte(files["inventory.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadFabric(inventory)
	if err != nil {
		t.Fatal(err)
	}
	var logged, failed bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	sources, err := New(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	agents := map[string]*agent{}
	var samples []source.Sample
	for round := 1; round == 1 || slices.ContainsFunc(input, func(f txtar.File) bool { return strings.HasSuffix(f.Name, fmt.Sprintf(".walk.%d", round)) }); round++ {
		samples = nil
		for i, s := range sources {
			name := cfg.Switches[i].Name
			file := name + ".walk"
			if round > 1 {
				file += fmt.Sprintf(".%d", round)
			}
			if text, ok := files[file]; ok {
				if agents[name], err = parseAgent(text); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				if len(agents[name].vars) == 0 {
					agents[name].err = errNoAnswer
				}
			}
			s.client = agents[name]
			s.now = func() time.Time { return now }
			got, err := s.Read(t.Context())
			if err != nil {
				fmt.Fprintf(&failed, "round %d: %v\n", round, err)
			}
			samples = append(samples, got...)
		}
		now = now.Add(cfg.Interval)
	}
	got := map[string]string{"metrics": string(prom.Render(samples)), "log": logged.String(), "errors": failed.String()}
	if flag.Lookup("update").Value.String() == "true" {
		archive.Files = input
		for _, name := range []string{"metrics", "log", "errors"} {
			if got[name] != "" {
				archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(got[name])})
			}
		}
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, text := range got {
		if text != files[name] {
			t.Errorf("%s differs (rewrite with -update); got:\n%s\nwant:\n%s", name, text, files[name])
		}
	}
}

// A client that failed is closed and made anew: that is also how an agent with a new engine id is followed.
func TestClientIsMadeAnewAfterAFailure(t *testing.T) {
	cfg := config.Fabric{Name: "lab", Topology: time.Minute, Switches: []config.Switch{{Name: "l1", Address: "192.0.2.1"}}}
	cfg.Complete()
	sources, err := New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := sources[0]
	bad := &agent{err: errors.New("incoming packet is not authentic, discarding")}
	good, err := parseAgent("1.3.6.1.2.1.1.3.0 number 100")
	if err != nil {
		t.Fatal(err)
	}
	queue := []*agent{bad, good}
	dialled := 0
	s.dial = func() (client, error) { dialled++; return queue[dialled-1], nil }
	for i, want := range []struct {
		up      float64
		dialled int
	}{{0, 1}, {1, 2}, {1, 2}} {
		samples, err := s.Read(t.Context())
		for _, sample := range samples {
			if sample.Row.Name == "trainyard_switch_up" && sample.Value != want.up {
				t.Errorf("poll %d: up is %v (%v)", i, sample.Value, err)
			}
		}
		if dialled != want.dialled {
			t.Errorf("poll %d: dialled %d times, want %d", i, dialled, want.dialled)
		}
	}
	if bad.closed != 1 || good.closed != 0 {
		t.Errorf("closed %d and %d times", bad.closed, good.closed)
	}
}
