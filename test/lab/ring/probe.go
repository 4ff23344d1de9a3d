// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ring

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/trainyard/trainyard/test/lab"
)

// Probe sends small numbered UDP packets at an even pace and tells how long nothing came through.
type Probe struct {
	From, To         string
	Rail             int
	PacketsPerSecond int           // default 1000
	Spine            string        // that it is to hash onto; "" = chance
	Duration         time.Duration // ends by itself after that; default 5 min
}

// ProbeResult is what the receiver saw.
type ProbeResult struct {
	Sent, Received, Lost, Reordered uint64
	LongestGap                      time.Duration
	LongestGapAt                    time.Time // its end
	Error                           string    `json:",omitempty"`
}

// String is the result as one line.
func (r ProbeResult) String() string {
	return fmt.Sprintf("%d of %d received, %d lost, %d reordered, longest gap %.1f ms", r.Received, r.Sent, r.Lost, r.Reordered, float64(r.LongestGap)/1e6)
}

// ProbeRun is a running probe.
type ProbeRun struct {
	Probe         Probe
	send, receive *worker
	sent, got     ProbeResult
}

type probeOrders struct {
	From, To netip.AddrPort
	Every    time.Duration
	Duration time.Duration
}

// StartProbe starts receiver and sender and returns when packets arrive.
func StartProbe(ctx context.Context, l *lab.Lab, p Probe) (*ProbeRun, error) {
	from, ok1 := l.Host(p.From)
	to, ok2 := l.Host(p.To)
	if !ok1 || !ok2 || p.Rail < 0 || p.Rail >= lab.Rails {
		return nil, fmt.Errorf("probe %s -> %s on rail %d: no such NICs", p.From, p.To, p.Rail)
	}
	if p.PacketsPerSecond == 0 {
		p.PacketsPerSecond = 1000
	}
	if p.Duration == 0 {
		p.Duration = 5 * time.Minute
	}
	port, source := l.TakePorts(1), 0
	if p.Spine != "" {
		var err error
		if source, err = l.PickSourcePort(ctx, "udp", from.NICs[p.Rail].Addr, to.NICs[p.Rail].Addr, port, p.Spine, nil); err != nil {
			return nil, err
		}
	}
	o := probeOrders{
		From: netip.AddrPortFrom(from.NICs[p.Rail].Addr, uint16(source)), To: netip.AddrPortFrom(to.NICs[p.Rail].Addr, uint16(port)),
		Every: time.Second / time.Duration(p.PacketsPerSecond), Duration: p.Duration,
	}
	r := &ProbeRun{Probe: p}
	heard := make(chan struct{}, 2) // the receiver's two lines: listening, and the result
	var err error
	r.receive, err = startWorker(l, p.To, "probe-receive", o, func(line []byte) {
		if err := json.Unmarshal(line, &r.got); err != nil {
			r.got.Error = err.Error()
		}
		heard <- struct{}{}
	})
	if err != nil {
		return nil, err
	}
	select { // a packet to a port where nobody listens would count as lost
	case <-heard:
	case <-r.receive.lines:
	case <-ctx.Done():
		r.receive.proc.Kill()
		return nil, ctx.Err()
	}
	if r.send, err = startWorker(l, p.From, "probe-send", o, func(line []byte) { _ = json.Unmarshal(line, &r.sent) }); err != nil {
		r.receive.proc.Kill()
		return nil, err
	}
	return r, nil
}

// Stop ends the probe and returns its result.
func (r *ProbeRun) Stop(ctx context.Context) (ProbeResult, error) {
	defer r.Kill()
	r.send.closeOrders()
	for _, w := range []*worker{r.send, r.receive} {
		select {
		case <-w.lines:
		case <-time.After(10 * time.Second):
			return ProbeResult{}, fmt.Errorf("probe %s -> %s does not end", r.Probe.From, r.Probe.To)
		case <-ctx.Done():
			return ProbeResult{}, ctx.Err()
		}
		if w == r.send {
			time.Sleep(200 * time.Millisecond) // what waits in queues still counts
			r.receive.closeOrders()
		}
	}
	res := r.got
	res.Sent = r.sent.Sent
	if res.Error != "" || r.sent.Error != "" {
		return res, errors.New("probe: " + res.Error + r.sent.Error)
	}
	if res.Sent > res.Received {
		res.Lost = res.Sent - res.Received
	}
	return res, nil
}

// Kill ends both ends at once.
func (r *ProbeRun) Kill() {
	for _, w := range []*worker{r.send, r.receive} {
		w.closeOrders()
		w.proc.Kill()
	}
}

const probeSize = 64

func runProbeSend(orders *json.Decoder, tell func(any)) error {
	var o probeOrders
	if err := orders.Decode(&o); err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	stop := orphan(orders)
	c, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(o.From), net.UDPAddrFromAddrPort(o.To))
	if err != nil {
		tell(ProbeResult{Error: err.Error()})
		return err
	}
	defer func() { _ = c.Close() }()
	packet := make([]byte, probeSize)
	begin := time.Now()
	var n uint64
	for time.Since(begin) < o.Duration {
		select {
		case <-stop:
			tell(ProbeResult{Sent: n})
			return nil
		default:
		}
		n++
		binary.BigEndian.PutUint64(packet, n)
		_, _ = c.Write(packet) // a packet that the host itself cannot send (no route) is a lost packet
		time.Sleep(time.Until(begin.Add(time.Duration(n) * o.Every)))
	}
	tell(ProbeResult{Sent: n})
	return nil
}

func runProbeReceive(orders *json.Decoder, tell func(any)) error {
	var o probeOrders
	if err := orders.Decode(&o); err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(o.To))
	if err != nil {
		tell(ProbeResult{Error: err.Error()})
		return err
	}
	go func() {
		select {
		case <-orphan(orders):
		case <-time.After(o.Duration + 10*time.Second):
		}
		_ = c.Close()
	}()
	tell(ProbeResult{})
	var r ProbeResult
	var newest uint64
	var last time.Time
	packet := make([]byte, 2*probeSize)
	for {
		n, err := c.Read(packet)
		if err != nil {
			tell(r)
			return nil
		}
		if n != probeSize {
			continue
		}
		now := time.Now()
		seq := binary.BigEndian.Uint64(packet)
		r.Received++
		if seq < newest {
			r.Reordered++
			continue
		}
		if gap := now.Sub(last); newest > 0 && gap > r.LongestGap {
			r.LongestGap, r.LongestGapAt = gap, now
		}
		newest, last = seq, now
	}
}
