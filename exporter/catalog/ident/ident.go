// SPDX-License-Identifier: Apache-2.0

// Package ident is the one place that spells, normalises and parses the names that join the worlds: switch
// ports, directed links and node NICs. Exporter, rules and actuator all use it; it imports the standard library only.
package ident

import (
	"cmp"
	"fmt"
	"strings"
)

// Port names one port of one device of one fabric, spelled "fabric/device:port". The device is a switch (its
// configured name) or a node (its Kubernetes node name); the port is its ifName, never an ifIndex.
//
// A Port is also the name of a directed link: the one whose traffic leaves the fabric device through this port.
type Port struct {
	Fabric, Device, Name string
}

// String spells the port as it stands in labels, YAML and on the screen.
func (p Port) String() string { return p.Fabric + "/" + p.Device + ":" + p.Name }

// IsZero says that the port names nothing.
func (p Port) IsZero() bool { return p == Port{} }

// Compare orders ports by fabric, device and name, so that whatever prints them is stable.
func (p Port) Compare(q Port) int {
	return cmp.Or(cmp.Compare(p.Fabric, q.Fabric), cmp.Compare(p.Device, q.Device), cmp.Compare(p.Name, q.Name))
}

// MarshalText makes Port usable as a JSON string and map key. The zero Port is the empty string, so that a record that
// names no port can be read back.
func (p Port) MarshalText() ([]byte, error) {
	if p.IsZero() {
		return []byte{}, nil
	}
	return []byte(p.String()), nil
}

// UnmarshalText is the inverse of MarshalText.
func (p *Port) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = Port{}
		return nil
	}
	q, err := ParsePort(string(text))
	if err == nil {
		*p = q
	}
	return err
}

// ParsePort reads "fabric/device:port". Fabric and device may not hold '/' or ':'; a port may (ifNames such as
// "Ethernet1/1" or "eth0:1" exist).
func ParsePort(s string) (Port, error) {
	fabric, rest, ok := strings.Cut(s, "/")
	if !ok {
		return Port{}, fmt.Errorf("port %q: no '/' after the fabric, want fabric/device:port", s)
	}
	device, name, ok := strings.Cut(rest, ":")
	if !ok {
		return Port{}, fmt.Errorf("port %q: no ':' after the device, want fabric/device:port", s)
	}
	return NewPort(fabric, device, name)
}

// NewPort checks the three parts and joins them.
func NewPort(fabric, device, name string) (Port, error) {
	p := Port{fabric, device, name}
	for _, part := range []struct{ what, s, forbidden string }{{"fabric", fabric, "/:"}, {"device", device, "/:"}, {"port", name, ""}} {
		if err := checkName(part.s, part.forbidden); err != nil {
			return Port{}, fmt.Errorf("%s of port %q: %w", part.what, p, err)
		}
	}
	return p, nil
}

// maxNameLen bounds each part; ifName is at most 255 bytes by RFC 2863, a Kubernetes node name 253.
const maxNameLen = 255

func checkName(s, forbidden string) error {
	switch {
	case s == "":
		return fmt.Errorf("empty")
	case len(s) > maxNameLen:
		return fmt.Errorf("%d bytes long, at most %d", len(s), maxNameLen)
	case strings.ContainsAny(s, forbidden):
		return fmt.Errorf("holds one of %q", forbidden)
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || r == '\uFFFD' {
			return fmt.Errorf("holds a space, a control character or invalid UTF-8")
		}
	}
	return nil
}
