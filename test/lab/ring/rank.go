// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ring

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/trainyard/exporter/source/job"
)

// rankOrders is all that one rank is told before it begins.
type rankOrders struct {
	JobID, Gang, Node string
	Rank, Ranks       int
	Connections       int
	Rails             []railOrders
	Chunk             int // bytes that one channel sends in one phase
	Compute           time.Duration
	Duration          time.Duration // ends by itself after that
	MaxBytes          uint64        // sent, then it ends by itself
	ReportDir         string
}

type railOrders struct {
	Rail     int
	Addr     netip.Addr
	Next     netip.Addr // the next rank's NIC on this rail
	Channels []channelOrders
}

type channelOrders struct {
	Port       int // both for listening and to connect to
	SourcePort int // 0 = the kernel chooses
}

// knobs are orders that come later. Pointers: what is not said stays.
type knobs struct {
	Compute  *time.Duration `json:",omitempty"`
	ReadRate *int64         `json:",omitempty"` // bytes per second and channel; 0 = as fast as it comes
	StopAt   *uint64        `json:",omitempty"` // number of the first step that is not made
}

// rankLine is one line that a rank reports.
type rankLine struct {
	Ready  bool   `json:",omitempty"`
	Done   bool   `json:",omitempty"`
	Resets int    `json:",omitempty"`
	Error  string `json:",omitempty"`
	Step   *Step  `json:",omitempty"`
}

// stallAfter: a wait this long for bytes that are due is a stall. It is ten times the fabric's longest queue.
const stallAfter = 240 * time.Millisecond

// rank is one process of a job.
type rank struct {
	o        rankOrders
	channels []*channel
	compute  atomic.Int64
	readRate atomic.Int64
	stopAt   atomic.Uint64
	orphaned atomic.Bool // whoever started us closed our orders
	deadline time.Time

	mu     sync.Mutex
	report job.Report
}

// channel is one connection to the next rank and one from the previous: it carries its own share of the data through
// all phases by itself, as NCCL's channels do.
type channel struct {
	rail     int
	next     *net.TCPConn
	prev     *net.TCPConn
	sent     uint64
	retrans  uint32
	narrowed bool // its receive buffer was made small for slow reading

	gap    time.Duration // longest wait for a byte in this step
	stalls int
}

func runRank(orders *json.Decoder, tell func(any)) error {
	r := &rank{}
	if err := orders.Decode(&r.o); err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	r.compute.Store(int64(r.o.Compute))
	r.deadline = time.Now().Add(r.o.Duration)
	go r.listenToOrders(orders)
	if err := r.connect(); err != nil {
		tell(rankLine{Error: err.Error()})
		return err
	}
	r.report = job.Report{
		JobID: r.o.JobID, Gang: r.o.Gang, Collective: "ring", Ranks: r.o.Ranks, Connections: r.o.Connections, Rank: r.o.Rank, Node: r.o.Node,
		Started: time.Now(),
	}
	for _, rail := range r.o.Rails {
		r.report.Rails = append(r.report.Rails, job.Rail{Rail: rail.Rail, Address: rail.Addr})
	}
	if err := r.collective(1); err != nil { // all begin together: one ring of single bytes
		tell(rankLine{Error: err.Error()})
		return err
	}
	tell(rankLine{Ready: true})
	stopReports := r.writeReports()
	defer stopReports()
	for n := uint64(0); ; n++ {
		if r.over(n) {
			break
		}
		step, err := r.step(n)
		if err != nil {
			if r.over(n) || r.stopAt.Load() != 0 { // the others have stopped already
				break
			}
			line := rankLine{Error: fmt.Sprintf("step %d: %v", n, err)}
			if isReset(err) {
				line.Resets = 1
			}
			tell(line)
			return err
		}
		tell(rankLine{Step: &step})
	}
	r.hangUp()
	tell(rankLine{Done: true})
	return nil
}

func (r *rank) over(n uint64) bool {
	stop := r.stopAt.Load()
	var sent uint64
	for _, c := range r.channels {
		sent += c.sent
	}
	return stop != 0 && n >= stop || r.orphaned.Load() || !time.Now().Before(r.deadline) || r.o.MaxBytes != 0 && sent >= r.o.MaxBytes
}

func (r *rank) listenToOrders(orders *json.Decoder) {
	for {
		var k knobs
		if err := orders.Decode(&k); err != nil {
			r.orphaned.Store(true)
			return
		}
		if k.Compute != nil {
			r.compute.Store(int64(*k.Compute))
		}
		if k.ReadRate != nil {
			r.readRate.Store(*k.ReadRate)
		}
		if k.StopAt != nil {
			r.stopAt.Store(*k.StopAt)
		}
	}
}

