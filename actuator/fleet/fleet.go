// SPDX-License-Identifier: Apache-2.0

// Package fleet holds one moment of the whole yard as a value: fabric, loads, NICs and jobs, all read at one
// evaluation time, with what could not be read. The thinking packages see nothing else of the world.
package fleet

import (
	"net/netip"
	"time"

	"github.com/trainyard/trainyard/actuator/topo"
	"github.com/trainyard/trainyard/actuator/traffic"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// LinkLoad is the measured state of one directed link over the observation window.
type LinkLoad struct {
	BytesPerSecond  float64 `json:"bytes_per_second"`  // transmitted
	ErrorsPerSecond float64 `json:"errors_per_second"` // receive errors at the far end plus transmit errors here (FCS, FEC)
	Flaps           float64 `json:"flaps"`             // times the link or its BGP session went down within the flap window
	AgeSeconds      float64 `json:"age_seconds"`       // age of the newest sample as Prometheus gives it
}

// NICLoad is the measured state of one node NIC.
type NICLoad struct {
	TransmitBytesPerSecond float64 `json:"transmit_bytes_per_second"`
	ReceiveBytesPerSecond  float64 `json:"receive_bytes_per_second"`
	PauseRatio             float64 `json:"pause_ratio"`    // share of time in which this NIC told the switch to pause; 0 where it does not report
	ECNPerSecond           float64 `json:"ecn_per_second"` // CE-marked packets that it received
	AgeSeconds             float64 `json:"age_seconds"`
}

// NodeSignals are signals of a node that belong to no single NIC.
type NodeSignals struct {
	ZeroWindowsPerSecond float64 `json:"zero_windows_per_second"` // TCP receivers that told their sender to stop
	RetransmitsPerSecond float64 `json:"retransmits_per_second"`
}

// Snapshot is the yard at At. A map lacks what was not measured: absent is not zero.
type Snapshot struct {
	At       time.Time               `json:"at"`
	Fabric   topo.Fabric             `json:"fabric"`
	Links    map[ident.Port]LinkLoad `json:"links"`
	NICs     map[netip.Addr]NICLoad  `json:"nics"`
	Nodes    map[string]NodeSignals  `json:"nodes"`
	Jobs     []traffic.Job           `json:"jobs"`
	Problems []string                `json:"problems,omitempty"` // what is missing or stale, in words; guard reads it
}
