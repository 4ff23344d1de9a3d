// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package bgp

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
)

var errNotLinux = errors.New("the BGP driver needs Linux: TCP MD5 and GTSM are set with its socket options")

func secure(netip.Addr, string, int) func(network, address string, c syscall.RawConn) error {
	return func(string, string, syscall.RawConn) error { return errNotLinux }
}

func unacknowledged(net.Conn) (int, error) { return 0, errNotLinux }