// connect listens for the previous rank and calls the next one, on all channels at once.
func (r *rank) connect() error {
	var g errgroup.Group
	limit := time.Now().Add(20 * time.Second)
	for _, rail := range r.o.Rails {
		for _, o := range rail.Channels {
			c := &channel{rail: rail.Rail}
			r.channels = append(r.channels, c)
			ln, err := listen(netip.AddrPortFrom(rail.Addr, uint16(o.Port)))
			if err != nil {
				return err
			}
			g.Go(func() error {
				defer func() { _ = ln.Close() }()
				if err := ln.SetDeadline(limit); err != nil {
					return err
				}
				conn, err := ln.AcceptTCP()
				if err != nil {
					return fmt.Errorf("wait for the previous rank on rail %d: %w", rail.Rail, err)
				}
				c.prev = conn
				return nil
			})
			g.Go(func() error {
				var err error
				c.next, err = dialRetry(netip.AddrPortFrom(rail.Addr, uint16(o.SourcePort)), netip.AddrPortFrom(rail.Next, uint16(o.Port)), limit)
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, c := range r.channels {
		if err := errors.Join(c.next.SetDeadline(r.deadline.Add(5*time.Second)), c.prev.SetDeadline(r.deadline.Add(5*time.Second))); err != nil {
			return err
		}
	}
	return nil
}

// step computes, then reduces over the ring.
func (r *rank) step(n uint64) (Step, error) {
	begin := time.Now()
	time.Sleep(time.Duration(r.compute.Load()))
	computed := time.Now()
	if err := r.collective(r.o.Chunk); err != nil {
		return Step{}, err
	}
	end := time.Now()
	s := Step{Rank: r.o.Rank, N: n, End: end, Compute: computed.Sub(begin), Collective: end.Sub(computed), Total: end.Sub(begin)}
	for _, c := range r.channels {
		s.LongestGap = max(s.LongestGap, c.gap)
		s.Stalls += c.stalls
		again := retransmits(c.next)
		s.Retransmits += again - c.retrans
		c.retrans = again
		s.Bytes += uint64(r.o.Chunk * 2 * (r.o.Ranks - 1))
	}
	r.account(s)
	return s, nil
}

// collective runs reduce-scatter and all-gather: 2(N-1) phases in each of which every channel sends one chunk to the
// next rank and takes one from the previous. A chunk may be sent on only once the one before it has come.
func (r *rank) collective(chunk int) error {
	var g errgroup.Group
	for _, c := range r.channels {
		g.Go(func() error {
			c.gap, c.stalls = 0, 0
			for range 2 * (r.o.Ranks - 1) {
				sent := make(chan error, 1)
				go func() { sent <- c.send(chunk) }()
				if err := c.receive(chunk, r.readRate.Load()); err != nil {
					return fmt.Errorf("receive on rail %d: %w", c.rail, err)
				}
				if err := <-sent; err != nil {
					return fmt.Errorf("send on rail %d: %w", c.rail, err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

var zeros = make([]byte, 1<<20) // what a gradient is made of does not matter here

func (c *channel) send(n int) error {
	for n > 0 {
		k, err := c.next.Write(zeros[:min(n, len(zeros))])
		c.sent += uint64(k)
		n -= k
		if err != nil {
			return err
		}
	}
	return nil
}

// receive takes n bytes. With a rate it reads little by little from a small buffer, so that the sender soon meets a
// closed window: what a process does that is too busy to read.
func (c *channel) receive(n int, rate int64) error {
	buf := make([]byte, 64<<10)
	if rate > 0 {
		buf = buf[:8<<10]
	}
	if (rate > 0) != c.narrowed {
		c.narrowed = rate > 0
		size := 0
		if c.narrowed {
			size = 16 << 10
		}
		if err := readBuffer(c.prev, size); err != nil {
			return err
		}
	}
	for n > 0 {
		waited := time.Now()
		k, err := c.prev.Read(buf[:min(n, len(buf))])
		n -= k
		gap := time.Since(waited)
		c.gap = max(c.gap, gap)
		if gap >= stallAfter {
			c.stalls++
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		if rate > 0 {
			time.Sleep(time.Duration(k) * time.Second / time.Duration(rate))
		}
	}
	return nil
}

// hangUp ends the connections in good order: what is under way arrives, and nobody sees a reset.
func (r *rank) hangUp() {
	limit := time.Now().Add(time.Second)
	for _, c := range r.channels {
		_ = c.next.CloseWrite()
	}
	for _, c := range r.channels {
		_ = c.prev.SetReadDeadline(limit)
		_, _ = io.Copy(io.Discard, c.prev)
		_, _ = c.prev.Close(), c.next.Close()
	}
}

// account adds a step to the report.
func (r *rank) account(s Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Steps++
	r.report.StepSeconds += s.Total.Seconds()
	r.report.ComputeSeconds += s.Compute.Seconds()
	r.report.CollectiveSeconds += s.Collective.Seconds()
	for i := range r.report.Rails {
		r.report.Rails[i].Bytes = 0
		for _, c := range r.channels {
			if c.rail == r.report.Rails[i].Rail {
				r.report.Rails[i].Bytes += c.sent
			}
		}
	}
}

// writeReports keeps the job report fresh, also while a step takes long: the process is alive. The returned function
// ends it and takes the report away.
func (r *rank) writeReports() func() {
	if r.o.ReportDir == "" {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			r.mu.Lock()
			rep := r.report
			rep.Rails = append([]job.Rail(nil), rep.Rails...)
			r.mu.Unlock()
			rep.Written = time.Now()
			if err := job.Write(r.o.ReportDir, rep); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		if err := job.Remove(r.o.ReportDir, r.report); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}
