// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/trainyard/trainyard/test/lab"
)

// Spec describes a training job.
type Spec struct {
	JobID       string
	Gang        string   // default JobID
	Hosts       []string // in rank order; rank i sends to rank i+1 modulo N on each rail
	Rails       []int    // default both
	Connections int      // per neighbour and rail; default 1

	// Bytes is the gradient that each rank reduces per step, over all rails. Default: as much as keeps a NIC busy for
	// 120 ms, so that an uncongested step takes about 150 ms.
	Bytes    int64
	Compute  time.Duration // per step; default 20 ms
	Duration time.Duration // the job ends by itself after that; default 10 min
	MaxBytes uint64        // each rank ends after sending so much; default 64 GiB

	// Spine chooses the spine that a connection is to hash onto, by its source port; "" or nil leaves it to chance.
	// It is asked only for connections that cross the spines.
	Spine func(rank, rail, conn int) string

	// ReportDir is where the rank on a host writes its job report; nil = no reports.
	ReportDir func(host string) string
}

// Step is one step of one rank. Durations are in nanoseconds where it is written as JSON.
type Step struct {
	Rank        int
	N           uint64
	End         time.Time
	Total       time.Duration
	Compute     time.Duration
	Collective  time.Duration
	LongestGap  time.Duration // longest wait for a byte that was due
	Stalls      int           // waits of 240 ms and more
	Retransmits uint32
	Bytes       uint64 // payload sent
}

// Job is a running ring.
type Job struct {
	Spec  Spec
	Ports []int // destination ports of its connections, rail by rail

	workers []*worker
	mu      sync.Mutex
	steps   []Step
	ready   int
	done    int
	resets  int
	errs    []error
	changed chan struct{} // closed and replaced at each change
}

// Start starts the ranks and returns when all are connected and the first step has begun.
func Start(ctx context.Context, l *lab.Lab, spec Spec) (*Job, error) {
	spec, err := spec.withDefaults(l)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", spec.JobID, err)
	}
	j := &Job{Spec: spec, changed: make(chan struct{})}
	first := l.TakePorts(len(spec.Rails) * spec.Connections)
	for i := range len(spec.Rails) * spec.Connections {
		j.Ports = append(j.Ports, first+i)
	}
	for rank := range spec.Hosts {
		o, err := j.orders(ctx, l, rank)
		if err == nil {
			var w *worker
			if w, err = startWorker(l, spec.Hosts[rank], "rank", o, func(line []byte) { j.take(rank, line) }); err == nil {
				j.workers = append(j.workers, w)
				continue
			}
		}
		j.Kill()
		return nil, fmt.Errorf("job %s: rank %d: %w", spec.JobID, rank, err)
	}
	err = j.wait(ctx, func() bool { return j.ready == len(spec.Hosts) })
	if err != nil {
		j.Kill()
		return nil, fmt.Errorf("job %s: start: %w", spec.JobID, err)
	}
	return j, nil
}

func (s Spec) withDefaults(l *lab.Lab) (Spec, error) {
	if s.Gang == "" {
		s.Gang = s.JobID
	}
	if len(s.Rails) == 0 {
		for r := range lab.Rails {
			s.Rails = append(s.Rails, r)
		}
	}
	if s.Connections == 0 {
		s.Connections = 1
	}
	if s.Compute == 0 {
		s.Compute = 20 * time.Millisecond
	}
	if s.Duration == 0 {
		s.Duration = 10 * time.Minute
	}
	if s.MaxBytes == 0 {
		s.MaxBytes = 64 << 30
	}
	n := len(s.Hosts)
	if s.JobID == "" || n < 2 {
		return s, errors.New("want an id and at least two hosts")
	}
	for _, h := range s.Hosts {
		if _, ok := l.Host(h); !ok {
			return s, fmt.Errorf("no host %q in the lab", h)
		}
	}
	if s.Bytes == 0 {
		cfg := l.Config()
		payload := float64(min(cfg.FabricMbit, cfg.HostMbit)) * 1e6 / 8 * cfg.PayloadShare()
		s.Bytes = int64(0.120 * payload * float64(len(s.Rails)) * float64(n) / float64(2*(n-1)))
	}
	return s, nil
}

