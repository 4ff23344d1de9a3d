// SPDX-License-Identifier: Apache-2.0

// Package memory reads how broken up the host's free memory is: /proc/buddyinfo by order, zone and NUMA node, and
// the compaction and huge-page counters of /proc/vmstat. It never reads pagetypeinfo, which takes the zone lock for
// milliseconds, and it compacts nothing.
package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/trainyard/trainyard/exporter/catalog"
	"github.com/trainyard/trainyard/exporter/source"
)

// Source reads one machine.
type Source struct {
	procfs   string
	node     string
	pageSize int
}

// New makes the source; procfs is where the proc file system is mounted, pageSize that of order 0 in bytes, 0 for
// the kernel's own.
func New(procfs, node string, pageSize int) *Source {
	if pageSize == 0 {
		pageSize = os.Getpagesize()
	}
	return &Source{procfs, node, pageSize}
}

// Name is "memory".
func (s *Source) Name() string { return "memory" }

// Read gives what can be understood and names the rest in the error. A machine with neither file has no such thing.
func (s *Source) Read(context.Context) ([]source.Sample, error) {
	buddy, buddyErr := os.ReadFile(filepath.Join(s.procfs, "buddyinfo"))
	vmstat, vmstatErr := os.ReadFile(filepath.Join(s.procfs, "vmstat"))
	if errors.Is(buddyErr, fs.ErrNotExist) && errors.Is(vmstatErr, fs.ErrNotExist) {
		return nil, source.ErrAbsent
	}
	var problems []error
	var samples []source.Sample
	if buddyErr == nil {
		zones, err := parseBuddyinfo(buddy)
		problems = append(problems, err)
		samples = append(samples, s.zones(zones)...)
	} else {
		problems = append(problems, fmt.Errorf("read free blocks: %w", buddyErr))
	}
	if vmstatErr == nil {
		samples = append(samples, s.counters(vmstat)...)
	} else {
		problems = append(problems, fmt.Errorf("read vmstat: %w", vmstatErr))
	}
	return samples, errors.Join(problems...)
}

func (s *Source) zones(zones []zone) []source.Sample {
	if len(zones) == 0 {
		return nil
	}
	samples := []source.Sample{source.New("trainyard_memory_page_size_bytes", float64(s.pageSize), s.node)}
	for _, z := range zones {
		numa := strconv.Itoa(z.numaNode)
		var capped float64
		if z.capped {
			capped = 1
		}
		samples = append(samples, source.New("trainyard_memory_free_blocks_capped", capped, s.node, numa, z.name))
		for order, n := range z.free {
			o := strconv.Itoa(order)
			samples = append(samples,
				source.New("trainyard_memory_free_blocks", float64(n), s.node, numa, z.name, o),
				source.New("trainyard_memory_unusable_free_index", z.unusableFreeIndex(order), s.node, numa, z.name, o),
				source.New("trainyard_memory_fragmentation_index", z.fragmentationIndex(order), s.node, numa, z.name, o))
		}
	}
	return samples
}

// counters gives the catalogued fields of vmstat; all others are left alone, and so is a line without a number.
func (s *Source) counters(vmstat []byte) []source.Sample {
	var samples []source.Sample
	for line := range bytes.Lines(vmstat) {
		field, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		name := "node_vmstat_" + string(field)
		if _, ok := catalog.Lookup(name); !ok {
			continue
		}
		if v, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64); err == nil {
			samples = append(samples, source.New(name, v, s.node))
		}
	}
	return samples
}
