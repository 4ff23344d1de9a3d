// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Validate says everything that makes the fabric contradict itself: links under a wrong key, ends that are in no
// inventory, links without a speed or a reverse, NICs on ports that have no access link. A fabric with errors can
// still be drawn; a plan must not be made of the parts that are named.
func (f Fabric) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	nodes := map[ident.Port]bool{}
	for addr, n := range f.NICs {
		nodes[n.Port()] = true
		if addr != n.Addr {
			bad("nic %s: stored under address %s", n.Addr, addr)
		}
		l, ok := f.Links[n.Attached]
		switch {
		case !ok:
			bad("nic %s of %s: no access link from %s", addr, n.Node, n.Attached)
		case l.To != n.Port():
			bad("nic %s of %s: access link %s leads to %s", addr, n.Node, n.Attached, l.To)
		}
	}
	for key, l := range f.Links {
		if key != l.From {
			bad("link %s: stored under %s", l.From, key)
		}
		if !(l.BytesPerSecond > 0) { // also refuses NaN
			bad("link %s: speed %v bytes/s, want more than 0", l.From, l.BytesPerSecond)
		}
		if back, ok := f.Links[l.To]; !ok || back.To != l.From {
			bad("link %s to %s: no link back", l.From, l.To)
		}
		_, fromSwitch := f.Switches[l.From.Device]
		_, toSwitch := f.Switches[l.To.Device]
		switch l.Direction {
		case Up, Down:
			if !fromSwitch || !toSwitch {
				bad("link %s to %s: direction %q, but not between two switches", l.From, l.To, l.Direction)
			}
		case Access:
			if !fromSwitch || !nodes[l.To] {
				bad("link %s to %s: access link that does not lead from a switch to a nic", l.From, l.To)
			}
		case Host:
			if !toSwitch || !nodes[l.From] {
				bad("link %s to %s: host link that does not lead from a nic to a switch", l.From, l.To)
			}
		default:
			bad("link %s: direction %q", l.From, l.Direction)
		}
	}
	// Maps have no order; people and tests want one.
	slices.SortFunc(errs, func(a, b error) int {
		return cmp.Compare(a.Error(), b.Error())
	})
	return errors.Join(errs...)
}
