// SPDX-License-Identifier: Apache-2.0

package sim

import "time"

// agent is the management agent of one switch: what anybody learns of the switch's ports is a copy that is as old as the
// agent's cache (net-snmp keeps counters 3 s, switches often 5 to 30 s).
type agent struct {
	device string
	next   time.Time
	ports  []port
	up     bool
}

// port is one row of the agent's interface table.
type port struct {
	name                  string
	speed, sent, received float64
	discards, errors      float64
	up                    bool
	flaps, changed        float64
}

func newAgents(p *Plant) map[string]*agent {
	m := map[string]*agent{}
	for _, l := range p.fabric.order {
		if l.dir == "host" {
			continue
		}
		d := l.from.Device
		if m[d] == nil {
			// Agents do not tick together: each starts somewhere in its interval.
			m[d] = &agent{device: d, up: true, next: p.now.Add(time.Duration(p.rng.Int64N(int64(p.cfg.AgentCache))))}
			m[d].read(p)
		}
	}
	return m
}

// refresh reads the counters anew when the cache has run out, with a little jitter.
func (a *agent) refresh(p *Plant) {
	if p.now.Before(a.next) {
		return
	}
	a.next = p.now.Add(time.Duration(float64(p.cfg.AgentCache) * (0.95 + 0.1*p.rng.Float64())))
	a.read(p)
}

func (a *agent) read(p *Plant) {
	a.ports = a.ports[:0]
	for _, l := range p.fabric.order {
		if l.from.Device != a.device || l.dir == "host" {
			continue
		}
		back := p.fabric.reverse(l)
		a.ports = append(a.ports, port{
			name: l.from.Name, speed: l.capacity, up: l.up && back.up, flaps: l.flaps, changed: l.changed,
			sent: l.sentBytes, received: back.sentBytes, discards: l.lostBytes / onWire / segment, errors: back.errors,
		})
	}
}
