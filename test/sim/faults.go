// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// port finds the link that a switch or node transmits on.
func (p *Plant) link(device, port string) (*link, error) {
	l, ok := p.fabric.links[ident.Port{Fabric: p.cfg.Fabric, Device: device, Name: port}]
	if !ok {
		return nil, fmt.Errorf("plant %s has no port %s:%s", p.cfg.Fabric, device, port)
	}
	return l, nil
}

// SetCable takes the cable at a port down or up. Data is lost at once; routing notices later, as BGP does.
func (p *Plant) SetCable(device, port string, up bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, err := p.link(device, port)
	if err != nil || l.up == up {
		return err
	}
	for _, side := range []*link{l, p.fabric.reverse(l)} {
		side.up = up
		side.flaps++
		side.changed = p.age()
		p.router.later(p.now.Add(convergence), func() { p.router.known[side] = up })
	}
	return nil
}

// SetErrors makes a share of the frames on the link arrive damaged: a sick optic.
func (p *Plant) SetErrors(device, port string, share float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, err := p.link(device, port)
	if err == nil {
		l.errorRate = share
	}
	return err
}

// SetSpeed changes what a port can send, in bytes a second: lost capacity.
func (p *Plant) SetSpeed(device, port string, bytesPerSecond float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, err := p.link(device, port)
	if err == nil {
		l.capacity = bytesPerSecond
	}
	return err
}

// SlowReceiver lets a node take less than line rate on one rail: its NIC sends pauses. 0 heals it.
func (p *Plant) SlowReceiver(node, rail int, bytesPerSecond float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if node < 1 || node > nodes || rail < 0 || rail >= rails {
		return fmt.Errorf("plant %s has no rail %d on n%d", p.cfg.Fabric, rail, node)
	}
	n := p.fabric.byPos[node][rail]
	delete(p.slow, n)
	if bytesPerSecond > 0 {
		p.slow[n] = bytesPerSecond
	}
	return nil
}

// Straggle makes one rank of a running job compute factor times as long; 1 heals it.
func (p *Plant) Straggle(job string, rank int, factor float64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.ring(job)
	if r == nil || rank < 0 || rank >= len(r.ranks) {
		return fmt.Errorf("plant %s runs no rank %d of job %q", p.cfg.Fabric, rank, job)
	}
	r.SlowRank, r.SlowFactor = rank, factor
	return nil
}

// StartTraffic sends from node to node on a rail at a given payload rate over a spine (0 = as it hashes); no job report
// mentions it: storage traffic, or with several senders to one node an incast.
func (p *Plant) StartTraffic(name string, from, to, rail int, bytesPerSecond float64, spine int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range []int{from, to} {
		if n < 1 || n > nodes || rail < 0 || rail >= rails {
			return fmt.Errorf("plant %s has no rail %d on n%d", p.cfg.Fabric, rail, n)
		}
	}
	w, err := p.connect(p.fabric.byPos[from][rail], p.fabric.byPos[to][rail], spine)
	if err != nil {
		return fmt.Errorf("start traffic %s: %w", name, err)
	}
	w.limit = bytesPerSecond
	p.others = append(p.others, &stream{name: name, flow: w})
	return nil
}

// StopTraffic ends all traffic of that name.
func (p *Plant) StopTraffic(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.others = slices.DeleteFunc(p.others, func(s *stream) bool {
		if s.name == name {
			p.drop(s.flow)
		}
		return s.name == name
	})
}

// MuteAgent has the agent of a switch answer, or not.
func (p *Plant) MuteAgent(device string, mute bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.agents[device]
	if !ok {
		return fmt.Errorf("plant %s has no switch %s", p.cfg.Fabric, device)
	}
	a.up = !mute
	return nil
}

func (p *Plant) ring(id string) *ring {
	for _, r := range p.jobs {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// Flap takes the cable at a port down and up n times, each state for the given time of the plant's clock.
func (p *Plant) Flap(device, port string, n int, each time.Duration) error {
	for range n {
		for _, up := range []bool{false, true} {
			if err := p.SetCable(device, port, up); err != nil {
				return err
			}
			p.Advance(each)
		}
	}
	return nil
}
