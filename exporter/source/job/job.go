// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/exporter/source"
)

// Config says where reports are and how old they may be.
type Config struct {
	Dir    string        // directory that the training processes write to
	Node   string        // name of this node, for the count of dropped reports
	MaxAge time.Duration // a report written longer ago is stale: its process ended or hangs
}

// Source reads the reports of one directory.
type Source struct {
	cfg Config
	now func() time.Time
}

// New makes the source.
func New(cfg Config) *Source { return &Source{cfg: cfg, now: time.Now} }

// Name is "job".
func (s *Source) Name() string { return "job" }

// skew is how far in the future a report may be written: clocks of one machine agree, those of a shared directory
// nearly.
const skew = 2 * time.Second

// reasons for which a report file is not used; all of them are always given, so that the series are there at 0.
const (
	stale    = "stale"
	future   = "future"
	garbage  = "garbage"
	conflict = "conflict"
)

// Read gives the samples of all usable reports. Files that cannot be read or understood, and reports that contradict
// each other, are named in the error; the others are given all the same. A stale report is counted and no error: jobs
// end. A missing directory is an error: it is configured.
func (s *Source) Read(ctx context.Context) ([]source.Sample, error) {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("read job reports: %w", err)
	}
	now := s.now()
	dropped := map[string]int{stale: 0, future: 0, garbage: 0, conflict: 0}
	var problems []error
	var reports []Report
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read job reports: %w", err)
		}
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		r, err := readFile(filepath.Join(s.cfg.Dir, e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // the rank ended between the listing and the reading
		case err != nil:
			dropped[garbage]++
			problems = append(problems, fmt.Errorf("%s: %w", e.Name(), err))
		case now.Sub(r.Written) > s.cfg.MaxAge:
			dropped[stale]++
		case r.Written.Sub(now) > skew:
			dropped[future]++
			problems = append(problems, fmt.Errorf("%s: written %v in the future", e.Name(), r.Written.Sub(now).Round(time.Second)))
		default:
			reports = append(reports, r)
		}
	}
	reports, conflicts := agree(reports)
	dropped[conflict] = len(conflicts)
	samples := samplesOf(reports)
	for _, reason := range slices.Sorted(maps.Keys(dropped)) {
		samples = append(samples, source.New("trainyard_job_reports_dropped", float64(dropped[reason]), s.cfg.Node, reason))
	}
	return samples, errors.Join(append(problems, conflicts...)...)
}

// readFile opens without following what it would hang on: a directory that others write to may hold a pipe.
func readFile(path string) (Report, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return Report{}, err
	}
	if !info.Mode().IsRegular() {
		return Report{}, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err != nil {
		return Report{}, err
	}
	return Parse(data)
}

// agree drops reports that contradict an older report of their job, or that speak for a rank which already spoke.
// The newest report of a rank wins (a rank that moved to another file name); of a job the rank with the lowest number.
func agree(reports []Report) (kept []Report, conflicts []error) {
	slices.SortStableFunc(reports, func(a, b Report) int {
		if c := strings.Compare(a.JobID, b.JobID); c != 0 {
			return c
		}
		if a.Rank != b.Rank {
			return a.Rank - b.Rank
		}
		return b.Written.Compare(a.Written)
	})
	for _, r := range reports {
		if len(kept) > 0 && kept[len(kept)-1].JobID == r.JobID {
			switch last := kept[len(kept)-1]; {
			case last.Rank == r.Rank:
				conflicts = append(conflicts, fmt.Errorf("job %s: two reports of rank %d", r.JobID, r.Rank))
				continue
			case last.Collective != r.Collective || last.Ranks != r.Ranks || last.Connections != r.Connections:
				conflicts = append(conflicts, fmt.Errorf("job %s: rank %d says %s of %d ranks with %d connections, rank %d says %s of %d with %d", r.JobID,
					last.Rank, last.Collective, last.Ranks, last.Connections, r.Rank, r.Collective, r.Ranks, r.Connections))
				continue
			}
		}
		kept = append(kept, r)
	}
	return kept, conflicts
}

// Samples renders reports as samples, for whoever has reports and no directory.
func Samples(reports ...Report) []source.Sample { return samplesOf(reports) }

func samplesOf(reports []Report) []source.Sample {
	var samples []source.Sample
	named := map[[2]string]bool{}
	for _, r := range reports {
		if gang := [2]string{r.JobID, r.Gang}; !named[gang] {
			named[gang] = true
			samples = append(samples, source.New("trainyard_job_info", 1, r.JobID, r.Gang, r.Collective, strconv.Itoa(r.Ranks), strconv.Itoa(r.Connections)))
		}
		rank := strconv.Itoa(r.Rank)
		for _, c := range []struct {
			name  string
			value float64
		}{
			{"trainyard_job_steps_total", float64(r.Steps)},
			{"trainyard_job_step_seconds_total", r.StepSeconds},
			{"trainyard_job_compute_seconds_total", r.ComputeSeconds},
			{"trainyard_job_collective_seconds_total", r.CollectiveSeconds},
		} {
			samples = append(samples, source.New(c.name, c.value, r.JobID, r.Gang, rank, r.Node).Since(r.Started))
		}
		for _, rail := range r.Rails {
			n := strconv.Itoa(rail.Rail)
			samples = append(samples,
				source.New("trainyard_job_rank_address_info", 1, r.JobID, r.Gang, rank, r.Node, n, rail.Address.String()),
				source.New("trainyard_job_collective_bytes_total", float64(rail.Bytes), r.JobID, r.Gang, rank, r.Node, n).Since(r.Started))
		}
	}
	return samples
}
