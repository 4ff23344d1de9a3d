// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/trainyard/exporter/catalog/ident"
	"github.com/trainyard/trainyard/test/lab"
)

// Once all streams of a case run, TCP gets warmup to find its shares; then measure counts. slack is how late a stream
// may begin.
const (
	warmup  = 2 * time.Second
	measure = 5 * time.Second
	slack   = 4 * time.Second
)

// summary is a list of relative errors.
type summary []float64

func (s summary) mean() float64 {
	if len(s) == 0 {
		return 0
	}
	sum := 0.0
	for _, e := range s {
		sum += math.Abs(e)
	}
	return sum / float64(len(s))
}

func (s summary) worst() float64 {
	worst := 0.0
	for _, e := range s {
		worst = max(worst, math.Abs(e))
	}
	return worst
}

// result holds the errors of all cases on one kind of link.
type result struct {
	open, full, streams summary
	version             string
}

// bench runs all cases on one lab.
func bench(ctx context.Context, fair bool, cases []testCase) (res result, err error) {
	kind := "drop-tail links"
	if fair {
		kind = "links with one fair queue per stream (HTB)"
	}
	fmt.Printf("\n== %s ==\n", kind)
	l, err := lab.Up(ctx, lab.Config{Fair: fair, FabricMbit: fabricMbit, HostMbit: hostMbit, NoAgents: true})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, c := range cases {
		if err := runCase(ctx, l, c, fair, &res); err != nil {
			return res, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return res, nil
}

func runCase(ctx context.Context, l *lab.Lab, c testCase, fair bool, res *result) (err error) {
	capacity := map[ident.Port]float64{} // Mbit/s on the wire
	for _, cable := range l.Cables {
		if cable.Fabric {
			for _, p := range []ident.Port{{Fabric: "lab", Device: cable.A, Name: cable.APort}, {Fabric: "lab", Device: cable.B, Name: cable.BPort}} {
				capacity[p] = fabricMbit
			}
		}
	}
	for port, mbit := range c.slow {
		place, name, _ := strings.Cut(port, ":")
		if err := l.SetRate(ctx, place, name, mbit); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.SetRate(ctx, place, name, fabricMbit)) }()
		capacity[ident.Port{Fabric: "lab", Device: place, Name: name}] = float64(mbit)
	}
	flows, err := place(ctx, l, c)
	if err != nil {
		return err
	}
	f, err := foresee(flows, capacity)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s", c.name, strings.Join(names(c.streams), " "))
	for _, port := range slices.Sorted(maps.Keys(c.slow)) {
		fmt.Printf(", %s at %d", port, c.slow[port])
	}
	fmt.Println()
	for attempt := 1; ; attempt++ {
		m, err := play(ctx, l, flows, f.loads)
		if err != nil {
			return err
		}
		// Streams want all they can get. If links that ought to be full are not, and the processors had no time left, then
		// they were the bottleneck, and the measurement says nothing about the fabric.
		if starved(capacity, f.loads, m) && (fair || attempt < 3) {
			if attempt == 3 {
				return errors.New("this machine has no processor time left to fill the links; run it when it is less busy")
			}
			fmt.Println("   this machine was too busy to fill the links: measured again")
			continue
		}
		res.version = m.version
		report(capacity, f, m, res)
		return nil
	}
}

func starved(capacity, forecast map[ident.Port]float64, m measurement) bool {
	if m.late {
		return true
	}
	for p, mbit := range forecast {
		if mbit >= full*capacity[p] && m.loads[p] < full*mbit && m.idle < 0.05 {
			return true
		}
	}
	return false
}

// flow is a stream with the ports and paths that it will have.
type flow struct {
	stream
	sport, dport int
	acks         []ident.Port // the links that its acknowledgements take
}

// place chooses source ports, so that each stream takes its spine, and finds the way back of its acknowledgements.
func place(ctx context.Context, l *lab.Lab, c testCase) ([]flow, error) {
	var flows []flow
	for i, s := range c.streams {
		f := flow{stream: s, dport: lab.FairPorts + i} // one class each on fair links
		var err error
		if f.sport, err = l.PickSourcePort(ctx, "tcp", s.from.Addr, s.to.Addr, f.dport, s.spine, nil); err != nil {
			return nil, err
		}
		back, err := l.Uplink(ctx, "tcp", s.to.Addr, f.dport, s.from.Addr, f.sport)
		if err != nil {
			return nil, err
		}
		f.acks = stream{from: s.to, to: s.from, spine: "s" + strings.TrimPrefix(back, "sp")}.links()
		flows = append(flows, f)
	}
	return flows, nil
}

