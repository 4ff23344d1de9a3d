// SPDX-License-Identifier: Apache-2.0

// Package netstat reads the TCP and IP counters of a node that tell of congestion: retransmits, resets, closed
// windows and congestion marks.
package netstat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/trainyard/trainyard/exporter/catalog"
	"github.com/trainyard/trainyard/exporter/source"
)

// Source reads the network namespace that the process runs in.
type Source struct{ procfs, node string }

// New makes the source; procfs is where the proc file system is mounted.
func New(procfs, node string) *Source { return &Source{procfs, node} }

// Name is "netstat".
func (s *Source) Name() string { return "netstat" }

// Read gives the fields that the kernel has.
func (s *Source) Read(context.Context) ([]source.Sample, error) {
	var samples []source.Sample
	var problems []error
	absent := 0
	for _, file := range []string{"snmp", "netstat"} {
		text, err := os.ReadFile(filepath.Join(s.procfs, "net", file))
		if errors.Is(err, fs.ErrNotExist) {
			absent++
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("read TCP counters: %w", err))
			continue
		}
		got, err := s.parse(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("net/%s: %w", file, err))
		}
		samples = append(samples, got...)
	}
	if absent == 2 {
		return nil, source.ErrAbsent
	}
	return samples, errors.Join(problems...)
}

// parse reads pairs of lines "Proto: name name ..." and "Proto: value value ...".
func (s *Source) parse(text []byte) ([]source.Sample, error) {
	var samples []source.Sample
	var problems []error
	var names [][]byte
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) == 0 {
			continue
		}
		if names == nil || !bytes.Equal(names[0], f[0]) {
			names = f
			continue
		}
		values := f
		proto := string(bytes.TrimSuffix(f[0], []byte(":")))
		if len(names) != len(values) {
			problems = append(problems, fmt.Errorf("%s has %d names and %d values", proto, len(names)-1, len(values)-1))
			names = nil
			continue
		}
		for _, want := range catalog.NetstatFields[proto] {
			i := slices.IndexFunc(names, func(n []byte) bool { return string(n) == want })
			if i < 1 {
				continue // an older kernel
			}
			v, err := strconv.ParseFloat(string(values[i]), 64)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s %s: %.20q is not a number", proto, want, values[i]))
				continue
			}
			samples = append(samples, source.New("node_netstat_"+proto+"_"+want, v, s.node))
		}
		names = nil
	}
	return samples, errors.Join(problems...)
}
