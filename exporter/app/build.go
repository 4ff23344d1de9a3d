// SPDX-License-Identifier: Apache-2.0

// Package app puts an exporter together: sources into a set, the set behind a handler, the handler behind a listener.
// It is dull on purpose.
package app

import (
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/trainyard/trainyard/exporter/config"
	"github.com/trainyard/trainyard/exporter/source"
	"github.com/trainyard/trainyard/exporter/source/ethtool"
	"github.com/trainyard/trainyard/exporter/source/job"
	"github.com/trainyard/trainyard/exporter/source/memory"
	"github.com/trainyard/trainyard/exporter/source/netdev"
	"github.com/trainyard/trainyard/exporter/source/netstat"
	"github.com/trainyard/trainyard/exporter/source/snmp"
)

// The roles.
const (
	RoleNode   = "node"
	RoleFabric = "fabric"
)

// NodeSet builds the sources of the node role. The caller runs the set.
func NodeSet(cfg config.Node, log *slog.Logger) (*source.Set, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure the node role: %w", err)
	}
	devices := netdev.Config{
		Procfs: cfg.Procfs, Sysfs: cfg.Sysfs, Node: cfg.Name, Fabric: cfg.Fabric,
		Devices: regexp.MustCompile(cfg.Devices), Rails: cfg.Rails, // Validate compiled it
	}
	if cfg.Rail != "" {
		devices.Rail = regexp.MustCompile(cfg.Rail)
	}
	sources := []source.Source{
		memory.New(cfg.Procfs, cfg.Name, 0),
		netdev.New(devices),
		netstat.New(cfg.Procfs, cfg.Name),
		ethtool.New(cfg.Name, devices.Devices),
	}
	if cfg.JobDir != "" {
		sources = append(sources, job.New(job.Config{Dir: cfg.JobDir, Node: cfg.Name, MaxAge: cfg.JobMaxAge}))
	}
	var schedules []source.Schedule
	for _, s := range sources {
		schedules = append(schedules, source.Schedule{Source: s, Interval: cfg.Interval})
	}
	return source.NewSet(log, []source.Sample{buildInfo(RoleNode)}, schedules...)
}

// FabricSet builds the sources of the fabric role: one a switch, so that none waits for another. The caller runs the
// set.
func FabricSet(cfg config.Fabric, log *slog.Logger) (*source.Set, error) {
	cfg.Complete()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure the fabric role: %w", err)
	}
	switches, err := snmp.New(cfg, log)
	if err != nil {
		return nil, fmt.Errorf("configure the fabric role: %w", err)
	}
	var schedules []source.Schedule
	for i, s := range switches {
		schedules = append(schedules, source.Schedule{
			Source:   s,
			Interval: cfg.Switches[i].Interval,
			// Enough for some slow answers; a source without any answer gives up by itself after the first request.
			Timeout: max(cfg.Switches[i].Interval, 4*cfg.Timeout*time.Duration(cfg.Retries+1)),
		})
	}
	return source.NewSet(log, []source.Sample{buildInfo(RoleFabric)}, schedules...)
}

// Version is set when the program is built: -ldflags "-X .../exporter/app.Version=v1.2.3".
var Version = "dev"

// Revision is the source revision that the Go toolchain recorded.
func Revision() string {
	revision, modified := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = "-modified"
			}
		}
	}
	return revision + modified
}

func buildInfo(role string) source.Sample {
	return source.New("trainyard_exporter_build_info", 1, Version, Revision(), runtime.Version(), role)
}
