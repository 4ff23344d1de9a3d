// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/plan"
)

// Config is what the driver needs to know of the fabric. Durations are whole seconds where BGP carries them.
type Config struct {
	Leaves   []Leaf         `yaml:"leaves"`
	Prefixes []netip.Prefix `yaml:"prefixes"` // our own: a route outside of them is refused; the switch has the same list
	Pins     Session        `yaml:"pins"`     // graceful restart: routes survive an ordinary restart of this process
	Weights  Session        `yaml:"weights"`  // no graceful restart, short hold time; off without a local address

	MaxRoutesPerLeaf int `yaml:"max_routes_per_leaf"` // of both kinds; below the switch's maximum-prefix
	MaxNextHops      int `yaml:"max_next_hops"`       // of a weighted route; at most the switch's maximum-paths

	TTLSecurityHops int           `yaml:"ttl_security_hops"` // GTSM (RFC 5082): refuse packets from farther away; 0 = off
	RestartTime     time.Duration `yaml:"restart_time"`      // how long a leaf keeps the pins of a dead controller
	OrphanAfter     time.Duration `yaml:"orphan_after"`      // without a valid permit for so long, all routes are withdrawn
	MaxPause        time.Duration `yaml:"max_pause"`         // a longer standstill of the process closes all sessions
	BreakerReset    time.Duration `yaml:"breaker_reset"`     // a leaf whose session flapped gets no new route for so long
	WriteTimeout    time.Duration `yaml:"write_timeout"`     // of one route until the leaf has acknowledged it
	StartWait       time.Duration `yaml:"start_wait"`        // how long the first Prime waits for the sessions
}

// Leaf is one switch that the driver may write to.
type Leaf struct {
	Name         string       `yaml:"name"` // as the routes name it
	Address      netip.Addr   `yaml:"address"`
	Port         uint16       `yaml:"port"` // 0 = 179
	ASN          uint32       `yaml:"asn"`  // the leaf's own: the sessions are iBGP
	PasswordFile string       `yaml:"password_file"`
	Uplinks      []netip.Addr `yaml:"uplinks"` // far ends of its own fabric links: never the next hop of a pin (field rule 1)
}

// Session holds what differs between the two sessions of a leaf.
type Session struct {
	LocalAddress netip.Addr    `yaml:"local_address"`
	HoldTime     time.Duration `yaml:"hold_time"`
	Keepalive    time.Duration `yaml:"keepalive"`
}

// Default returns the figures that the field rules ask for, without leaves, prefixes and addresses.
func Default() Config {
	return Config{
		Pins: Session{HoldTime: 9 * time.Second, Keepalive: 3 * time.Second},
		// 3 s is the least hold time that BGP allows (RFC 4271, 4.2), and the bound of field rule 1 for weights.
		Weights:          Session{HoldTime: 3 * time.Second, Keepalive: time.Second},
		MaxRoutesPerLeaf: 64,
		MaxNextHops:      8,
		RestartTime:      30 * time.Second,
		OrphanAfter:      30 * time.Second,
		MaxPause:         5 * time.Second,
		BreakerReset:     10 * time.Minute,
		WriteTimeout:     2 * time.Second,
		StartWait:        3 * time.Second,
	}
}

