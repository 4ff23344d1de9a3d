// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestSocketOptions(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := secureFD(fd, loopback, "secret", 1); err != nil {
		t.Fatal(err)
	}
	for what, o := range map[string]struct{ opt, want int }{
		"DSCP CS6 (TOS 0xc0)":           {unix.IP_TOS, 0xc0},
		"TTL":                           {unix.IP_TTL, 255},
		"least TTL for one hop of GTSM": {unix.IP_MINTTL, 255},
	} {
		if got, err := unix.GetsockoptInt(fd, unix.IPPROTO_IP, o.opt); err != nil || got != o.want {
			t.Errorf("%s: %d, %v; want %d", what, got, err, o.want)
		}
	}
}
