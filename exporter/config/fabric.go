// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Fabric is the inventory of one fabric and how its switches are asked.
type Fabric struct {
	Name        string                 `yaml:"fabric"`
	Interval    time.Duration          `yaml:"interval"`          // between two polls of a switch
	Topology    time.Duration          `yaml:"topology_interval"` // between two readings of LLDP, addresses and names
	Timeout     time.Duration          `yaml:"timeout"`           // of one request
	Retries     int                    `yaml:"retries"`
	Credentials map[string]Credentials `yaml:"credentials"`
	Switches    []Switch               `yaml:"switches"`
	Nodes       Nodes                  `yaml:"nodes"`
}

// Switch is one switch of the inventory.
type Switch struct {
	Name        string        `yaml:"name"`
	Address     string        `yaml:"address"` // host or host:port; port 161 if none
	Tier        int           `yaml:"tier"`    // 0 = leaf, 1 = spine, ...
	Balancing   string        `yaml:"balancing"`
	VRF         string        `yaml:"vrf"`         // of the training prefixes; empty = unknown
	Credentials string        `yaml:"credentials"` // key of Fabric.Credentials
	ChassisID   string        `yaml:"chassis_id"`  // as LLDP says it; empty = not checked
	LLDPName    string        `yaml:"lldp_name"`   // sysName that its neighbours see; default: Name
	Interval    time.Duration `yaml:"interval"`    // default: Fabric.Interval
	Ports       string        `yaml:"ports"`       // regular expression; a port is read if all of its ifName matches; default: all
}

// Nodes says which LLDP system names are nodes.
type Nodes struct {
	Names   map[string]string `yaml:"names"`   // sysName -> node name
	Pattern string            `yaml:"pattern"` // regular expression over the whole sysName; its first group is the node name
}

// The SNMP versions.
const (
	V2c = "v2c"
	V3  = "v3"
)

// Credentials of SNMP agents. Secrets come from files or environment variables, never from the inventory itself.
type Credentials struct {
	Version   string `yaml:"version"`
	Community Secret `yaml:"community"` // v2c
	User      string `yaml:"user"`      // v3
	Auth      string `yaml:"auth"`      // v3: sha256, ...
	AuthPass  Secret `yaml:"auth_pass"`
	Priv      string `yaml:"priv"` // v3: aes, aes256, ...
	PrivPass  Secret `yaml:"priv_pass"`
	Context   string `yaml:"context"` // v3 context name
}

// AuthProtocols and PrivProtocols are the words for v3; md5 and des are for agents that know nothing better.
var (
	AuthProtocols = []string{"md5", "sha", "sha224", "sha256", "sha384", "sha512"}
	PrivProtocols = []string{"des", "aes", "aes192", "aes256", "aes192c", "aes256c"}
)

// DefaultFabric returns what an inventory need not say.
func DefaultFabric() Fabric {
	return Fabric{Interval: 15 * time.Second, Topology: 60 * time.Second, Timeout: 2 * time.Second, Retries: 1}
}

// LoadFabric reads an inventory, fills in its defaults and reads the secrets.
func LoadFabric(path string) (Fabric, error) {
	f := DefaultFabric()
	if path == "" {
		return f, errors.New("read inventory: the fabric role needs --config.file")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return f, fmt.Errorf("read inventory: %w", err)
	}
	if err := decode(data, &f); err != nil {
		return f, fmt.Errorf("read inventory %s: %w", path, err)
	}
	f.Complete()
	if err := f.Validate(); err != nil {
		return f, fmt.Errorf("inventory %s: %w", path, err)
	}
	for name, c := range f.Credentials {
		loaded, err := c.load()
		if err != nil {
			return f, fmt.Errorf("inventory %s: $.credentials.%s: %w", path, name, err)
		}
		f.Credentials[name] = loaded
	}
	return f, nil
}

// Complete fills in what a switch takes from the fabric.
func (f *Fabric) Complete() {
	for i := range f.Switches {
		s := &f.Switches[i]
		s.LLDPName = cmp.Or(s.LLDPName, s.Name)
		s.Interval = cmp.Or(s.Interval, f.Interval)
		s.Balancing = cmp.Or(s.Balancing, "unknown")
		s.Ports = cmp.Or(s.Ports, ".*")
	}
}

