// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// dscpCS6 is the class of network control traffic (RFC 4594), as an IP TOS byte: a session must live through the very
// congestion that is to be cured.
const dscpCS6 = 48 << 2

// secure returns the function that prepares a socket before it connects to peer: TCP MD5 (RFC 2385) with the password,
// if there is one; GTSM (RFC 5082) for hops > 0; DSCP CS6.
func secure(peer netip.Addr, password string, hops int) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) { err = secureFD(int(fd), peer, password, hops) }); cerr != nil {
			return cerr
		}
		return err
	}
}

func secureFD(fd int, peer netip.Addr, password string, hops int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, dscpCS6); err != nil {
		return fmt.Errorf("set DSCP CS6: %w", err)
	}
	if hops > 0 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TTL, 255); err != nil {
			return fmt.Errorf("set TTL 255: %w", err)
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MINTTL, 256-hops); err != nil {
			return fmt.Errorf("set the least TTL %d: %w", 256-hops, err)
		}
	}
	if password != "" {
		sig := unix.TCPMD5Sig{Keylen: uint16(len(password))}
		sig.Addr.Family = unix.AF_INET
		a := peer.As4()
		copy(sig.Addr.Data[2:], a[:]) // sockaddr_in without its family: 2 bytes port, 4 bytes address
		copy(sig.Key[:], password)
		if err := unix.SetsockoptTCPMD5Sig(fd, unix.IPPROTO_TCP, unix.TCP_MD5SIG, &sig); err != nil {
			return fmt.Errorf("set the TCP MD5 password: %w", err)
		}
	}
	return nil
}

// unacknowledged is the number of bytes that the other side's TCP has not acknowledged (SIOCOUTQ, tcp(7)).
func unacknowledged(c net.Conn) (int, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0, nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n int
	cerr := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	if cerr != nil {
		return 0, cerr
	}
	return n, err
}
