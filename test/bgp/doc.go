// SPDX-License-Identifier: Apache-2.0

// Package bgp tests the BGP driver on the lab's real switches: what a cut link costs under its routes, what a restart of
// the controller does to them, and that a controller that slept past its lease writes nothing (field rules 1, 2 and 7).
// The driver runs in a process of its own in the management namespace, so that it can be stopped and killed. Needs
// root: `go test -tags lab ./test/bgp`.
package bgp
