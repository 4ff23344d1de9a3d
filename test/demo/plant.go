// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/app"
	"github.com/trainyard/trainyard/actuator/config"
	"github.com/trainyard/trainyard/test/sim"
)

// simulated is the yard that needs no root: everything but the fabric, its exporters and its jobs is real.
type simulated struct {
	processes
	plant *sim.Plant
	stop  context.CancelFunc
}

// agentCache is how old the plant's switch counters get. A switch that streams its counters (gNMI) is like this; one that is
// polled over SNMP is often thirty times slower, and needs the longer windows of the production profile.
const agentCache = 100 * time.Millisecond

// bytesPerStep is what each rank of a job sends on each rail in one step.
const bytesPerStep = 4e9

// newSimulated starts a plant in real time.
func newSimulated(ctx context.Context, dir string) *simulated {
	ctx, stop := context.WithCancel(ctx)
	y := &simulated{plant: sim.New(sim.Config{AgentCache: agentCache}), stop: stop, processes: processes{dir: dir}}
	go y.plant.Run(ctx)
	return y
}

func (y *simulated) Fabric() string { return y.plant.Fabric() }

func (y *simulated) About() string {
	return "SIMULATED plant: 2 spines, 4 leaves, 8 nodes with 2 rails as numbers in this process; Prometheus, Alertmanager and the actuator are real"
}

// StartJob: 0.19 s a step alone, a tenth of it compute. Nearly everything a job does is on the wire, so two jobs that share
// one link cannot interleave. Both jobs' first rail from pod A to pod B goes over s1; all else is kept apart.
func (y *simulated) StartJob(_ context.Context, job string) error {
	j := sim.Job{ID: job, Nodes: []int{1, 2, 5, 6}, Compute: 20 * time.Millisecond, ComputeNoise: 0.02, BytesPerStep: bytesPerStep,
		Via: func(_, _, _ int) int { return 1 }}
	if job == jobB {
		j.Nodes = []int{3, 4, 7, 8}
		j.Via = func(rail, from, _ int) int {
			if rail == 0 && from == 4 {
				return 1
			}
			return 2
		}
	}
	return y.plant.StartJob(j)
}

func (y *simulated) Look(context.Context) (look, error) {
	l := look{At: y.plant.Now(), Steps: map[string][]step{}, Writes: y.plant.Writes()}
	for _, job := range []string{jobA, jobB} {
		r, err := y.plant.Job(job)
		if err != nil {
			continue // does not run yet
		}
		for _, s := range r.Steps {
			l.Steps[job] = append(l.Steps[job], step{s.At, s.Seconds})
		}
		l.Longest = max(l.Longest, r.Longest)
		l.Retransmits += r.Retransmits
	}
	l.StreamBytes, _, _ = y.plant.Stream(jobA, 0, 2) // no job, no bytes
	for _, r := range y.plant.Routes() {
		l.Routes = append(l.Routes, r.String())
	}
	return l, nil
}

func (y *simulated) ResetGaps() { y.plant.ResetGaps() }

func (y *simulated) Exporters(ctx context.Context) (nodes, fabric []string, err error) {
	t, err := y.plant.Serve(ctx)
	return []string{t.Nodes}, []string{t.Fabric}, err
}

// Actuator runs the real actuator in this process, since its driver writes into the plant's memory.
func (y *simulated) Actuator(ctx context.Context, c actuatorSetup) error {
	path, err := c.write(c.yaml(y.Fabric()))
	if err != nil {
		return err
	}
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(y.dir, "actuator.log"))
	if err != nil {
		return fmt.Errorf("open the actuator's log: %w", err)
	}
	a, err := app.New(cfg, app.Options{
		Driver:  func(act.Permit, *slog.Logger) (act.Driver, error) { return y.plant.Driver(), nil },
		Logger:  slog.New(slog.NewTextHandler(log, nil)),
		Version: "demo",
	})
	if err != nil {
		return errors.Join(err, log.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.Run(ctx); err != nil {
			fmt.Fprintln(log, err)
		}
		_ = log.Close()
	}()
	y.atEnd(func() { stop(); <-done })
	return nil
}

func (y *simulated) Client() *http.Client { return &http.Client{Timeout: 10 * time.Second} }

// Port returns a free one: other things run on this machine.
func (y *simulated) Port(int) (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (y *simulated) Listen(ctx context.Context) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
}

func (y *simulated) Output(ctx context.Context, argv ...string) (string, error) {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	return string(out), err
}

func (y *simulated) Close() error {
	y.stopAll()
	y.stop()
	return nil
}
