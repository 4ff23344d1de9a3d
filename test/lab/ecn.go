// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// This kernel has no RED. A small eBPF program in front of the port's queue marks instead: it keeps a virtual queue
// that fills with each packet and drains at the port's rate, and sets Congestion Experienced on ECN-capable packets
// while the virtual queue is longer than a threshold. It needs nobody to poll the real queue's length.
//
// The map's one value: rate [bytes/s], threshold [bytes], cap [bytes], time of the last packet [ns], virtual queue
// [bytes], packets marked; each 8 bytes. Two processors may race on it: the queue is then a packet off, which is fine.
const (
	markRate = 8 * iota
	markThreshold
	markCap
	markLast
	markQueue
	markCount
	markSize
)

// markMillis is how long a queue must be, in time at the port's rate, before it marks. The token bucket lets 32 KB
// pass before a real queue forms, 2.6 ms at 100 Mbit/s; a third of the queue is on top of that.
const markMillis = queueMillis / 3

type marker struct {
	link  link.Link
	state *ebpf.Map
}

func (m *marker) close() {
	_ = m.link.Close()
	_ = m.state.Close()
}

var liftMemlock = sync.OnceValue(rlimit.RemoveMemlock)

// forgetHash makes a leaf hash what it sees. A packet that a socket of this kernel sent carries the socket's own random
// hash across veth pairs, and the kernel's ECMP believes it: flows would be spread by a number that no header holds, that
// PickSourcePort cannot ask for, and that changes with a retransmission timeout. A program at the ingress of each
// host-facing leaf port clears it.
func (l *Lab) forgetHash() error {
	if err := liftMemlock(); err != nil {
		return fmt.Errorf("lift the memory lock limit for eBPF: %w", err)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.FnSetHashInvalid.Call(),
		asm.Mov.Imm(asm.R0, -1), // "next"
		asm.Return(),
	}})
	if err != nil {
		return fmt.Errorf("load the program that clears packet hashes: %w", err)
	}
	defer func() { _ = prog.Close() }() // what is attached keeps it
	for _, c := range l.Cables {
		if c.Fabric {
			continue
		}
		at, err := l.attach(c.A, c.APort, prog, ebpf.AttachTCXIngress)
		if err != nil {
			return err
		}
		l.onClose(func() { _ = at.Close() })
	}
	return nil
}

// attach puts a program in front of a port's queue or behind its receiver.
func (l *Lab) attach(place, port string, prog *ebpf.Program, where ebpf.AttachType) (link.Link, error) {
	p, dev, err := l.link(place, port)
	if err != nil {
		return nil, err
	}
	var at link.Link
	err = inNetns(p.ns, func() error {
		at, err = link.AttachTCX(link.TCXOptions{Interface: dev.Attrs().Index, Program: prog, Attach: where})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("attach an eBPF program to %s:%s (needs Linux 6.6): %w", place, port, err)
	}
	return at, nil
}

// markPort starts marking on what leaves place through port.
func (l *Lab) markPort(place, port string) error {
	if err := liftMemlock(); err != nil {
		return fmt.Errorf("lift the memory lock limit for eBPF: %w", err)
	}
	state, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: markSize, MaxEntries: 1})
	if err != nil {
		return fmt.Errorf("make the ECN map of %s:%s: %w", place, port, err)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: markProgram(state.FD())})
	if err != nil {
		_ = state.Close()
		return fmt.Errorf("load the ECN program of %s:%s: %w", place, port, err)
	}
	defer func() { _ = prog.Close() }() // what is attached keeps it
	at, err := l.attach(place, port, prog, ebpf.AttachTCXEgress)
	if err != nil {
		_ = state.Close()
		return err
	}
	l.mu.Lock()
	l.markers[portKey{place, port}] = &marker{at, state}
	l.mu.Unlock()
	return l.tellMarker(place, port, l.RateMbit(place, port))
}

