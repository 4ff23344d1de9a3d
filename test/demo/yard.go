// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/http"
	"time"
)

// yard is the fabric that a run takes place on: the lab of network namespaces, or the simulated plant. The control side
// is the same real one on both.
type yard interface {
	// Fabric is its name in labels and configuration.
	Fabric() string
	// About says in one line what it is.
	About() string
	// StartJob starts job-a or job-b. Their flows of one direction on one rail then meet on one uplink.
	StartJob(ctx context.Context, job string) error
	// Look reads what an onlooker can see who stands beside the control side: jobs, streams, kernel or plant counters, routes.
	Look(ctx context.Context) (look, error)
	// ResetGaps forgets the longest gap of all streams.
	ResetGaps()
	// Exporters starts what Prometheus scrapes and returns where: host:port of node and fabric role.
	Exporters(ctx context.Context) (nodes, fabric []string, err error)
	// Run starts a program of the control side where the control side lives, its output in a file of that name.
	Run(ctx context.Context, name string, argv ...string) error
	// Actuator starts the actuator there.
	Actuator(ctx context.Context, c actuatorSetup) error
	// Client reaches the loopback addresses of the control side, and Port gives a free one there (or want, if nothing else runs there).
	Client() *http.Client
	Port(want int) (int, error)
	Listen(ctx context.Context) (net.Listener, error)
	// Output runs a program to its end where the control side lives and returns what it printed.
	Output(ctx context.Context, argv ...string) (string, error)
	Close() error
}

// The jobs of the demo: two rings of four nodes each over both pods.
const (
	jobA = "job-a"
	jobB = "job-b"
)

// step is one finished training step of rank 0.
type step struct {
	At      time.Time
	Seconds float64
}

// look is one moment of a yard as the onlooker sees it. Counters run from the yard's start.
type look struct {
	At          time.Time
	Steps       map[string][]step
	StreamBytes float64       // payload that job-a's stream over the link in question has delivered
	Longest     time.Duration // longest gap of any stream since ResetGaps
	Retransmits float64
	Resets      float64
	Routes      []string  // host routes that stand in the switches
	FirstRoute  time.Time // when the first one came, where that is known better than by looking
	Writes      int       // changes of host routes that switches have seen
}
