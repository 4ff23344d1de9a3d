// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/trainyard/trainyard/test/lab"
)

// Stream is a plain bulk TCP transfer, announced to nobody: storage traffic. Several to one NIC are an incast.
type Stream struct {
	From, To string
	Rail     int
	Port     int           // destination port; 0 = one of the lab's
	Spine    string        // that it is to hash onto; "" = chance
	Mbit     float64       // payload rate; 0 = as fast as it goes
	Duration time.Duration // ends by itself after that; default 10 min
}

// StreamRun is a running stream.
type StreamRun struct {
	Stream     Stream
	SourcePort int

	send, receive *worker
	mu            sync.Mutex
	samples       []StreamSample
	sent          sendLine
	errs          []error
}

// StreamSample is what the receiver had at one moment.
type StreamSample struct {
	At    time.Time
	Bytes uint64        // since the start
	Gap   time.Duration // longest wait since the sample before
	Error string        `json:",omitempty"`
}

type streamOrders struct {
	From, To netip.AddrPort
	Mbit     float64
	Duration time.Duration
}

type sendLine struct {
	Retransmits uint32
	Reset       bool
	Error       string
}

// StartStream starts receiver and sender.
func StartStream(ctx context.Context, l *lab.Lab, s Stream) (*StreamRun, error) {
	from, ok1 := l.Host(s.From)
	to, ok2 := l.Host(s.To)
	if !ok1 || !ok2 || s.Rail < 0 || s.Rail >= lab.Rails {
		return nil, fmt.Errorf("stream %s -> %s on rail %d: no such NICs", s.From, s.To, s.Rail)
	}
	if s.Port == 0 {
		s.Port = l.TakePorts(1)
	}
	if s.Duration == 0 {
		s.Duration = 10 * time.Minute
	}
	r := &StreamRun{Stream: s}
	if s.Spine != "" {
		var err error
		if r.SourcePort, err = l.PickSourcePort(ctx, "tcp", from.NICs[s.Rail].Addr, to.NICs[s.Rail].Addr, s.Port, s.Spine, nil); err != nil {
			return nil, err
		}
	}
	o := streamOrders{
		From: netip.AddrPortFrom(from.NICs[s.Rail].Addr, uint16(r.SourcePort)), To: netip.AddrPortFrom(to.NICs[s.Rail].Addr, uint16(s.Port)),
		Mbit: s.Mbit, Duration: s.Duration,
	}
	var err error
	if r.receive, err = startWorker(l, s.To, "stream-receive", o, r.takeSample); err != nil {
		return nil, err
	}
	if r.send, err = startWorker(l, s.From, "stream-send", o, r.takeSent); err != nil {
		r.receive.proc.Kill()
		return nil, err
	}
	return r, nil
}

