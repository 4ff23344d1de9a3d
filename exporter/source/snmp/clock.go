// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"context"
	"fmt"
)

// clock is what an agent says of its own time.
type clock struct {
	uptime    uint32 // sysUpTime, hundredths of a second; wraps after 497 days
	hasEngine bool
	boots     uint64 // snmpEngineBoots (RFC 3411)
	time      uint64 // snmpEngineTime, seconds since boots was incremented
}

var clockOIDs = []oid{mustOID("1.3.6.1.2.1.1.3.0"), mustOID("1.3.6.1.6.3.10.2.1.2.0"), mustOID("1.3.6.1.6.3.10.2.1.3.0")}

func readClock(ctx context.Context, c client) (clock, error) {
	vbs, err := c.get(ctx, clockOIDs)
	if err != nil {
		return clock{}, fmt.Errorf("read the agent's clock: %w", err)
	}
	if len(vbs) != len(clockOIDs) {
		return clock{}, fmt.Errorf("read the agent's clock: %d variables in the answer to a request for %d", len(vbs), len(clockOIDs))
	}
	uptime, ok := vbs[0].value.number()
	if !ok {
		return clock{}, fmt.Errorf("read the agent's clock: no sysUpTime")
	}
	k := clock{uptime: uint32(uptime)} //nolint:gosec // TimeTicks have 32 bits
	boots, ok1 := vbs[1].value.number()
	seconds, ok2 := vbs[2].value.number()
	if ok1 && ok2 {
		k.hasEngine, k.boots, k.time = true, boots, seconds
	}
	return k, nil
}

// restartedSince says whether the agent started anew between two readings. sysUpTime alone would say so every 497
// days; where the engine's clock is known it decides.
func (k clock) restartedSince(before clock) bool {
	if k.hasEngine && before.hasEngine {
		return k.boots != before.boots || k.time < before.time
	}
	// Without an engine clock: a counter that fell from within its last hour has wrapped.
	const lastHour = 1<<32 - 60*60*100
	return k.uptime < before.uptime && before.uptime < lastHour
}

// age is how long ago a moment of sysUpTime was, in seconds. A moment slightly ahead was read a little later than the
// clock.
func (k clock) age(ticks uint32) float64 {
	d := k.uptime - ticks // modulo 2^32
	if d > 1<<32-60*100 {
		return 0
	}
	return float64(d) / 100
}
