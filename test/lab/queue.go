// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"fmt"
	"strings"
)

// A full drop-tail queue holds 24 ms at the port's rate: long enough that one TCP flow fills the link, short enough
// that retransmission timers of 20 ms and more fit.
const queueMillis = 24

// The classes of the per-flow-fair queue: TCP destination ports FairPorts..FairPorts+FairClasses-1 have one class
// each, everything else shares one.
const (
	FairPorts   = 5300
	FairClasses = 16
)

// limitRates sets the rate of every port of the fabric and starts ECN marking where asked.
func (l *Lab) limitRates(ctx context.Context) error {
	batches := map[string]*strings.Builder{}
	add := func(place, port string, mbit int, fair bool) {
		if batches[place] == nil {
			batches[place] = &strings.Builder{}
		}
		batches[place].WriteString(queueScript(port, mbit, fair))
	}
	for _, c := range l.Cables {
		mbit := l.cfg.HostMbit
		if c.Fabric {
			mbit = l.cfg.FabricMbit
		}
		add(c.A, c.APort, mbit, c.Fabric && l.cfg.Fair)
		add(c.B, c.BPort, mbit, c.Fabric && l.cfg.Fair)
		l.rates[portKey{c.A, c.APort}], l.rates[portKey{c.B, c.BPort}] = mbit, mbit
	}
	err := l.each(ctx, l.devices(), func(ctx context.Context, place string) error {
		_, err := runHost(ctx, batches[place].String(), "tc", "-n", l.places[place].name, "-batch", "-")
		return err
	})
	if err != nil {
		return fmt.Errorf("limit link rates: %w", err)
	}
	if err := l.forgetHash(); err != nil {
		return err
	}
	if !l.cfg.ECN {
		return nil
	}
	for _, c := range l.Cables {
		if err := l.markPort(c.A, c.APort); err != nil {
			return err
		}
		if c.Fabric {
			if err := l.markPort(c.B, c.BPort); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetRate changes the rate of one direction: what leaves place through port. The agents go on telling the old speed.
func (l *Lab) SetRate(ctx context.Context, place, port string, mbit int) error {
	p, _, err := l.link(place, port)
	if err != nil {
		return err
	}
	c, ok := l.cableAt(place, port)
	if !ok {
		return fmt.Errorf("set rate of %s:%s: not a port of the fabric", place, port)
	}
	script := queueScript(port, mbit, false)
	if c.Fabric && l.cfg.Fair {
		script = fmt.Sprintf("qdisc del dev %s root\n", port) + queueScript(port, mbit, true)
	}
	if _, err := runHost(ctx, script, "tc", "-n", p.name, "-batch", "-"); err != nil {
		return fmt.Errorf("set rate of %s:%s: %w", place, port, err)
	}
	l.mu.Lock()
	l.rates[portKey{place, port}] = mbit
	l.mu.Unlock()
	return l.tellMarker(place, port, mbit)
}

// RateMbit is the rate at which a port now sends.
func (l *Lab) RateMbit(place, port string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rates[portKey{place, port}]
}

func queueLimit(mbit int) int { return max(mbit*1000/8*queueMillis, 30000) }

// queueScript is a tc batch that gives one port its rate.
func queueScript(port string, mbit int, fair bool) string {
	if !fair {
		return fmt.Sprintf("qdisc replace dev %s root tbf rate %dmbit burst 32kb limit %d\n", port, mbit, queueLimit(mbit))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "qdisc add dev %s root handle 1: htb default 99\n", port)
	fmt.Fprintf(&b, "class add dev %s parent 1: classid 1:1 htb rate %dmbit ceil %dmbit burst 32kb cburst 32kb quantum 1514\n", port, mbit, mbit)
	class := func(id string) {
		// Equal small guarantees and equal quanta: what is left is lent out round robin, packet by packet.
		fmt.Fprintf(&b, "class add dev %s parent 1:1 classid 1:%s htb rate 1mbit ceil %dmbit burst 4kb cburst 32kb quantum 1514\n", port, id, mbit)
		fmt.Fprintf(&b, "qdisc add dev %s parent 1:%s bfifo limit %d\n", port, id, max(queueLimit(mbit)/2, 75000))
	}
	for i := range FairClasses {
		id := fmt.Sprint(10 + i)
		class(id)
		fmt.Fprintf(&b, "filter add dev %s parent 1: protocol ip prio 1 u32 match ip dport %d 0xffff flowid 1:%s\n", port, FairPorts+i, id)
	}
	class("99")
	return b.String()
}
