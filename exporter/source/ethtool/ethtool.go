// SPDX-License-Identifier: Apache-2.0

// Package ethtool reads from drivers how long a NIC told its switch to stop sending (pause and priority pause
// frames): the sign of a slow receiver, which no reroute cures. Drivers have hundreds of statistics; only these are
// read out of them, and no setting is touched.
package ethtool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/exporter/source"
)

// Source reads the chosen devices of the network namespace that the process runs in.
type Source struct {
	node    string
	devices *regexp.Regexp
	list    func() ([]string, error)
	stats   func(device string) (map[string]uint64, error)
}

// New makes the source; a device is read if all of its name matches.
func New(node string, devices *regexp.Regexp) *Source {
	return &Source{node, regexp.MustCompile("^(?:" + devices.String() + ")$"), deviceNames, statistics}
}

// Name is "ethtool".
func (s *Source) Name() string { return "ethtool" }

// aliases say how drivers spell the time for which they paused their peer, and in which unit. Names that are not here
// are absent: counters of frames are no time. The first group is the priority; without one it is the pause of the
// whole link.
var aliases = []struct {
	name     *regexp.Regexp
	unit     time.Duration
	priority string // where the name has none
}{
	{regexp.MustCompile(`^tx_prio([0-7])_pause_duration$`), time.Microsecond, ""},  // mlx5
	{regexp.MustCompile(`^tx_global_pause_duration$`), time.Microsecond, "global"}, // mlx5
	{regexp.MustCompile(`^pfc_pri([0-7])_tx_duration_us$`), time.Microsecond, ""},  // bnxt_en
}

// errUnsupported is a driver without statistics.
var errUnsupported = errors.New("the driver has no statistics")

// Read gives what the drivers have. A machine on which none has any of it has nothing of the kind.
func (s *Source) Read(ctx context.Context) ([]source.Sample, error) {
	devices, err := s.list()
	if err != nil {
		return nil, fmt.Errorf("list network devices: %w", err)
	}
	var samples []source.Sample
	var problems []error
	for _, device := range devices {
		if !s.devices.MatchString(device) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read driver statistics: %w", err)
		}
		stats, err := s.stats(device)
		if errors.Is(err, errUnsupported) {
			continue
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("read driver statistics of %s: %w", device, err))
			continue
		}
		samples = append(samples, s.pauses(device, stats)...)
	}
	if samples == nil && problems == nil {
		return nil, source.ErrAbsent
	}
	return samples, errors.Join(problems...)
}

func (s *Source) pauses(device string, stats map[string]uint64) []source.Sample {
	var samples []source.Sample
	for name, v := range stats {
		for _, a := range aliases {
			m := a.name.FindStringSubmatch(name)
			if m == nil {
				continue
			}
			priority := a.priority
			if priority == "" {
				n, err := strconv.Atoi(m[1])
				if err != nil {
					continue
				}
				priority = strconv.Itoa(n)
			}
			samples = append(samples, source.New("trainyard_nic_transmit_pause_seconds_total", float64(v)*a.unit.Seconds(), s.node, device, priority))
		}
	}
	return samples
}

func deviceNames() ([]string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, i := range interfaces {
		names = append(names, i.Name)
	}
	return names, nil
}