// Validate says what is wrong with a completed inventory, with the YAML path of each fault.
func (f Fabric) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if _, err := ident.NewPort(f.Name, "x", "x"); err != nil {
		fault("$.fabric: %w", err)
	}
	if f.Timeout < 10*time.Millisecond {
		fault("$.timeout: %v, at least 10ms", f.Timeout)
	}
	if f.Retries < 0 || f.Retries > 5 {
		fault("$.retries: %d, 0 to 5", f.Retries)
	}
	if f.Topology < minInterval {
		fault("$.topology_interval: %v, at least %v", f.Topology, minInterval)
	}
	if len(f.Switches) == 0 {
		fault("$.switches: none")
	}
	for name, c := range f.Credentials {
		if err := c.validate(); err != nil {
			fault("$.credentials.%s%w", name, err)
		}
	}
	once := map[string]string{} // what may stand only once: it identifies a switch
	for i, s := range f.Switches {
		at := func(field string) string { return fmt.Sprintf("$.switches[%d].%s", i, field) }
		for _, u := range []struct{ field, value string }{{"name", s.Name}, {"address", s.Endpoint()}, {"lldp_name", s.LLDPName}, {"chassis_id", s.ChassisID}} {
			key := u.field + " " + u.value
			if other, ok := once[key]; ok && u.value != "" {
				fault("%s: %q is that of %s too", at(u.field), u.value, other)
			}
			once[key] = at(u.field)
		}
		if _, err := ident.NewPort("x", s.Name, "x"); err != nil {
			fault("%s: %w", at("name"), err)
		}
		if host, port, err := net.SplitHostPort(s.Endpoint()); err != nil || host == "" {
			fault("%s: %q is not host or host:port", at("address"), s.Address)
		} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			fault("%s: %q is not a port", at("address"), port)
		}
		if s.Tier < 0 {
			fault("%s: %d, leaves are 0", at("tier"), s.Tier)
		}
		if !slices.Contains([]string{"hash", "dlb", "adaptive", "spray", "unknown"}, s.Balancing) {
			fault("%s: %q, want hash, dlb, adaptive, spray or unknown", at("balancing"), s.Balancing)
		}
		if _, ok := f.Credentials[s.Credentials]; !ok {
			fault("%s: %q is not in $.credentials", at("credentials"), s.Credentials)
		}
		if s.Interval < minInterval {
			fault("%s: %v, at least %v", at("interval"), s.Interval, minInterval)
		}
		if _, err := regexp.Compile(s.Ports); err != nil {
			fault("%s: %w", at("ports"), err)
		}
	}
	faults = append(faults, f.Nodes.validate(f.Switches)...)
	return errors.Join(faults...)
}

func (n Nodes) validate(switches []Switch) []error {
	var faults []error
	if re, err := regexp.Compile(n.Pattern); err != nil {
		faults = append(faults, fmt.Errorf("$.nodes.pattern: %w", err))
	} else if n.Pattern != "" && re.NumSubexp() < 1 {
		faults = append(faults, errors.New("$.nodes.pattern: needs a group for the node's name, such as (n\\d+)\\.example\\.com"))
	}
	for sysName, node := range n.Names {
		if _, err := ident.NewPort("x", node, "x"); err != nil {
			faults = append(faults, fmt.Errorf("$.nodes.names.%s: %w", sysName, err))
		}
		if slices.ContainsFunc(switches, func(s Switch) bool { return s.LLDPName == sysName }) {
			faults = append(faults, fmt.Errorf("$.nodes.names.%s: is a switch's lldp_name too", sysName))
		}
	}
	return faults
}

// Endpoint is the address of the agent with its port.
func (s Switch) Endpoint() string {
	if _, _, err := net.SplitHostPort(s.Address); err == nil || s.Address == "" {
		return s.Address
	}
	return net.JoinHostPort(s.Address, "161")
}