// measurement is what happened, in Mbit/s on the wire.
type measurement struct {
	loads   map[ident.Port]float64 // kernel counters, while all streams ran
	rates   []float64              // iperf3, over the whole life of each stream
	version string
	idle    float64 // share of processor time that was left
	late    bool    // not all streams had begun in time
}

// play runs the streams.
func play(ctx context.Context, l *lab.Lab, flows []flow, forecast map[ident.Port]float64) (measurement, error) {
	ports := slices.Collect(maps.Keys(forecast))
	g, ctx := errgroup.WithContext(ctx)
	m := measurement{rates: make([]float64, len(flows)), loads: map[ident.Port]float64{}}
	versions := make([]string, len(flows))
	for i, f := range flows {
		g.Go(func() error {
			r, err := l.Iperf3(ctx, lab.Iperf{From: f.from.Addr, To: f.to.Addr, Port: f.dport, SourcePort: f.sport, Duration: warmup + measure + slack})
			m.rates[i], versions[i] = r.BitsPerSecond/1e6/l.Config().PayloadShare(), r.Version
			return err
		})
	}
	g.Go(func() error {
		var err error
		if m.late, err = awaitStreams(ctx, l, forecast); err != nil {
			return err
		}
		if err := sleep(ctx, warmup); err != nil {
			return err
		}
		busy := processorTime()
		before, err := counters(l, ports)
		if err != nil {
			return err
		}
		begin := time.Now()
		if err := sleep(ctx, measure); err != nil {
			return err
		}
		after, err := counters(l, ports)
		if err != nil {
			return err
		}
		took := time.Since(begin).Seconds()
		m.idle = busy.idleSince()
		for p := range after {
			m.loads[p] = float64(after[p]-before[p]) * 8 / 1e6 / took
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return m, err
	}
	m.version = versions[0]
	return m, nil
}

// awaitStreams waits until every link carries something like its streams, and tells if that took too long.
func awaitStreams(ctx context.Context, l *lab.Lab, forecast map[ident.Port]float64) (late bool, err error) {
	const step = 250 * time.Millisecond
	ports := slices.Collect(maps.Keys(forecast))
	for begin := time.Now(); time.Since(begin) < slack; {
		before, err := counters(l, ports)
		if err != nil {
			return false, err
		}
		if err := sleep(ctx, step); err != nil {
			return false, err
		}
		after, err := counters(l, ports)
		if err != nil {
			return false, err
		}
		all := true
		for p, mbit := range forecast {
			all = all && float64(after[p]-before[p])*8/1e6/step.Seconds() > mbit/10
		}
		if all {
			return false, nil
		}
	}
	return true, nil
}

func counters(l *lab.Lab, ports []ident.Port) (map[ident.Port]uint64, error) {
	out := map[ident.Port]uint64{}
	for _, p := range ports {
		n, err := l.PortCounters(p.Device, p.Name)
		if err != nil {
			return nil, err
		}
		out[p] = n.TxBytes
	}
	return out, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// full is the share of its speed above which a link counts as full: its load says nothing about the model then.
const full = 0.96

func report(capacity map[ident.Port]float64, f foresight, m measurement, res *result) {
	for _, p := range slices.SortedFunc(maps.Keys(f.loads), ident.Port.Compare) {
		e := m.loads[p]/f.loads[p] - 1
		kind := "    "
		if f.loads[p] >= full*capacity[p] {
			kind = "full"
			res.full = append(res.full, e)
		} else {
			res.open = append(res.open, e)
		}
		fmt.Printf("   %-10s %s  forecast %6.1f  measured %6.1f Mbit/s  %+5.1f %%\n", p.Device+":"+p.Name, kind, f.loads[p], m.loads[p], 100*e)
	}
	for i := range f.rates {
		res.streams = append(res.streams, m.rates[i]/f.rates[i]-1)
	}
}

func names(ss []stream) []string {
	var out []string
	for _, s := range ss {
		out = append(out, s.String())
	}
	return out
}
