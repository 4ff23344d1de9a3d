// SPDX-License-Identifier: Apache-2.0

// Package config reads the actuator's configuration file: strict YAML over the defaults of a profile. It checks what
// can be checked without touching the world and names each fault by its YAML path. It builds nothing.
package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/trainyard/trainyard/actuator/act/bgp"
	"github.com/trainyard/trainyard/actuator/api"
	"github.com/trainyard/trainyard/actuator/observe/am"
	"github.com/trainyard/trainyard/actuator/observe/prom"
)

// Profile names a set of defaults (field rule 18).
type Profile string

// The profiles: Production is made for 15 s scrapes, Lab for 1 s scrapes and for the simulated plant.
const (
	Production Profile = "production"
	Lab        Profile = "lab"
)

// DriverKind says by what routes are moved.
type DriverKind string

// The drivers. With None the actuator can watch, and every plan is refused because no driver can say its routes.
const (
	None DriverKind = "none"
	BGP  DriverKind = "bgp"
)

// Config is the whole file. Relative paths are relative to the file's own folder.
type Config struct {
	Profile      Profile       `yaml:"profile"`
	Listen       string        `yaml:"listen"` // REST, webhook and metrics; loopback unless credentials are configured
	Web          Web           `yaml:"web"`
	Prometheus   prom.Config   `yaml:"prometheus"`
	Alertmanager am.Config     `yaml:"alertmanager"`
	JournalDir   string        `yaml:"journal_dir"`
	PoliciesFile string        `yaml:"policies_file"`
	StopFile     string        `yaml:"stop_file"` // while it exists, no new step is taken
	Lease        time.Duration `yaml:"lease"`     // a controller that slept longer writes nothing (field rule 2)
	Timers       Timers        `yaml:"timers"`
	Driver       Driver        `yaml:"driver"`
	Log          Log           `yaml:"log"`
}

// Timers say how often the actuator looks at the world.
type Timers struct {
	Observe   time.Duration `yaml:"observe"`   // pictures for verification, holding and follow-up
	Reconcile time.Duration `yaml:"reconcile"` // read-backs of the routes in force
}

// Web says who may talk to the actuator.
type Web struct {
	TokensFile  string `yaml:"tokens_file"`   // bearer tokens with actor and roles; required beyond loopback
	TLSCertFile string `yaml:"tls_cert_file"` // both or none; read again for each handshake
	TLSKeyFile  string `yaml:"tls_key_file"`
}

// Driver says by what routes are moved.
type Driver struct {
	Kind DriverKind `yaml:"kind"`
	BGP  bgp.Config `yaml:"bgp"` // read if kind is bgp
}

// Log says how much is said on standard error.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // text, json
}

// Default is the configuration of a profile with nothing set: it listens on loopback and can only watch.
func Default(p Profile) Config {
	c := Config{
		Profile: p, Listen: "127.0.0.1:9610",
		Prometheus: prom.DefaultConfig(), Alertmanager: am.DefaultConfig(),
		JournalDir: "/var/lib/trainyard/journal", PoliciesFile: "/etc/trainyard/policies.yaml", StopFile: "/var/lib/trainyard/stop",
		Lease:  10 * time.Second,
		Timers: Timers{Observe: 15 * time.Second, Reconcile: 5 * time.Second},
		Driver: Driver{Kind: None, BGP: bgp.Default()},
		Log:    Log{Level: "info", Format: "text"},
	}
	if p == Lab {
		c.Prometheus = prom.LabConfig()
		c.Alertmanager.Every, c.Alertmanager.Settle = 2*time.Second, 15*time.Second
		c.Timers = Timers{Observe: 250 * time.Millisecond, Reconcile: time.Second}
	}
	return c
}

