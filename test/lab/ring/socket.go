// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cubic is set socket by socket: the machine's default stays as it is. Root may name any algorithm the kernel has.
func cubic(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = errors.Join(
			unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic"),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	}); e != nil {
		return e
	}
	return err
}

// dialRetry connects from a given address until the other side listens or the deadline is over.
func dialRetry(from netip.AddrPort, to netip.AddrPort, deadline time.Time) (*net.TCPConn, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(from), Control: cubic, Deadline: deadline, KeepAlive: -1}
	for {
		c, err := d.Dial("tcp4", to.String())
		if err == nil {
			return c.(*net.TCPConn), nil
		}
		if !errors.Is(err, unix.ECONNREFUSED) || time.Now().After(deadline) {
			return nil, fmt.Errorf("connect %s to %s: %w", from, to, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func listen(addr netip.AddrPort) (*net.TCPListener, error) {
	ln, err := (&net.ListenConfig{Control: cubic, KeepAlive: -1}).Listen(context.Background(), "tcp4", addr.String())
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return ln.(*net.TCPListener), nil
}

// retransmits is the kernel's count of segments that a connection sent again.
func retransmits(c *net.TCPConn) uint32 {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	var n uint32
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Total_retrans
		}
	})
	return n
}

// readBuffer fixes a receive buffer at some bytes, or with 0 hands it back to the kernel's own tuning.
func readBuffer(c *net.TCPConn, bytes int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var e error
	err = raw.Control(func(fd uintptr) {
		if bytes > 0 {
			e = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, bytes)
			return
		}
		const roomy = 4 << 20 // about where the tuning ends; unlocked it may go on from there
		e = errors.Join(
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, roomy),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, roomy))
	})
	return errors.Join(err, e)
}

// isReset says that the other side, or something in between, broke the connection off.
func isReset(err error) bool {
	return errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ETIMEDOUT)
}
