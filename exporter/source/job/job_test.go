// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"errors"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/exporter/prom"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func report(job string, rank int) Report {
	return Report{
		JobID: job, Gang: job + "-g0", Collective: "ring", Ranks: 4, Connections: 2, Rank: rank, Node: "n" + string(rune('1'+rank)),
		Started: noon.Add(-time.Hour), Written: noon.Add(-time.Second),
		Steps: 120, StepSeconds: 60, ComputeSeconds: 24, CollectiveSeconds: 36,
		Rails: []Rail{{0, netip.MustParseAddr("10.1.1.2"), 3_000_000_000}, {1, netip.MustParseAddr("10.2.1.2"), 1}},
	}
}

func reader(dir string) *Source {
	s := New(Config{Dir: dir, Node: "n1", MaxAge: 10 * time.Second})
	s.now = func() time.Time { return noon }
	return s
}

// 120 steps that took 60 s are 0.5 s a step, of which 24/120 = 0.2 s computing and 36/120 = 0.3 s in the collective:
// the exporter gives the totals as they are, and the quotient of two rates gives those figures back.
func TestReportComesOutAsItWentIn(t *testing.T) {
	dir := t.TempDir()
	for _, rank := range []int{1, 0} {
		if err := Write(dir, report("job-a", rank)); err != nil {
			t.Fatal(err)
		}
	}
	samples, err := reader(dir).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := string(prom.Render(samples))
	for _, line := range []string{
		`trainyard_job_info{job_id="job-a",gang="job-a-g0",collective="ring",ranks="4",connections="2"} 1`,
		`trainyard_job_rank_address_info{job_id="job-a",gang="job-a-g0",rank="1",node="n2",rail="0",address="10.1.1.2"} 1`,
		`trainyard_job_steps_total{job_id="job-a",gang="job-a-g0",rank="0",node="n1"} 120`,
		`trainyard_job_step_seconds_total{job_id="job-a",gang="job-a-g0",rank="0",node="n1"} 60`,
		`trainyard_job_compute_seconds_total{job_id="job-a",gang="job-a-g0",rank="0",node="n1"} 24`,
		`trainyard_job_collective_seconds_total{job_id="job-a",gang="job-a-g0",rank="0",node="n1"} 36`,
		`trainyard_job_collective_bytes_total{job_id="job-a",gang="job-a-g0",rank="0",node="n1",rail="0"} 3000000000`,
		`trainyard_job_reports_dropped{node="n1",reason="stale"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("missing %s in\n%s", line, text)
		}
	}
	if n := strings.Count(text, "\ntrainyard_job_info{"); n != 1 {
		t.Errorf("job info stands %d times, want once a gang", n)
	}
	for _, s := range samples {
		if s.Row.Name == "trainyard_job_steps_total" && !s.Start.Equal(noon.Add(-time.Hour)) {
			t.Errorf("start of the counter is %v", s.Start)
		}
	}
}

func TestBadReportsAreNamedAndTheOthersStay(t *testing.T) {
	dir := t.TempDir()
	write := func(r Report) {
		t.Helper()
		if err := Write(dir, r); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(report("good", 0))
	old := report("old", 0)
	old.Written = noon.Add(-11 * time.Second)
	write(old)
	ahead := report("ahead", 0)
	ahead.Written = noon.Add(time.Minute)
	write(ahead)
	other := report("good", 1)
	other.Ranks = 8
	write(other)
	put("broken.json", `{"version":1,`)
	put("case.json", `{"VERSION":1}`)
	put("notes.txt", "not ours")
	put("half.0.json.tmp", "{")
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}

	samples, err := reader(dir).Read(t.Context())
	text := string(prom.Render(samples))
	for _, name := range []string{"broken.json", "case.json", "link.json", "ahead.0.json", "job good"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	for _, word := range []string{"old.0.json", "notes.txt", "half"} {
		if strings.Contains(err.Error(), word) {
			t.Errorf("the error names %s: %v", word, err)
		}
	}
	for reason, n := range map[string]string{stale: "1", future: "1", garbage: "3", conflict: "1"} {
		if want := `reason="` + reason + `"} ` + n + "\n"; !strings.Contains(text, want) {
			t.Errorf("missing %s in\n%s", want, text)
		}
	}
	if !strings.Contains(text, `job_id="good"`) || strings.Contains(text, `job_id="old"`) || strings.Contains(text, `job_id="ahead"`) {
		t.Errorf("wrong reports used:\n%s", text)
	}
}

func TestParseIsStrict(t *testing.T) {
	good := `{"version":1,"job_id":"a","gang":"g","collective":"ring","ranks":1,"connections":1,"rank":0,"node":"n",` +
		`"started":"2026-11-30T11:00:00Z","written":"2026-11-30T12:00:00Z","steps":1,"step_seconds":1,"compute_seconds":1,"collective_seconds":0,"rails":[]}`
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"an unknown key":     strings.Replace(good, `"rank":0`, `"rank":0,"x":1`, 1),
		"a key twice":        strings.Replace(good, `"rank":0`, `"rank":0,"rank":0`, 1),
		"another case":       strings.Replace(good, `"rank"`, `"Rank"`, 1),
		"a second value":     good + "{}",
		"a newer version":    strings.Replace(good, `"version":1`, `"version":2`, 1),
		"a negative counter": strings.Replace(good, `"steps":1`, `"steps":-1`, 1),
		"a rank too many":    strings.Replace(good, `"rank":0`, `"rank":1`, 1),
		"a space in a name":  strings.Replace(good, `"job_id":"a"`, `"job_id":"a b"`, 1),
		"a bad address":      strings.Replace(good, `[]`, `[{"rail":0,"address":"10.1","bytes":1}]`, 1),
		"no address":         strings.Replace(good, `[]`, `[{"rail":0,"bytes":1}]`, 1),
		"a rail twice":       strings.Replace(good, `[]`, `[{"rail":0,"address":"10.0.0.1","bytes":1},{"rail":0,"address":"10.0.0.1","bytes":1}]`, 1),
		"nothing":            "",
		"too much":           good + strings.Repeat(" ", maxReport),
	} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	bad := report("a", 0)
	bad.StepSeconds = math.NaN()
	if Write(t.TempDir(), bad) == nil {
		t.Error("NaN was written")
	}
}

// A reader beside a writer sees whole reports only.
func TestWriteIsAtomic(t *testing.T) {
	dir := t.TempDir()
	r := report("a", 0)
	if err := Write(dir, r); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 200 {
			r.Steps = uint64(i)
			if err := Write(dir, r); err != nil {
				t.Error(err)
			}
		}
	})
	s := reader(dir)
	for range 200 {
		if _, err := s.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if err := errors.Join(Remove(dir, r), Remove(dir, r)); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFileNamesStayApart(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("x", 240)
	for _, id := range []string{"a", "a/b", "a%2fb", "../a", ".a", long + "1", long + "2"} {
		name := fileName(Report{JobID: id})
		if other, ok := seen[name]; ok || strings.ContainsAny(name, "/") || strings.HasPrefix(name, ".") || len(name) > 250 {
			t.Errorf("job %q has the file name %q (also %q)", id, name, other)
		}
		seen[name] = id
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"job_id":"a","gang":"g","collective":"ring","ranks":1,"connections":1,"rank":0,"node":"n","started":"2026-11-30T11:00:00Z","written":"2026-11-30T12:00:00Z","rails":[{"rail":0,"address":"10.1.1.2","bytes":7}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(data)
		if err != nil {
			return
		}
		if text := prom.Render(Samples(r)); bytes.Count(text, []byte("\ntrainyard_job_steps_total{")) != 1 {
			t.Fatalf("a valid report renders as\n%s", text)
		}
		dir := t.TempDir()
		if err := Write(dir, r); err != nil {
			t.Fatalf("a valid report cannot be written: %v", err)
		}
	})
}
