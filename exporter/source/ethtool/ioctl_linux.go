// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sizes and numbers of linux/ethtool.h.
const (
	stringLen = 32 // ETH_GSTRING_LEN
	statsSet  = 1  // ETH_SS_STATS
	// slack is room for statistics that a driver adds between two calls (it is given more queues): the kernel writes
	// as many as the driver has at that moment, whatever the caller allows for.
	slack = 4096
	// most bounds what a driver may claim to have.
	most = 1 << 16
)

// statistics asks the driver of a device for all its statistics, as `ethtool -S` does. It needs no privilege.
func statistics(device string) (map[string]uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written

	// struct ethtool_sset_info: command, reserved, mask of sets (64 bits), then one count for each set in the mask.
	info := make([]byte, 16+4)
	binary.NativeEndian.PutUint32(info, unix.ETHTOOL_GSSET_INFO)
	binary.NativeEndian.PutUint64(info[8:], 1<<statsSet)
	if err := ioctl(fd, device, info); err != nil {
		return nil, err
	}
	n := int(binary.NativeEndian.Uint32(info[16:]))
	if binary.NativeEndian.Uint64(info[8:]) == 0 || n == 0 {
		return nil, errUnsupported
	}
	if n > most {
		return nil, fmt.Errorf("the driver claims to have %d statistics", n)
	}
	// struct ethtool_gstrings: command, set, length, strings of 32 bytes.
	names := make([]byte, 12+(n+slack)*stringLen)
	binary.NativeEndian.PutUint32(names, unix.ETHTOOL_GSTRINGS)
	binary.NativeEndian.PutUint32(names[4:], statsSet)
	binary.NativeEndian.PutUint32(names[8:], uint32(n))
	if err := ioctl(fd, device, names); err != nil {
		return nil, err
	}
	// struct ethtool_stats: command, count, values of 64 bits.
	values := make([]byte, 8+(n+slack)*8)
	binary.NativeEndian.PutUint32(values, unix.ETHTOOL_GSTATS)
	binary.NativeEndian.PutUint32(values[4:], uint32(n))
	if err := ioctl(fd, device, values); err != nil {
		return nil, err
	}
	if binary.NativeEndian.Uint32(names[8:]) != uint32(n) || binary.NativeEndian.Uint32(values[4:]) != uint32(n) {
		return nil, errors.New("the driver's statistics changed while they were read")
	}
	stats := make(map[string]uint64, n)
	for i := range n {
		name, _, _ := bytes.Cut(names[12+i*stringLen:12+(i+1)*stringLen], []byte{0})
		stats[string(name)] = binary.NativeEndian.Uint64(values[8+i*8:])
	}
	return stats, nil
}

// ioctl sends one ethtool command and has the answer written over it.
func ioctl(fd int, device string, command []byte) error {
	// struct ifreq with its pointer member; 40 bytes on 64-bit kernels, 32 on others.
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	if len(device) >= unix.IFNAMSIZ {
		return fmt.Errorf("device name %q is too long", device)
	}
	copy(request.name[:], device)
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&command[0])
	request.data = unsafe.Pointer(&command[0])
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	switch errno {
	case 0:
		return nil
	case unix.EOPNOTSUPP:
		return errUnsupported
	}
	return fmt.Errorf("ask the driver: %w", errno)
}
