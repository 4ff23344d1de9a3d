// SPDX-License-Identifier: Apache-2.0

// Package frr renders the switch's side of the actuator's BGP sessions for FRRouting: the neighbours that a leaf accepts
// its controller as, and the bounds within which it obeys. It writes no file and configures no switch.
package frr

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"text/template"
)

// Params is what the leaf's part depends on.
type Params struct {
	ASN     uint32     // of the leaf: the sessions are iBGP
	Pins    netip.Addr // the controller's address of the session with graceful restart
	Weights netip.Addr // the controller's address of the session without; invalid = no weighted routes

	Prefixes []netip.Prefix // in which the controller may announce host routes: the NICs behind other leaves
	Feed     []netip.Prefix // that the leaf tells its own paths for: Prefixes and the link subnets of the fabric

	Password        string // TCP MD5, "" = none
	TTLSecurityHops int    // GTSM, 0 = off
	MaximumPrefix   int    // above the actuator's max_routes_per_leaf; 0 = 128
	MaximumPaths    int    // of a weighted route; 0 = 8
	LocalPreference int    // 0 = 200
}

// Zebra is the one line for zebra, in frr.conf or in zebra.conf: without it a next hop that no route covers would count as
// reachable through a default route, and a pin would outlive its link.
const Zebra = "no ip nht resolve-via-default\n"

//go:embed leaf-peers.conf.tmpl
var leafPeers string

type trust struct {
	Params
	Peer netip.Addr
}

var tmpl = template.Must(template.New("leaf-peers.conf").Funcs(template.FuncMap{
	"peer": func(p Params, a netip.Addr) trust { return trust{p, a} },
}).Parse(leafPeers))

// RenderLeafPeers returns the configuration lines of one leaf, to be added to what bgpd has; see also Zebra.
func RenderLeafPeers(p Params) (string, error) {
	if err := p.complete(); err != nil {
		return "", fmt.Errorf("render the controller's peers of a leaf: %w", err)
	}
	var b strings.Builder
	if err := tmpl.Execute(&b, p); err != nil {
		return "", fmt.Errorf("render the controller's peers of a leaf: %w", err)
	}
	return b.String(), nil
}

// complete fills in defaults and refuses what would render a leaf without bounds.
func (p *Params) complete() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if p.ASN == 0 {
		bad("no AS number")
	}
	if !p.Pins.Is4() {
		bad("no IPv4 address of the session for pins")
	}
	if p.Weights.IsValid() && (!p.Weights.Is4() || p.Weights == p.Pins) {
		bad("the session for weights needs an IPv4 address of its own")
	}
	if len(p.Prefixes) == 0 {
		bad("no prefixes: the leaf would accept nothing")
	}
	for _, q := range append(append([]netip.Prefix{}, p.Prefixes...), p.Feed...) {
		if !q.IsValid() || !q.Addr().Is4() || q.Bits() < 8 || q != q.Masked() {
			bad("prefix %s: want an IPv4 prefix of at least /8 without host bits", q)
		}
	}
	if p.Weights.IsValid() && len(p.Feed) == 0 {
		bad("no feed: without it no weighted route can be used")
	}
	if strings.ContainsAny(p.Password, " \t\r\n!") || len(p.Password) > 80 {
		bad("the password has blanks, an exclamation mark or more than 80 characters")
	}
	if p.TTLSecurityHops < 0 || p.TTLSecurityHops > 254 {
		bad("ttl security over %d hops: want 0 to 254", p.TTLSecurityHops)
	}
	for _, d := range []struct {
		v        *int
		standard int
	}{{&p.MaximumPrefix, 128}, {&p.MaximumPaths, 8}, {&p.LocalPreference, 200}} {
		if *d.v == 0 {
			*d.v = d.standard
		}
		if *d.v < 0 {
			bad("a limit of %d", *d.v)
		}
	}
	return errors.Join(errs...)
}