// orders works out what one rank is told.
func (j *Job) orders(ctx context.Context, l *lab.Lab, rank int) (rankOrders, error) {
	s := j.Spec
	n := len(s.Hosts)
	host, _ := l.Host(s.Hosts[rank])
	next, _ := l.Host(s.Hosts[(rank+1)%n])
	o := rankOrders{
		JobID: s.JobID, Gang: s.Gang, Node: host.Name, Rank: rank, Ranks: n, Connections: s.Connections, Compute: s.Compute,
		Duration: s.Duration, MaxBytes: s.MaxBytes, Chunk: max(1, int(s.Bytes)/n/len(s.Rails)/s.Connections),
	}
	if s.ReportDir != nil {
		o.ReportDir = s.ReportDir(host.Name)
	}
	for i, rail := range s.Rails {
		ro := railOrders{Rail: rail, Addr: host.NICs[rail].Addr, Next: next.NICs[rail].Addr}
		taken := map[int]bool{}
		for c := range s.Connections {
			co := channelOrders{Port: j.Ports[i*s.Connections+c]}
			if s.Spine != nil && host.NICs[rail].Leaf != next.NICs[rail].Leaf {
				if spine := s.Spine(rank, rail, c); spine != "" {
					var err error
					if co.SourcePort, err = l.PickSourcePort(ctx, "tcp", ro.Addr, ro.Next, co.Port, spine, taken); err != nil {
						return o, err
					}
					taken[co.SourcePort] = true
				}
			}
			ro.Channels = append(ro.Channels, co)
		}
		o.Rails = append(o.Rails, ro)
	}
	return o, nil
}

// take stores one line of a rank.
func (j *Job) take(rank int, line []byte) {
	var r rankLine
	err := json.Unmarshal(line, &r)
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err != nil:
		j.errs = append(j.errs, fmt.Errorf("rank %d said %.80q", rank, line))
	case r.Error != "":
		j.errs = append(j.errs, fmt.Errorf("rank %d: %s", rank, r.Error))
		j.resets += r.Resets
	case r.Step != nil:
		j.steps = append(j.steps, *r.Step)
	case r.Ready:
		j.ready++
	case r.Done:
		j.done++
	}
	close(j.changed)
	j.changed = make(chan struct{})
}

// wait blocks until ok, asked under the lock after each change, is true.
func (j *Job) wait(ctx context.Context, ok func() bool) error {
	for {
		j.mu.Lock()
		good, changed, err := ok(), j.changed, errors.Join(j.errs...)
		j.mu.Unlock()
		if good {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-j.anyDead():
			if err := j.post(ok); err != nil {
				return err
			}
			if err := sleep(ctx, 10*time.Millisecond); err != nil { // one rank is a moment before the others
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// anyDead is closed once the first worker's output has ended.
func (j *Job) anyDead() <-chan struct{} {
	for _, w := range j.workers {
		select {
		case <-w.lines:
			return w.lines
		default:
		}
	}
	return nil
}

// post tells of a worker that ended without a word, and of a job that ended before ok came true.
func (j *Job) post(ok func() bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if ok() {
		return nil
	}
	ended := 0
	for _, w := range j.workers {
		select {
		case <-w.lines:
			ended++
		default:
		}
	}
	if ended > j.done {
		return errors.Join(append(slices.Clone(j.errs), fmt.Errorf("job %s: %d ranks ended before their time", j.Spec.JobID, ended-j.done))...)
	}
	if ended < len(j.workers) {
		return nil
	}
	return fmt.Errorf("job %s has ended", j.Spec.JobID)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// WaitSteps waits until every rank has made n more steps.
func (j *Job) WaitSteps(ctx context.Context, n int) error {
	j.mu.Lock()
	from := len(j.steps)
	j.mu.Unlock()
	return j.wait(ctx, func() bool {
		made := map[int]int{}
		for _, s := range j.steps[from:] {
			made[s.Rank]++
		}
		for r := range j.Spec.Hosts {
			if made[r] < n {
				return false
			}
		}
		return true
	})
}

// Steps returns the steps of all ranks that ended in [since, until); zero times are no bounds.
func (j *Job) Steps(since, until time.Time) []Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []Step
	for _, s := range j.steps {
		if !s.End.Before(since) && (until.IsZero() || s.End.Before(until)) {
			out = append(out, s)
		}
	}
	return out
}

// SetCompute changes how long one rank computes: a straggler.
func (j *Job) SetCompute(rank int, d time.Duration) error {
	return j.workers[rank].order(knobs{Compute: &d})
}

// SetReadRate makes one rank read at most so many bytes per second and channel: a slow receiver. 0 ends it.
func (j *Job) SetReadRate(rank int, bytesPerSecond int64) error {
	return j.workers[rank].order(knobs{ReadRate: &bytesPerSecond})
}

// Stop lets all ranks end after the same step, without a reset, and returns the statistics of the whole run.
func (j *Job) Stop(ctx context.Context) (Stats, error) {
	j.mu.Lock()
	var last uint64
	for _, s := range j.steps {
		last = max(last, s.N)
	}
	j.mu.Unlock()
	// Ranks are at most one step apart, so this one is ahead of all of them.
	at := last + 3
	for _, w := range j.workers {
		_ = w.order(knobs{StopAt: &at}) // one that is gone shows below
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err := j.wait(ctx, func() bool { return j.done == len(j.workers) })
	j.Kill()
	return j.Stats(time.Time{}, time.Time{}), err
}

// Kill ends the job at once, as a crash does.
func (j *Job) Kill() {
	for _, w := range j.workers {
		w.closeOrders()
		w.proc.Kill()
	}
}
