// SPDX-License-Identifier: Apache-2.0

// Package catalog is the list of every metric word that trainyard speaks: name, help, unit, kind and labels, one
// table a family, and the labels that each alert must carry. Exporter, rules, actuator and documentation read it;
// it imports the standard library only and never measures anything itself.
package catalog

//go:generate go -C ../.. run ./exporter/catalog/cmd/reference

import (
	"fmt"
	"slices"
	"strings"
)

// Kind says how a metric's values behave.
type Kind int

// The kinds. Info is a gauge that is always 1 and carries its news in labels.
const (
	Gauge Kind = iota
	Counter
	Unknown // node_exporter calls these untyped; kept where a name is shared with it
	Info
	Histogram
)

// String is the word of the reference page and of OpenMetrics.
func (k Kind) String() string {
	switch k {
	case Gauge:
		return "gauge"
	case Counter:
		return "counter"
	case Unknown:
		return "unknown"
	case Info:
		return "info"
	case Histogram:
		return "histogram"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Unit is a base unit as it stands in a metric's name, or None.
type Unit string

// The units. There are no milliseconds and no megabits: whoever reads such a value converts it at the source.
const (
	None           Unit = ""
	Seconds        Unit = "seconds"
	Bytes          Unit = "bytes"
	BytesPerSecond Unit = "bytes_per_second"
	Ratio          Unit = "ratio"
)

// Row is one metric.
type Row struct {
	Name   string
	Help   string // one sentence, ends with a full stop
	Unit   Unit
	Kind   Kind
	Labels []string // in the order in which label values are given
	Shared bool     // node_exporter has exactly this metric: its name wins over our own rules of naming
}

// Family is one table of rows that belong together.
type Family struct {
	Title string
	About string
	Rows  []Row
}

// Families returns all tables in the order of the reference page.
func Families() []Family {
	return []Family{ports, links, bgp, nics, hostMemory, hostTCP, jobs, exporters, actuator}
}

var byName = func() map[string]*Row {
	m := map[string]*Row{}
	for _, f := range Families() {
		for i := range f.Rows {
			m[f.Rows[i].Name] = &f.Rows[i]
		}
	}
	return m
}()

// Lookup finds the row of a metric. Nobody may change what it points to.
func Lookup(name string) (*Row, bool) {
	r, ok := byName[name]
	return r, ok
}

// labelWords is the allow-list of label names, with what each one holds. Neither job nor instance is in it: those
// belong to Prometheus.
var labelWords = map[string]string{
	"address":     "IP address of a NIC, or address with prefix length of a switch port",
	"asn":         "autonomous system number of a switch",
	"balancing":   "how a switch spreads traffic over equal paths: hash, dlb, adaptive, spray or unknown",
	"chassis_id":  "LLDP chassis id of a switch",
	"collective":  "shape of a job's gradient synchronisation, e.g. ring",
	"connections": "transport connections per neighbour and rail that hash independently",
	"device":      "network device of a node, as the kernel names it",
	"direction":   "where a directed link leads: up, down or access",
	"ecmp_group":  "links that share one hash decision or one destination; empty where a link has no peer",
	"fabric":      "name of a fabric, from the inventory",
	"gang":        "group of processes that start together",
	"goversion":   "version of the Go toolchain",
	"job_id":      "identity of a training job",
	"link":        "directed link, named by its transmitting port: fabric/device:port",
	"mode":        "watch, advise or act",
	"node":        "node name as Kubernetes has it, or --node-name",
	"numa_node":   "NUMA node of a host (what node_exporter calls node)",
	"order":       "order of a free block: 2^order pages",
	"outcome":     "terminal state of an incident",
	"peer":        "the other end: device of a link, or address of a BGP peer",
	"peer_kind":   "switch or node",
	"peer_link":   "directed link of the opposite direction: the peer's port",
	"peer_port":   "port of the other end",
	"pool":        "set of nodes with one policy",
	"port":        "ifName of a switch port, never an ifIndex",
	"priority":    "traffic class of a pause frame, 0 to 7; global for one that stops all",
	"rail":        "number of the rail that a NIC belongs to, from 0",
	"rank":        "number of a process in its job, from 0",
	"ranks":       "number of processes of a job",
	"reason":      "why something was refused or dropped, from a short closed list",
	"remote_asn":  "autonomous system number of a BGP peer",
	"result":      "what became of a delivery",
	"revision":    "source revision of a binary",
	"role":        "role of an exporter: node or fabric",
	"source":      "name of a source, e.g. memory or snmp/leaf1",
	"state":       "state of an incident",
	"switch":      "configured name of a switch",
	"tier":        "0 for a leaf, 1 for a spine, and so on",
	"version":     "version of a binary",
	"vrf":         "VRF of the training prefixes",
	"zone":        "memory zone of the kernel, e.g. Normal",
}

// Labels returns the allow-list of label names with what each holds.
func Labels() map[string]string {
	m := make(map[string]string, len(labelWords))
	for k, v := range labelWords {
		m[k] = v
	}
	return m
}

// Check says what is wrong with a row, or nil. The rules are those of Prometheus' naming guide (base units, _total,
// _info) plus our allow-list of labels; a Shared row keeps node_exporter's name and is checked for its labels only.
func (r Row) Check() error {
	switch {
	case !wellFormed(r.Name):
		return fmt.Errorf("metric %q: name must be lower-case words joined by '_'", r.Name)
	case !strings.HasSuffix(r.Help, ".") || strings.ContainsAny(r.Help, "\n\\"):
		return fmt.Errorf("metric %s: help must be one line that ends with a full stop", r.Name)
	}
	seen := map[string]bool{}
	for _, l := range r.Labels {
		if _, ok := labelWords[l]; !ok {
			return fmt.Errorf("metric %s: label %q is not in the allow-list", r.Name, l)
		}
		if seen[l] {
			return fmt.Errorf("metric %s: label %q stands twice", r.Name, l)
		}
		seen[l] = true
	}
	if r.Shared {
		if !strings.HasPrefix(r.Name, "node_") {
			return fmt.Errorf("metric %s: only node_exporter's names may be Shared", r.Name)
		}
		return nil
	}
	return r.checkOwnName()
}

func (r Row) checkOwnName() error {
	stem, total := strings.CutSuffix(r.Name, "_total")
	stem, info := strings.CutSuffix(stem, "_info")
	switch {
	case !strings.HasPrefix(r.Name, "trainyard_"):
		return fmt.Errorf("metric %s: own metrics start with trainyard_", r.Name)
	case r.Kind == Unknown:
		return fmt.Errorf("metric %s: own metrics know their kind", r.Name)
	case total != (r.Kind == Counter):
		return fmt.Errorf("metric %s: counters, and only they, end in _total", r.Name)
	case info != (r.Kind == Info):
		return fmt.Errorf("metric %s: info metrics, and only they, end in _info", r.Name)
	case r.Unit != None && !strings.HasSuffix(stem, "_"+string(r.Unit)):
		return fmt.Errorf("metric %s: unit %s must stand at the end of the name", r.Name, r.Unit)
	}
	for _, word := range strings.Split(stem, "_") {
		if slices.Contains([]string{"milliseconds", "microseconds", "ms", "us", "bits", "mbit", "kb", "mb", "percent"}, word) {
			return fmt.Errorf("metric %s: %s is not a base unit", r.Name, word)
		}
	}
	if r.Unit == None {
		for _, u := range []Unit{Seconds, Bytes, BytesPerSecond, Ratio} {
			if strings.HasSuffix(stem, "_"+string(u)) {
				return fmt.Errorf("metric %s: the name says %s, the row does not", r.Name, u)
			}
		}
	}
	return nil
}

func wellFormed(name string) bool {
	for i, r := range name {
		lower := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' // node_netstat_TcpExt_... keeps the kernel's capitals
		if !lower && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return name != "" && !strings.Contains(name, "__") && !strings.HasSuffix(name, "_")
}
