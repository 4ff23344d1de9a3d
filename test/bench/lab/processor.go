// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"strconv"
	"strings"
)

// ticks are the machine's processor time so far, see proc_stat(5).
type ticks struct{ idle, all float64 }

func processorTime() ticks {
	var t ticks
	raw, _ := os.ReadFile("/proc/stat") // always there; without it nothing is idle, which is the careful answer
	line, _, _ := strings.Cut(string(raw), "\n")
	for i, f := range strings.Fields(line) {
		v, err := strconv.ParseFloat(f, 64)
		if i == 0 || i > 8 || err != nil { // "cpu" itself; guest time is in user time already
			continue
		}
		t.all += v
		if i == 4 || i == 5 { // idle, waiting for a disk
			t.idle += v
		}
	}
	return t
}

// idleSince is the share of processor time since t that nobody used.
func (t ticks) idleSince() float64 {
	now := processorTime()
	if now.all <= t.all {
		return 0
	}
	return (now.idle - t.idle) / (now.all - t.all)
}