func (r *StreamRun) takeSample(line []byte) {
	var s StreamSample
	err := json.Unmarshal(line, &s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && s.Error != "" {
		err = errors.New(s.Error)
	}
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	r.samples = append(r.samples, s)
}

func (r *StreamRun) takeSent(line []byte) {
	var s sendLine
	err := json.Unmarshal(line, &s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && s.Error != "" {
		err = errors.New(s.Error)
	}
	if err != nil {
		r.errs = append(r.errs, err)
	}
	r.sent = s
}

// StreamStats sums up a stream over a time.
type StreamStats struct {
	BitsPerSecond float64 // payload
	Bytes         uint64
	LongestGap    time.Duration
	Retransmits   uint32 // of the whole stream, known once it was stopped
	Resets        int
}

// Stats sums up what arrived in [since, until); zero times are no bounds.
func (r *StreamRun) Stats(since, until time.Time) StreamStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := StreamStats{Retransmits: r.sent.Retransmits}
	if r.sent.Reset {
		st.Resets = 1
	}
	var first, last *StreamSample
	for i := range r.samples {
		s := &r.samples[i]
		if s.At.Before(since) || !until.IsZero() && !s.At.Before(until) {
			continue
		}
		if first == nil {
			first = s
		} else {
			st.LongestGap = max(st.LongestGap, s.Gap)
		}
		last = s
	}
	if first != nil && last.At.After(first.At) {
		st.Bytes = last.Bytes - first.Bytes
		st.BitsPerSecond = float64(st.Bytes) * 8 / last.At.Sub(first.At).Seconds()
	}
	return st
}

// Stop ends the stream in good order and returns the statistics of the whole run.
func (r *StreamRun) Stop(ctx context.Context) (StreamStats, error) {
	defer r.Kill()
	r.send.closeOrders()
	for _, w := range []*worker{r.send, r.receive} {
		select {
		case <-w.lines:
		case <-time.After(10 * time.Second):
			return r.Stats(time.Time{}, time.Time{}), fmt.Errorf("stream %s -> %s does not end", r.Stream.From, r.Stream.To)
		case <-ctx.Done():
			return r.Stats(time.Time{}, time.Time{}), ctx.Err()
		}
	}
	r.mu.Lock()
	err := errors.Join(r.errs...)
	r.mu.Unlock()
	return r.Stats(time.Time{}, time.Time{}), err
}

// Kill ends both ends at once.
func (r *StreamRun) Kill() {
	for _, w := range []*worker{r.send, r.receive} {
		w.closeOrders()
		w.proc.Kill()
	}
}

// orphan is closed when whoever started this worker has no more to say.
func orphan(orders *json.Decoder) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		var rest json.RawMessage
		for orders.Decode(&rest) == nil {
			rest = nil
		}
		close(done)
	}()
	return done
}

func runStreamSend(orders *json.Decoder, tell func(any)) error {
	var o streamOrders
	if err := orders.Decode(&o); err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	stop := orphan(orders)
	end := time.Now().Add(o.Duration)
	c, err := dialRetry(o.From, o.To, time.Now().Add(10*time.Second))
	if err != nil {
		tell(sendLine{Error: err.Error()})
		return err
	}
	defer func() { _ = c.Close() }()
	piece := 32 << 10
	begin, sent := time.Now(), 0
	for time.Now().Before(end) {
		select {
		case <-stop:
			end = time.Now()
			continue
		default:
		}
		if err := c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)); err != nil { // look at stop now and then
			return err
		}
		n, err := c.Write(zeros[:piece])
		sent += n
		if err != nil {
			var timeout interface{ Timeout() bool }
			if errors.As(err, &timeout) && timeout.Timeout() {
				continue
			}
			tell(sendLine{Retransmits: retransmits(c), Reset: isReset(err), Error: err.Error()})
			return err
		}
		if o.Mbit > 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(float64(sent) * 8 / (o.Mbit * 1e6) * float64(time.Second)))))
		}
	}
	tell(sendLine{Retransmits: retransmits(c)})
	return nil
}

func runStreamReceive(orders *json.Decoder, tell func(any)) error {
	var o streamOrders
	if err := orders.Decode(&o); err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	ln, err := listen(o.To)
	if err != nil {
		tell(StreamSample{Error: err.Error()})
		return err
	}
	_ = ln.SetDeadline(time.Now().Add(15 * time.Second))
	c, err := ln.AcceptTCP()
	_ = ln.Close()
	if err != nil {
		tell(StreamSample{Error: err.Error()})
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetReadDeadline(time.Now().Add(o.Duration + 10*time.Second))
	buf := make([]byte, 64<<10)
	last := time.Now()
	s := StreamSample{At: last}
	tell(s)
	for {
		n, err := c.Read(buf)
		now := time.Now()
		s.Bytes += uint64(n)
		s.Gap = max(s.Gap, now.Sub(last))
		last = now
		if err != nil || now.Sub(s.At) >= 100*time.Millisecond {
			s.At = now
			tell(s)
			s.Gap = 0
		}
		if err != nil {
			return nil // EOF, or the sender tells what happened
		}
	}
}
