// SPDX-License-Identifier: Apache-2.0

// Package netdev reads the chosen network devices of a node: counters, state, speed, and which rail and address each
// has. It changes no setting of a device.
package netdev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/exporter/source"
)

// Config says which devices to read and what they are.
type Config struct {
	Procfs, Sysfs string
	Node          string
	Fabric        string         // fabric that the devices are attached to; may be empty
	Devices       *regexp.Regexp // a device is read if all of its name matches
	Rail          *regexp.Regexp // the first group is the rail's number; nil = no rails from names
	Rails         map[string]int // rail by device name; wins over Rail
}

// Source reads the network namespace that the process runs in.
type Source struct {
	cfg       Config
	addresses func(device string) ([]netip.Prefix, error)
}

// New makes the source.
func New(cfg Config) *Source {
	cfg.Devices = regexp.MustCompile("^(?:" + cfg.Devices.String() + ")$") // it compiled before, it compiles so
	return &Source{cfg, kernelAddresses}
}

// Name is "netdev".
func (s *Source) Name() string { return "netdev" }

// columns of /proc/net/dev after the device's name, and where they go.
var columns = []struct {
	index int
	name  string
}{
	{0, "node_network_receive_bytes_total"}, {1, "node_network_receive_packets_total"},
	{2, "node_network_receive_errs_total"}, {3, "node_network_receive_drop_total"},
	{8, "node_network_transmit_bytes_total"}, {9, "node_network_transmit_packets_total"},
	{10, "node_network_transmit_errs_total"}, {11, "node_network_transmit_drop_total"},
}

// Read gives what the devices have; a line that cannot be understood is named in the error.
func (s *Source) Read(context.Context) ([]source.Sample, error) {
	text, err := os.ReadFile(filepath.Join(s.cfg.Procfs, "net", "dev"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, source.ErrAbsent
	}
	if err != nil {
		return nil, fmt.Errorf("read device counters: %w", err)
	}
	var samples []source.Sample
	var problems []error
	for line := range bytes.Lines(text) {
		i := bytes.LastIndexByte(line, ':') // a device's name may hold a colon, the counters do not
		if i < 0 {
			continue // the two lines of the heading
		}
		device := string(bytes.TrimSpace(line[:i]))
		if !s.cfg.Devices.MatchString(device) {
			continue
		}
		counters, err := s.counters(device, bytes.Fields(line[i+1:]))
		if err != nil {
			problems = append(problems, fmt.Errorf("device %s: %w", device, err))
		}
		state, err := s.state(device)
		if err != nil {
			problems = append(problems, fmt.Errorf("device %s: %w", device, err))
		}
		samples = append(append(samples, counters...), state...)
	}
	return samples, errors.Join(problems...)
}

func (s *Source) counters(device string, fields [][]byte) ([]source.Sample, error) {
	var samples []source.Sample
	for _, c := range columns {
		if c.index >= len(fields) {
			return samples, fmt.Errorf("net/dev has only %d columns", len(fields))
		}
		v, err := strconv.ParseUint(string(fields[c.index]), 10, 64)
		if err != nil {
			return samples, fmt.Errorf("net/dev column %d: %.20q is not a counter", c.index+1, fields[c.index])
		}
		samples = append(samples, source.New(c.name, float64(v), s.cfg.Node, device))
	}
	return samples, nil
}

// state gives what sysfs knows of the device, field by field: what a driver does not give is absent (speed answers
// EINVAL while a link is down, and -1 where there is none).
func (s *Source) state(device string) ([]source.Sample, error) {
	dir := filepath.Join(s.cfg.Sysfs, "class", "net", device)
	var samples []source.Sample
	gauge := func(name string, v float64) {
		samples = append(samples, source.New(name, v, s.cfg.Node, device))
	}
	if state := attribute(dir, "operstate"); state != "" {
		var up float64
		if state == "up" {
			up = 1
		}
		gauge("node_network_up", up)
	}
	if mbit, err := strconv.ParseInt(attribute(dir, "speed"), 10, 64); err == nil && mbit > 0 {
		gauge("node_network_speed_bytes", float64(mbit)*1e6/8)
	}
	if changes, err := strconv.ParseUint(attribute(dir, "carrier_changes"), 10, 64); err == nil {
		gauge("node_network_carrier_changes_total", float64(changes))
	}
	prefixes, err := s.addresses(device)
	samples = append(samples, source.New("trainyard_nic_info", 1, s.cfg.Node, device, s.rail(device), choose(prefixes), s.cfg.Fabric))
	return samples, err
}

// attribute reads one file of sysfs; "" if it is not there or the driver refuses.
func attribute(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (s *Source) rail(device string) string {
	if n, ok := s.cfg.Rails[device]; ok {
		return strconv.Itoa(n)
	}
	if s.cfg.Rail == nil {
		return ""
	}
	m := s.cfg.Rail.FindStringSubmatch(device)
	if len(m) < 2 {
		return ""
	}
	n, err := strconv.Atoi(m[1]) // rail07 and rail7 are one rail
	if err != nil {
		return ""
	}
	return strconv.Itoa(n)
}

// choose picks the one address of a device that its series carry: the first global IPv4 address, else the first
// global IPv6 address. Two rows of one device would break every join on it.
func choose(prefixes []netip.Prefix) string {
	var v6 string
	for _, p := range prefixes {
		a := p.Addr().Unmap()
		switch {
		case !a.IsGlobalUnicast():
		case a.Is4():
			return a.String()
		case v6 == "":
			v6 = a.WithZone("").String()
		}
	}
	return v6
}

func kernelAddresses(device string) ([]netip.Prefix, error) {
	ifi, err := net.InterfaceByName(device)
	if err != nil {
		return nil, fmt.Errorf("find device: %w", err)
	}
	addrs, err := ifi.Addrs()
	if err != nil {
		return nil, fmt.Errorf("read addresses: %w", err)
	}
	var prefixes []netip.Prefix
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes, nil
}
