// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Counters are a device's packet counters as the kernel keeps them.
type Counters struct {
	TxBytes, TxPackets, RxBytes, RxPackets uint64
}

// PortCounters reads the counters of one device of a place.
func (l *Lab) PortCounters(place, device string) (Counters, error) {
	_, link, err := l.link(place, device)
	if err != nil {
		return Counters{}, err
	}
	s := link.Attrs().Statistics
	if s == nil {
		return Counters{}, fmt.Errorf("read counters of %s:%s: the kernel gave none", place, device)
	}
	return Counters{s.TxBytes, s.TxPackets, s.RxBytes, s.RxPackets}, nil
}

// Queue is the state of a port's queue.
type Queue struct {
	Drops    uint64 `json:"drops"`
	Overruns uint64 `json:"overlimits"`
	Backlog  uint64 `json:"backlog"` // bytes that wait now
}

// Drops reads the root queue of a port: what it threw away so far and what waits now. SNMP does not tell this.
func (l *Lab) Drops(ctx context.Context, place, port string) (Queue, error) {
	out, err := runHost(ctx, "", "tc", "-n", l.Namespace(place), "-s", "-json", "qdisc", "show", "dev", port, "root")
	if err != nil {
		return Queue{}, fmt.Errorf("read the queue of %s:%s: %w", place, port, err)
	}
	var qs []Queue
	if err := json.Unmarshal([]byte(out), &qs); err != nil || len(qs) == 0 {
		return Queue{}, fmt.Errorf("read the queue of %s:%s: unexpected answer %.100q", place, port, out)
	}
	return qs[0], nil
}

// NetSNMP reads /proc/net/snmp and /proc/net/netstat of a place; keys are "Tcp.RetransSegs", "IpExt.InCEPkts", ...
func (l *Lab) NetSNMP(place string) (map[string]int64, error) {
	values := map[string]int64{}
	err := l.Do(place, func() error {
		for _, file := range []string{"snmp", "netstat"} {
			// /proc/net is the main thread's namespace; this thread's is under thread-self.
			raw, err := os.ReadFile("/proc/thread-self/net/" + file)
			if err != nil {
				return err
			}
			parseNetSNMP(raw, values)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read TCP counters of %s: %w", place, err)
	}
	return values, nil
}

// parseNetSNMP reads pairs of lines: names, then values, each after the same "Group:".
func parseNetSNMP(raw []byte, into map[string]int64) {
	var names []string
	for sc := bufio.NewScanner(bytes.NewReader(raw)); sc.Scan(); {
		f := strings.Fields(sc.Text())
		if names == nil {
			names = f
			continue
		}
		group := strings.TrimSuffix(names[0], ":")
		for i := 1; i < min(len(f), len(names)); i++ {
			if v, err := strconv.ParseInt(f[i], 10, 64); err == nil {
				into[group+"."+names[i]] = v
			}
		}
		names = nil
	}
}
