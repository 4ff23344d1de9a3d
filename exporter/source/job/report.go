// SPDX-License-Identifier: Apache-2.0

// Package job carries what training processes say of themselves: a small JSON report per rank, renamed into a
// directory by the process (Write) and read from there by the exporter (New). It asks no scheduler and signals no
// process.
package job

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
)

// FormatVersion is the version of the report's format; a report with another one is refused.
const FormatVersion = 1

// maxReport bounds a report file: 64 KiB hold a rank with hundreds of rails.
const maxReport = 64 << 10

// Report is what one rank of a job says of itself. Seconds and bytes are totals since Started, so that a reader that
// misses a report loses nothing.
type Report struct {
	Version     int    `json:"version"` // FormatVersion; Write fills it in
	JobID       string `json:"job_id"`
	Gang        string `json:"gang"`
	Collective  string `json:"collective"`  // e.g. "ring": rank i sends to rank i+1 modulo Ranks on each rail
	Ranks       int    `json:"ranks"`       // number of processes of the job
	Connections int    `json:"connections"` // transport connections per neighbour and rail
	Rank        int    `json:"rank"`        // from 0
	Node        string `json:"node"`

	Started time.Time `json:"started"` // start of the process: the totals were 0
	Written time.Time `json:"written"` // now, by the clock of the machine that the report is read on

	Steps             uint64  `json:"steps"`
	StepSeconds       float64 `json:"step_seconds"`
	ComputeSeconds    float64 `json:"compute_seconds"`
	CollectiveSeconds float64 `json:"collective_seconds"`
	Rails             []Rail  `json:"rails"`
}

// Rail is a rank's part on one rail.
type Rail struct {
	Rail    int        `json:"rail"`
	Address netip.Addr `json:"address"`
	Bytes   uint64     `json:"bytes"` // payload sent since Started
}

// Validate says what is wrong with a report, or nil.
func (r Report) Validate() error {
	switch {
	case r.Version != FormatVersion:
		return fmt.Errorf("version is %d, this program reads %d", r.Version, FormatVersion)
	case r.Ranks < 1:
		return fmt.Errorf("ranks is %d, at least 1", r.Ranks)
	case r.Rank < 0 || r.Rank >= r.Ranks:
		return fmt.Errorf("rank is %d of %d", r.Rank, r.Ranks)
	case r.Connections < 1:
		return fmt.Errorf("connections is %d, at least 1", r.Connections)
	case r.Written.IsZero() || r.Started.IsZero():
		return errors.New("started and written must be set")
	case r.Written.Before(r.Started):
		return errors.New("written before it started")
	}
	for _, s := range []struct{ field, value string }{{"job_id", r.JobID}, {"gang", r.Gang}, {"collective", r.Collective}, {"node", r.Node}} {
		if s.value == "" || len(s.value) > 253 || strings.ContainsFunc(s.value, func(c rune) bool { return !unicode.IsGraphic(c) || c == ' ' }) {
			return fmt.Errorf("%s is %q, want 1 to 253 visible characters", s.field, s.value)
		}
	}
	for _, s := range []struct {
		field string
		value float64
	}{{"step_seconds", r.StepSeconds}, {"compute_seconds", r.ComputeSeconds}, {"collective_seconds", r.CollectiveSeconds}} {
		if !(s.value >= 0 && s.value < 1e12) { // NaN fails both
			return fmt.Errorf("%s is %v", s.field, s.value)
		}
	}
	seen := map[int]bool{}
	for _, rail := range r.Rails {
		switch {
		case rail.Rail < 0 || seen[rail.Rail]:
			return fmt.Errorf("rail %d is negative or stands twice", rail.Rail)
		case !rail.Address.IsValid() || rail.Address.Zone() != "":
			return fmt.Errorf("rail %d has no usable address", rail.Rail)
		}
		seen[rail.Rail] = true
	}
	return nil
}

// Parse reads one report, strictly: unknown or repeated keys, other spellings of a key, a second value and invalid
// UTF-8 are errors.
func Parse(data []byte) (Report, error) {
	var r Report
	if len(data) > maxReport {
		return r, fmt.Errorf("parse job report: more than %d bytes", maxReport)
	}
	if err := json.Unmarshal(data, &r, json.RejectUnknownMembers(true)); err != nil {
		return Report{}, fmt.Errorf("parse job report: %w", err)
	}
	if err := r.Validate(); err != nil {
		return Report{}, fmt.Errorf("parse job report: %w", err)
	}
	return r, nil
}

// Write puts the report into dir under a name made of job and rank. It renames, so that a reader sees the old or
// the new report and never half of one. It does not sync: a report is worth nothing after a crash.
func Write(dir string, r Report) error {
	r.Version = FormatVersion
	if err := r.Validate(); err != nil {
		return fmt.Errorf("write job report: %w", err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write job report: %w", err)
	}
	path := filepath.Join(dir, fileName(r))
	tmp := path + ".tmp" // one process owns this name: the rank itself
	if err := os.WriteFile(tmp, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write job report: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write job report: %w", errors.Join(err, os.Remove(tmp)))
	}
	return nil
}

// Remove takes a rank's report away when the rank ends in good order. A report that is not there is no error.
func Remove(dir string, r Report) error {
	if err := os.Remove(filepath.Join(dir, fileName(r))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove job report: %w", err)
	}
	return nil
}

// fileName spells job and rank without characters that mean something to a file system; the gang needs no place in
// it, since a job's ranks are numbered over all its gangs.
func fileName(r Report) string {
	var b bytes.Buffer
	for _, c := range []byte(r.JobID) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	// A job id may be 253 bytes long, a file name 255 and an escaped byte takes three: long names end in a hash.
	if b.Len() > 200 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(r.JobID)) // a hash never fails
		b.Truncate(180)
		fmt.Fprintf(&b, "%%%016x", h.Sum64())
	}
	return b.String() + "." + strconv.Itoa(r.Rank) + ".json"
}
