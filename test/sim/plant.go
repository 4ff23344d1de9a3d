// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Config says how the plant is built. The zero value of a field means its default.
type Config struct {
	Fabric         string        // default "plant"
	Seed           uint64        // of hash seeds and noise; 0 = drawn at random, hidden from everybody
	BytesPerSecond float64       // speed of every port; default 25e9 (200 Gbit/s)
	AgentCache     time.Duration // how old switch counters may get; default 500 ms
	Noise          float64       // of sending rates; default 0.03
	Start          time.Time     // of the plant's clock; default now
}

// tick is the time step of the fluid model, well below a round trip.
const tick = 2 * time.Millisecond

// Plant is one simulated fabric with its jobs. All methods may be called from several goroutines.
type Plant struct {
	mu     sync.Mutex
	cfg    Config
	now    time.Time
	fabric *fabric
	router *router
	rng    *rand.Rand
	jobs   []*ring
	flows  []*flow
	others []*stream
	slow   map[*nic]float64 // receivers that take less than line rate, in bytes a second

	routed  int // epoch of routing that the flows' paths were computed with
	agents  map[string]*agent
	retrans [nodes + 1]float64
	ecn     [nodes + 1]float64
	zeroWin [nodes + 1]float64
	writes  int // route writes that reached a switch
}

// stream is traffic that belongs to no job: storage, or a competitor.
type stream struct {
	name string
	flow *flow
}

// New builds a plant with an idle fabric.
func New(cfg Config) *Plant {
	if cfg.Fabric == "" {
		cfg.Fabric = "plant"
	}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	if cfg.BytesPerSecond == 0 {
		cfg.BytesPerSecond = 25e9
	}
	if cfg.AgentCache == 0 {
		cfg.AgentCache = 500 * time.Millisecond
	}
	if cfg.Noise == 0 {
		cfg.Noise = 0.03
	}
	if cfg.Start.IsZero() {
		cfg.Start = time.Now()
	}
	p := &Plant{cfg: cfg, now: cfg.Start, rng: seeded(cfg.Seed), slow: map[*nic]float64{}}
	p.fabric = build(cfg.Fabric, cfg.BytesPerSecond)
	p.router = newRouter(p.fabric, cfg.Seed)
	p.agents = newAgents(p)
	return p
}

// Fabric returns the name of the fabric.
func (p *Plant) Fabric() string { return p.cfg.Fabric }

// Now is the plant's clock.
func (p *Plant) Now() time.Time { return locked(p, func() time.Time { return p.now }) }

// Run moves the plant in real time until the context ends.
func (p *Plant) Run(ctx context.Context) {
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	began, base := time.Now(), p.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			p.Advance(base.Add(time.Since(began)).Sub(p.Now()))
		}
	}
}

// Advance moves the plant by d, rounded down to whole ticks.
func (p *Plant) Advance(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; d >= tick; d -= tick {
		p.step()
	}
}

// step is one tick: routing learns, jobs hand over data, data moves link by link, senders react.
func (p *Plant) step() {
	p.now = p.now.Add(tick)
	p.router.learn(p.now)
	if p.routed != p.router.epoch {
		p.routed = p.router.epoch
		for _, w := range p.flows {
			p.steer(w)
		}
	}
	for _, r := range p.jobs {
		p.drive(r)
	}
	for _, s := range p.others {
		s.flow.backlog = s.flow.limit * onWire * tick.Seconds() * 4 // always a little more than the sender may take
	}
	p.move()
	for _, w := range p.flows {
		w.control(p.now, p.cfg.Noise, p.rng)
	}
	for _, a := range p.agents {
		a.refresh(p)
	}
}

// StartJob starts a training job.
func (p *Plant) StartJob(j Job) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.jobs, func(r *ring) bool { return r.ID == j.ID }) {
		return fmt.Errorf("start job %s: it runs already", j.ID)
	}
	r, err := p.launch(j)
	if err == nil {
		p.jobs = append(p.jobs, r)
	}
	return err
}

// StopJob ends a job; its series disappear.
func (p *Plant) StopJob(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = slices.DeleteFunc(p.jobs, func(r *ring) bool {
		if r.ID != id {
			return false
		}
		for _, k := range r.ranks {
			for rail := range rails {
				for _, w := range k.out[rail] {
					p.drop(w)
				}
			}
		}
		return true
	})
}

func (p *Plant) drop(w *flow) {
	p.flows = slices.DeleteFunc(p.flows, func(v *flow) bool { return v == w })
}

// locked reads something under the plant's lock.
func locked[T any](p *Plant, read func() T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return read()
}