// Load reads and checks a configuration file.
func Load(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	c, err := Parse(text)
	if err != nil {
		return Config{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	c.relativeTo(filepath.Dir(path))
	if err := c.Validate(); err != nil {
		return Config{}, fmt.Errorf("configuration %s:\n%w", path, err)
	}
	return c, nil
}

// Parse reads a configuration over the defaults of the profile that it names. Unknown keys and doubled keys are
// refused with their position. It does not validate.
func Parse(text []byte) (Config, error) {
	var head struct {
		Profile Profile `yaml:"profile"`
	}
	if err := yaml.Unmarshal(text, &head); err != nil {
		return Config{}, err
	}
	if head.Profile == "" {
		head.Profile = Production
	}
	c := Default(head.Profile)
	if len(strings.TrimSpace(string(text))) == 0 {
		return c, nil
	}
	if err := yaml.UnmarshalWithOptions(text, &c, yaml.Strict()); err != nil {
		return Config{}, err
	}
	c.Profile = head.Profile
	return c, nil
}

// relativeTo makes every path of the file absolute or relative to dir.
func (c *Config) relativeTo(dir string) {
	paths := []*string{
		&c.Web.TokensFile, &c.Web.TLSCertFile, &c.Web.TLSKeyFile, &c.Prometheus.TokenFile, &c.Alertmanager.TokenFile,
		&c.JournalDir, &c.PoliciesFile, &c.StopFile,
	}
	for i := range c.Driver.BGP.Leaves {
		paths = append(paths, &c.Driver.BGP.Leaves[i].PasswordFile)
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}

// Validate names every fault by its YAML path.
func (c Config) Validate() error {
	var errs []error
	bad := func(path, format string, args ...any) {
		errs = append(errs, fmt.Errorf("$.%s: "+format, append([]any{path}, args...)...))
	}
	if c.Profile != Production && c.Profile != Lab {
		bad("profile", "%q is none of %s, %s", string(c.Profile), Production, Lab)
	}
	if err := api.CheckListen(c.Listen, c.Web.TokensFile != ""); err != nil {
		bad("listen", "%w", err)
	}
	if (c.Web.TLSCertFile == "") != (c.Web.TLSKeyFile == "") {
		bad("web.tls_cert_file", "certificate and key come together: set both or none")
	}
	errs = append(errs, under("$.prometheus.", c.Prometheus.Validate()), under("$.alertmanager.", c.Alertmanager.Validate()))
	for _, p := range []struct{ key, value string }{
		{"journal_dir", c.JournalDir}, {"policies_file", c.PoliciesFile}, {"stop_file", c.StopFile},
	} {
		if p.value == "" {
			bad(p.key, "empty")
		}
	}
	if c.Lease < time.Second || c.Lease > 5*time.Minute {
		bad("lease", "%s is outside 1s..5m", c.Lease)
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"timers.observe", c.Timers.Observe}, {"timers.reconcile", c.Timers.Reconcile}} {
		if d.value < 50*time.Millisecond || d.value > 5*time.Minute {
			bad(d.key, "%s is outside 50ms..5m", d.value)
		}
	}
	switch c.Driver.Kind {
	case None:
	case BGP:
		errs = append(errs, under("$.driver.bgp.", c.Driver.BGP.Validate()))
		// A process that stood still between check and write is harmless only if the leaf has closed its session by then.
		if hold := c.Driver.BGP.Pins.HoldTime; hold >= c.Lease {
			bad("driver.bgp.pins.hold_time", "%s is not below the lease of %s", hold, c.Lease)
		}
	default:
		bad("driver.kind", "%q is none of %s, %s", string(c.Driver.Kind), None, BGP)
	}
	if _, err := c.Log.level(); err != nil {
		bad("log.level", "%w", err)
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		bad("log.format", "%q is none of text, json", c.Log.Format)
	}
	return errors.Join(errs...)
}

// under puts the path of a section before each fault that the section's own package found.
func under(path string, err error) error {
	if err == nil {
		return nil
	}
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	for i, e := range list {
		list[i] = fmt.Errorf("%s%w", path, e)
	}
	return errors.Join(list...)
}