// Validate returns every mistake, each with its YAML path.
func (c *Config) Validate() error {
	var errs []error
	bad := func(path, format string, a ...any) { errs = append(errs, fmt.Errorf(path+": "+format, a...)) }

	if len(c.Leaves) == 0 {
		bad("leaves", "none given")
	}
	seen := map[string]bool{}
	for i, l := range c.Leaves {
		at := fmt.Sprintf("leaves[%d]", i)
		switch {
		case l.Name == "":
			bad(at+".name", "empty")
		case seen[l.Name]:
			bad(at+".name", "%s is given twice", l.Name)
		}
		seen[l.Name] = true
		if !l.Address.Is4() {
			bad(at+".address", "want an IPv4 address, got %q", addr(l.Address))
		}
		if l.ASN == 0 {
			bad(at+".asn", "missing")
		}
	}
	if len(c.Prefixes) == 0 {
		bad("prefixes", "none given: the driver may announce nothing")
	}
	for i, p := range c.Prefixes {
		if !p.IsValid() || !p.Addr().Is4() || p != p.Masked() {
			bad(fmt.Sprintf("prefixes[%d]", i), "want an IPv4 prefix without host bits, got %s", p)
		} else if p.Bits() < 8 {
			// 0.0.0.0/0 here would take away the one bound that this side has.
			bad(fmt.Sprintf("prefixes[%d]", i), "%s is too wide: at least /8", p)
		}
	}
	session := func(path string, s Session) {
		if !s.LocalAddress.Is4() {
			bad(path+".local_address", "want an IPv4 address, got %q", addr(s.LocalAddress))
		}
		if s.HoldTime < 3*time.Second || s.HoldTime%time.Second != 0 {
			bad(path+".hold_time", "want whole seconds, at least 3s, got %s", s.HoldTime)
		}
		if s.Keepalive < time.Second || s.Keepalive%time.Second != 0 || s.Keepalive > s.HoldTime/3 {
			bad(path+".keepalive", "want whole seconds, at least 1s and at most a third of hold_time, got %s", s.Keepalive)
		}
	}
	session("pins", c.Pins)
	if c.HasWeights() {
		session("weights", c.Weights)
		if c.Weights.LocalAddress == c.Pins.LocalAddress {
			bad("weights.local_address", "is the same as pins.local_address: a leaf cannot tell the two sessions apart")
		}
		if c.Weights.HoldTime > 3*time.Second {
			bad("weights.hold_time", "want 3s, since weights have to be gone 3 s after this process stands still, got %s", c.Weights.HoldTime)
		}
	}
	if c.MaxRoutesPerLeaf < 1 {
		bad("max_routes_per_leaf", "want at least 1, got %d", c.MaxRoutesPerLeaf)
	}
	if c.MaxNextHops < 2 || c.MaxNextHops > 64 {
		bad("max_next_hops", "want 2 to 64, got %d", c.MaxNextHops)
	}
	if c.TTLSecurityHops < 0 || c.TTLSecurityHops > 254 {
		bad("ttl_security_hops", "want 0 (off) to 254, got %d", c.TTLSecurityHops)
	}
	// RFC 4724 carries the restart time in 12 bits.
	if c.RestartTime < time.Second || c.RestartTime > 4095*time.Second || c.RestartTime%time.Second != 0 {
		bad("restart_time", "want whole seconds, 1s to 4095s, got %s", c.RestartTime)
	}
	for path, d := range map[string]time.Duration{
		"orphan_after": c.OrphanAfter, "max_pause": c.MaxPause, "breaker_reset": c.BreakerReset, "write_timeout": c.WriteTimeout,
	} {
		if d <= 0 {
			bad(path, "want more than 0, got %s", d)
		}
	}
	if c.StartWait < 0 {
		bad("start_wait", "want 0 or more, got %s", c.StartWait)
	}
	return errors.Join(errs...)
}

// HasWeights says whether the second session is configured.
func (c *Config) HasWeights() bool { return c.Weights.LocalAddress.IsValid() }

// session returns the part of the configuration that belongs to a kind of route.
func (c *Config) session(k plan.Kind) Session {
	if k == plan.Weights {
		return c.Weights
	}
	return c.Pins
}

// password reads the session password of a leaf; "" means a session without one.
func (l Leaf) password() (string, error) {
	if l.PasswordFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(l.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("read the BGP password of leaf %s: %w", l.Name, err)
	}
	s := strings.TrimSpace(string(b))
	if s == "" || len(s) > 80 {
		// 80 is TCP_MD5SIG_MAXKEYLEN of Linux.
		return "", fmt.Errorf("read the BGP password of leaf %s: %s holds %d characters, want 1 to 80", l.Name, l.PasswordFile, len(s))
	}
	return s, nil
}

func addr(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