// tellMarker gives the program of a port its rate; nothing to do where nothing marks.
func (l *Lab) tellMarker(place, port string, mbit int) error {
	l.mu.Lock()
	m := l.markers[portKey{place, port}]
	l.mu.Unlock()
	if m == nil {
		return nil
	}
	value := make([]byte, markSize)
	bytesPerSecond := uint64(mbit) * 1_000_000 / 8
	binary.NativeEndian.PutUint64(value[markRate:], bytesPerSecond)
	binary.NativeEndian.PutUint64(value[markThreshold:], 32*1024+bytesPerSecond*markMillis/1000)
	binary.NativeEndian.PutUint64(value[markCap:], uint64(32*1024+queueLimit(mbit)))
	if err := m.state.Put(uint32(0), value); err != nil {
		return fmt.Errorf("tell the ECN program of %s:%s its rate: %w", place, port, err)
	}
	return nil
}

// Marked is the number of packets that a port has marked as having met congestion.
func (l *Lab) Marked(place, port string) (uint64, error) {
	l.mu.Lock()
	m := l.markers[portKey{place, port}]
	l.mu.Unlock()
	if m == nil {
		return 0, fmt.Errorf("%s:%s does not mark (Config.ECN is off, or a host's port)", place, port)
	}
	value := make([]byte, markSize)
	if err := m.state.Lookup(uint32(0), &value); err != nil {
		return 0, fmt.Errorf("read the ECN counter of %s:%s: %w", place, port, err)
	}
	return binary.NativeEndian.Uint64(value[markCount:]), nil
}

const skbLen = 0 // offset of len in struct __sk_buff

// markProgram, in words: elapsed = now - last (at most 1 s); queue -= rate * elapsed, not below 0; queue += packet,
// not above cap; if queue > threshold and the packet can be marked, mark and count. Always "next" (-1).
func markProgram(mapFD int) asm.Instructions {
	const second = 1_000_000_000
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1), // R6 = packet
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, mapFD),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Reg(asm.R7, asm.R0), // R7 = state
		asm.FnKtimeGetNs.Call(),
		asm.LoadMem(asm.R1, asm.R7, markLast, asm.DWord),
		asm.StoreMem(asm.R7, markLast, asm.R0, asm.DWord),
		asm.Sub.Reg(asm.R0, asm.R1), // R0 = elapsed
		asm.JLE.Imm(asm.R0, second, "drain"),
		asm.Mov.Imm(asm.R0, second),
		asm.LoadMem(asm.R1, asm.R7, markRate, asm.DWord).WithSymbol("drain"),
		asm.Mul.Reg(asm.R0, asm.R1),
		asm.Div.Imm(asm.R0, second),                       // R0 = bytes drained
		asm.LoadMem(asm.R8, asm.R7, markQueue, asm.DWord), // R8 = queue
		asm.JGE.Reg(asm.R8, asm.R0, "sub"),
		asm.Mov.Reg(asm.R0, asm.R8),
		asm.Sub.Reg(asm.R8, asm.R0).WithSymbol("sub"),
		asm.LoadMem(asm.R1, asm.R6, skbLen, asm.Word),
		asm.Add.Reg(asm.R8, asm.R1),
		asm.LoadMem(asm.R1, asm.R7, markCap, asm.DWord),
		asm.JLE.Reg(asm.R8, asm.R1, "store"),
		asm.Mov.Reg(asm.R8, asm.R1),
		asm.StoreMem(asm.R7, markQueue, asm.R8, asm.DWord).WithSymbol("store"),
		asm.LoadMem(asm.R1, asm.R7, markThreshold, asm.DWord),
		asm.JLE.Reg(asm.R8, asm.R1, "out"),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.FnSkbEcnSetCe.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"), // not ECN-capable
		asm.Mov.Imm(asm.R1, 1),
		asm.Add.Imm(asm.R7, markCount),
		asm.StoreXAdd(asm.R7, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, -1).WithSymbol("out"),
		asm.Return(),
	}
}
