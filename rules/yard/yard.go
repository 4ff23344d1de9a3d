// SPDX-License-Identifier: Apache-2.0

// Package yard is a small training yard as time series: what exporters would expose while a story is told in phases,
// such as calm, collision, recovery. Rule tests render it as promtool's input, a test with a real Prometheus serves it
// over HTTP. It imitates metrics only; it knows nothing of queues, flows or routes (test/sim does).
//
// Three leaves, l1 to l3, each with an uplink u1 to u3 to the spines s1 to s3 (whose ports d1 to d3 lead to the leaves)
// and with two nodes: n1 and n2 on l1, n3 and n4 on l2, n5 and n6 on l3, node k on port hk. job-a runs on n1 and n3,
// job-b on n2 and n4, job-c on n5 and n6, behind one leaf. Every link carries 1 MB/s and is 30 % full; every job
// finishes eight steps in the window of the rules.
package yard

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// LinkBytesPerSecond is the speed of every link.
const LinkBytesPerSecond = 1e6

// Window is the window of the rules in ticks; both profiles scrape four times in it.
const Window = 4

// Yard is the series of one story.
type Yard struct {
	tick   time.Duration
	phases []int
	series []*series
}

// New makes a calm yard that is scraped once a tick, over phases of so many ticks.
func New(tick time.Duration, phases ...int) *Yard {
	y := &Yard{tick: tick, phases: phases}
	y.exporters()
	for leaf := 1; leaf <= 3; leaf++ {
		for spine := 1; spine <= 3; spine++ {
			y.cable(leaf, spine)
		}
	}
	for node := 1; node <= 6; node++ {
		y.node(node, (node+1)/2)
	}
	y.job("job-a", 1, 3)
	y.job("job-b", 2, 4)
	y.job("job-c", 5, 6)
	return y
}

// Ticks is the length of all phases together.
func (y *Yard) Ticks() int {
	n := 0
	for _, p := range y.phases {
		n += p
	}
	return n
}

// Tick is the time between two scrapes.
func (y *Yard) Tick() time.Duration { return y.tick }

// Use sets how full a link is in each phase: "l1:u1" is the uplink, "s1:d1" the downlink to l1.
func (y *Yard) Use(link string, use ...float64) {
	var perSecond []float64
	for _, u := range use {
		perSecond = append(perSecond, u*LinkBytesPerSecond)
	}
	device, port, _ := cut(link)
	y.Set("trainyard_switch_port_transmit_bytes_total", perSecond, "switch", device, "port", port)
}

// Step sets how many steps a job finishes per window in each phase; 8 is usual, Gone means that it is gone.
func (y *Yard) Step(job string, perWindow ...float64) {
	var steps, seconds []float64
	for _, n := range perWindow {
		steps = append(steps, n/(Window*y.tick.Seconds()))
		seconds = append(seconds, n*0+1) // a rank does nothing but step, a second a second; Gone stays Gone
	}
	y.Set("trainyard_job_steps_total", steps, "job_id", job)
	y.Set("trainyard_job_step_seconds_total", seconds, "job_id", job)
	y.Set("trainyard_job_collective_seconds_total", seconds, "job_id", job)
	y.Set("trainyard_job_compute_seconds_total", seconds, "job_id", job)
}

// Set gives all series of a metric with these labels (alternating name and value) new values, one a phase. A counter's
// value is its growth per second. It panics if there is no such series: a story that changes nothing tells nothing.
func (y *Yard) Set(metric string, values []float64, labels ...string) {
	found := false
	for _, s := range y.series {
		if s.name == metric && s.has(labels) {
			s.values, found = values, true
		}
	}
	if !found {
		panic(fmt.Sprintf("yard has no series %s%v", metric, labels))
	}
}

// Reset makes a counter start again from zero at the start of a phase.
func (y *Yard) Reset(phase int, metric string, labels ...string) {
	for _, s := range y.series {
		if s.name == metric && s.has(labels) {
			s.resets = phase
		}
	}
}

// Gauge and Counter add a series that the calm yard does not have.
func (y *Yard) Gauge(scrapeJob, name string, values []float64, labels ...string) {
	y.series = append(y.series, &series{name: name, labels: labels, values: values, job: scrapeJob, instance: "a"})
}

// Counter adds a counter; values are its growth per second in each phase.
func (y *Yard) Counter(scrapeJob, name string, values []float64, labels ...string) {
	y.series = append(y.series, &series{name: name, labels: labels, values: values, counter: true, job: scrapeJob, instance: "a"})
}

// Twice lets a second instance expose all that a scrape job exposes, as two replicas of the fabric role do.
func (y *Yard) Twice(scrapeJob string) {
	for _, s := range y.series[:len(y.series):len(y.series)] {
		if s.job == scrapeJob {
			twin := *s
			twin.instance = "b"
			y.series = append(y.series, &twin)
		}
	}
}

// Input is one input series of promtool.
type Input struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

// Inputs renders the yard for promtool.
func (y *Yard) Inputs() []Input {
	var in []Input
	for _, s := range y.series {
		in = append(in, Input{s.text(true), s.pattern(y.tick.Seconds(), y.phases)})
	}
	return in
}

// Exposition is what the exporters of a scrape job say after some time, in Prometheus' text format.
func (y *Yard) Exposition(scrapeJob string, after time.Duration) []byte {
	var b bytes.Buffer
	for _, s := range y.series {
		if s.job != scrapeJob || s.name == "up" {
			continue
		}
		if v, ok := s.at(y.tick.Seconds(), after.Seconds()/y.tick.Seconds(), y.phases); ok {
			b.WriteString(s.text(false) + " " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
		}
	}
	return b.Bytes()
}

func cut(s string) (before, after string, ok bool) {
	for i := range s {
		if s[i] == ':' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func constant(v float64) []float64 { return []float64{v} }
