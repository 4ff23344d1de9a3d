// SPDX-License-Identifier: Apache-2.0

// Package config reads what an exporter is told: a file for the node role, an inventory for the fabric role. It
// checks everything before anything starts, and it never prints a secret.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/goccy/go-yaml"
)

// Node is the configuration of the node role. Fields without a YAML key come from flags.
type Node struct {
	Name     string        `yaml:"-"` // of the node, as Kubernetes has it
	Interval time.Duration `yaml:"-"` // between two reads of each source
	JobDir   string        `yaml:"-"` // directory of job reports; "" = no job source
	Procfs   string        `yaml:"-"`
	Sysfs    string        `yaml:"-"`

	Fabric    string         `yaml:"fabric"`      // fabric that the NICs are attached to
	Devices   string         `yaml:"devices"`     // regular expression; a device is read if all of its name matches
	Rail      string         `yaml:"rail"`        // regular expression; its first group is the rail's number
	Rails     map[string]int `yaml:"rails"`       // rail by device name, for names that hold no number
	JobMaxAge time.Duration  `yaml:"job_max_age"` // job reports written longer ago are stale
}

// DefaultNode returns the configuration that the node role has without a file.
func DefaultNode() Node {
	name, _ := os.Hostname() // Validate asks for a name if there is none
	return Node{
		Name: name, Interval: 5 * time.Second, Procfs: "/proc", Sysfs: "/sys",
		Devices: `rail\d+|ib\d+|en.*|eth\d+|bond\d+`, Rail: `rail(\d+)`, JobMaxAge: 15 * time.Second,
	}
}

// Validate says what is wrong, with the YAML path of each fault.
func (n Node) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if n.Name == "" {
		fault("--node-name: empty, and the machine has no host name")
	}
	if n.Interval < minInterval {
		fault("--interval: %v, at least %v", n.Interval, minInterval)
	}
	if n.JobMaxAge < time.Second {
		fault("$.job_max_age: %v, at least 1s", n.JobMaxAge)
	}
	if _, err := regexp.Compile(n.Devices); err != nil {
		fault("$.devices: %w", err)
	} else if n.Devices == "" {
		fault("$.devices: empty, matches no device")
	}
	if re, err := regexp.Compile(n.Rail); err != nil {
		fault("$.rail: %w", err)
	} else if n.Rail != "" && re.NumSubexp() < 1 {
		fault("$.rail: needs a group for the number, such as rail(\\d+)")
	}
	for device, rail := range n.Rails {
		if rail < 0 {
			fault("$.rails.%s: %d, rails count from 0", device, rail)
		}
	}
	return errors.Join(faults...)
}

// minInterval is the shortest interval: below it the reads themselves would be a load worth measuring.
const minInterval = 100 * time.Millisecond

// LoadNode reads a file over the defaults; an empty path gives the defaults. The caller sets the fields that come
// from flags and then calls Validate.
func LoadNode(path string) (Node, error) {
	n := DefaultNode()
	if path == "" {
		return n, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Node{}, fmt.Errorf("read configuration: %w", err)
	}
	if err := decode(data, &n); err != nil {
		return Node{}, fmt.Errorf("read configuration %s: %w", path, err)
	}
	return n, nil
}

// decode reads exactly one YAML document and refuses keys that it does not know; the error shows where they stand.
// An empty document leaves the defaults.
func decode(data []byte, into any) error {
	var whole any
	if err := yaml.Unmarshal(data, &whole); err == nil && whole == nil {
		return nil // decoding null would clear the defaults
	}
	d := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var second any
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return errors.New("more than one YAML document")
	}
	return nil
}
