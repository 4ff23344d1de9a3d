// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/test/lab"
	"github.com/trainyard/trainyard/test/lab/ring"
)

// beRank turns this process into a rank of a training job if it was started as one.
func beRank() { ring.Main() }

// labMissing says why there can be no real fabric here; nil = there can.
func labMissing() error { return lab.Require() }

// realYard is the yard made of network namespaces. Everything that controls the fabric runs in the management namespace.
type realYard struct {
	lab *lab.Lab
	dir string
	bin binaries

	mu       sync.Mutex
	jobs     map[string]*ring.Job
	monitors map[string]*lab.RouteMonitor // of leaves: they see each change of a route as the kernel makes it
	gapsFrom time.Time
	tcp      tcpCounters
	tcpAt    time.Time
}

// hurry raises the priority of this process: it relays scrapes, and seconds count. Whoever it starts inherits that. A kernel
// keeps priorities by thread, so each is told. It is for better latency on a busy machine only, so that it may fail.
func hurry() {
	const wanted = -5
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err != nil || 20-now <= wanted { // the call gives 20 - nice
		return
	}
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, wanted)
		}
	}
}

// controlNice lets the control side answer beside the traffic, which loads all cores of a small machine.
const controlNice = -5

// tcpCounters are sums over the kernels of all hosts.
type tcpCounters struct{ retransmits, resets float64 }

// fabricMbit is the speed of every link, and jumbo the size of its packets. Two jobs on 16 rails cross 4 hops each, all of
// them on this machine's cores, and each packet costs: with 9000 bytes this leaves more than a core to the control side.
// At half the speed such a packet takes 1.5 ms, and a ring of small windows loses a fifth of its pace to that.
const (
	fabricMbit = 100
	jumbo      = 9000
)

// newLab builds the fabric and starts nothing on it yet.
func newLab(ctx context.Context, out io.Writer, dir string, bin binaries) (yard, error) {
	hurry()
	l, err := lab.Up(ctx, lab.Config{FabricMbit: fabricMbit, MTU: jumbo, ECN: true, Log: out})
	if err != nil {
		return nil, err
	}
	y := &realYard{lab: l, dir: dir, bin: bin, jobs: map[string]*ring.Job{}, monitors: map[string]*lab.RouteMonitor{}, gapsFrom: time.Now()}
	for _, s := range l.Switches {
		if s.Tier > 0 {
			continue
		}
		m, err := l.RouteEvents(s.Name)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		y.monitors[s.Name] = m
	}
	return y, nil
}

func (y *realYard) Fabric() string { return "lab" }

func (y *realYard) About() string {
	c := y.lab.Config()
	return fmt.Sprintf("real fabric in network namespaces: 2 spines, 4 leaves with FRR, SNMP and LLDP, 8 nodes with 2 rails, links of %d Mbit/s, real TCP", c.FabricMbit)
}

// StartJob: both jobs' first rail from pod A to pod B goes over s1, by choice of source ports; all else is kept apart.
func (y *realYard) StartJob(ctx context.Context, job string) error {
	s := ring.Spec{JobID: job, Hosts: []string{"n1", "n2", "n5", "n6"}, ReportDir: y.jobDir, Spine: func(_, _, _ int) string { return "s1" }}
	if job == jobB {
		s.Hosts = []string{"n3", "n4", "n7", "n8"}
		s.Spine = func(rank, rail, _ int) string {
			if rail == 0 && s.Hosts[rank] == "n4" {
				return "s1"
			}
			return "s2"
		}
	}
	j, err := ring.Start(ctx, y.lab, s)
	if err != nil {
		return err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.jobs[job] = j
	return nil
}

func (y *realYard) jobDir(host string) string { return filepath.Join(y.dir, "jobs", host) }

// Look reads what the kernels and the ranks themselves say, never what the control side believes.
func (y *realYard) Look(context.Context) (look, error) {
	l := look{At: time.Now(), Steps: map[string][]step{}}
	y.mu.Lock()
	defer y.mu.Unlock()
	for name, j := range y.jobs {
		for _, s := range j.Steps(time.Time{}, time.Time{}) {
			if s.Rank == 0 {
				l.Steps[name] = append(l.Steps[name], step{s.End, s.Total.Seconds()})
			}
			if s.End.After(y.gapsFrom) {
				l.Longest = max(l.Longest, s.LongestGap)
			}
		}
		slices.SortFunc(l.Steps[name], func(a, b step) int { return a.At.Compare(b.At) })
	}
	// The stream n2>n5 on rail 0 is all that l3 sends to n5: the kernel's counter there is the witness.
	c, err := y.lab.PortCounters("l3", "h5")
	if err != nil {
		return l, err
	}
	l.StreamBytes = float64(c.TxBytes) * y.lab.Config().PayloadShare()
	for leaf, m := range y.monitors {
		events, err := m.Events()
		if err != nil {
			return l, fmt.Errorf("watch routes of %s: %w", leaf, err)
		}
		standing := map[string]string{}
		for _, e := range events {
			if e.Route.Prefix.Bits() != 32 {
				continue
			}
			l.Writes++
			if l.FirstRoute.IsZero() || e.At.Before(l.FirstRoute) {
				l.FirstRoute = e.At
			}
			delete(standing, e.Route.Prefix.String())
			if !e.Deleted {
				var hops []string
				for _, h := range e.Route.NextHops {
					hops = append(hops, fmt.Sprintf("%s dev %s", h.Gateway, h.Device))
				}
				standing[e.Route.Prefix.String()] = fmt.Sprintf("%s: %s via %s (kernel, proto %s)", leaf, e.Route.Prefix, strings.Join(hops, ", "), e.Route.Protocol)
			}
		}
		for _, s := range standing {
			l.Routes = append(l.Routes, s)
		}
	}
	slices.Sort(l.Routes)
	if time.Since(y.tcpAt) > time.Second {
		if y.tcp, err = y.readTCP(); err != nil {
			return l, err
		}
		y.tcpAt = time.Now()
	}
	l.Retransmits, l.Resets = y.tcp.retransmits, y.tcp.resets
	return l, nil
}

func (y *realYard) readTCP() (tcpCounters, error) {
	var sum tcpCounters
	for _, h := range y.lab.Hosts {
		v, err := y.lab.NetSNMP(h.Name)
		if err != nil {
			return sum, err
		}
		sum.retransmits += float64(v["Tcp.RetransSegs"])
		sum.resets += float64(v["Tcp.EstabResets"])
	}
	return sum, nil
}

func (y *realYard) ResetGaps() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.gapsFrom = time.Now()
}

// exporterInterval is how often the lab's exporters read: as often as the lab's Prometheus scrapes.
const exporterInterval = "500ms"

// Exporters starts the node role in each host and the fabric role in the management namespace. Without credentials an
// exporter listens on loopback only, so a relay brings each host's loopback port to the management namespace's.
func (y *realYard) Exporters(ctx context.Context) (nodes, fabric []string, err error) {
	config := filepath.Join(y.dir, "node.yaml")
	if err := os.WriteFile(config, []byte("fabric: lab\ndevices: rail\\d+\njob_max_age: 3s\n"), 0o644); err != nil {
		return nil, nil, fmt.Errorf("configure the node role: %w", err)
	}
	for _, h := range y.lab.Hosts {
		if err := os.MkdirAll(y.jobDir(h.Name), 0o755); err != nil {
			return nil, nil, fmt.Errorf("make the folder of job reports: %w", err)
		}
		err := y.start(h.Name, "exporter-"+h.Name, y.bin.exporter, "--role=node", "--node-name="+h.Name, "--config.file="+config,
			"--interval="+exporterInterval, "--job-dir="+y.jobDir(h.Name), "--listen=127.0.0.1:9600")
		if err != nil {
			return nil, nil, err
		}
		here := fmt.Sprintf("127.0.0.1:%d", 9700+h.Index)
		if err := y.relay(ctx, here, h.Name, "127.0.0.1:9600"); err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, here)
	}
	inventory := filepath.Join(y.dir, "fabric.yaml")
	if err := os.WriteFile(inventory, []byte(y.inventory()), 0o644); err != nil {
		return nil, nil, fmt.Errorf("write the inventory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(y.dir, "community"), []byte(lab.SNMPCommunity+"\n"), 0o600); err != nil {
		return nil, nil, fmt.Errorf("write the SNMP community: %w", err)
	}
	fabric = []string{"127.0.0.1:9601"}
	return nodes, fabric, y.start(lab.Mgmt, "exporter-fabric", y.bin.exporter, "--role=fabric", "--config.file="+inventory, "--listen="+fabric[0])
}

// inventory lists the switches as an operator would write them down.
func (y *realYard) inventory() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fabric: lab\ninterval: %s\ntopology_interval: 5s\ntimeout: 400ms\n", fabricInterval)
	fmt.Fprintf(&b, "credentials:\n  ro: {version: v2c, community: {file: %s}}\nswitches:\n", filepath.Join(y.dir, "community"))
	for _, s := range y.lab.Switches {
		fmt.Fprintf(&b, "  - {name: %s, address: %s, tier: %d, balancing: hash, vrf: default, credentials: ro}\n", s.Name, s.Mgmt, s.Tier)
	}
	b.WriteString("nodes: {pattern: '(n\\d+)'}\n")
	return b.String()
}

// fabricInterval is half of a scrape: a counter is then at most that old, and rates over two seconds are off by an eighth at
// most. The lab's agents read at each poll; switches in a rack cache for seconds.
const fabricInterval = "250ms"

// Actuator writes its configuration and starts it in the management namespace.
func (y *realYard) Actuator(ctx context.Context, c actuatorSetup) error {
	var b strings.Builder
	b.WriteString(c.yaml(y.Fabric()))
	fmt.Fprintf(&b, "driver:\n  kind: bgp\n  bgp:\n    pins: {local_address: %s}\n    weights: {local_address: %s}\n    prefixes: [10.1.0.0/16, 10.2.0.0/16, 10.3.0.0/16, 10.4.0.0/16]\n    leaves:\n", lab.ControllerPins, lab.ControllerWeights)
	for _, s := range y.lab.Switches {
		if s.Tier > 0 {
			continue
		}
		var uplinks []string
		for j := 1; j <= lab.Spines; j++ {
			uplinks = append(uplinks, lab.LinkSubnet(s.Index, j).Addr().Next().String())
		}
		fmt.Fprintf(&b, "      - {name: %s, address: %s, asn: %d, uplinks: [%s]}\n", s.Name, s.Mgmt, s.ASN, strings.Join(uplinks, ", "))
	}
	config, err := c.write(b.String())
	if err != nil {
		return err
	}
	return y.Run(ctx, "actuator", y.bin.actuator, "--config.file="+config)
}

// start runs a program in a namespace, its output in a file of its name; it ends with the lab.
func (y *realYard) start(place, name string, argv ...string) error {
	log, err := os.Create(filepath.Join(y.dir, name+".log"))
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	p, err := y.lab.Start(place, lab.Command{Argv: argv, Stdout: log, Stderr: log, Nice: controlNice})
	if err != nil {
		return errors.Join(err, log.Close())
	}
	go func() {
		<-p.Done()
		_ = log.Close()
	}()
	return nil
}

func (y *realYard) Run(_ context.Context, name string, argv ...string) error {
	return y.start(lab.Mgmt, name, argv...)
}

func (y *realYard) Output(ctx context.Context, argv ...string) (string, error) {
	return y.lab.Exec(ctx, lab.Mgmt, argv...)
}

func (y *realYard) Client() *http.Client { return y.lab.HTTPClient(lab.Mgmt) }

// Port: nothing else listens in the management namespace, so each program has its usual port.
func (y *realYard) Port(want int) (int, error) { return want, nil }

func (y *realYard) Listen(ctx context.Context) (net.Listener, error) {
	return y.lab.Listen(ctx, lab.Mgmt, "tcp", "127.0.0.1:0")
}

// relay carries connections from an address in the management namespace to one in another place.
func (y *realYard) relay(ctx context.Context, here, place, there string) error {
	l, err := y.lab.Listen(ctx, lab.Mgmt, "tcp", here)
	if err != nil {
		return fmt.Errorf("relay %s to %s: %w", here, place, err)
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = a.Close() }()
				b, err := y.lab.Dial(ctx, place, "tcp", there)
				if err != nil {
					return
				}
				defer func() { _ = b.Close() }()
				context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })
				go func() {
					_, _ = io.Copy(b, a)
					_ = b.(*net.TCPConn).CloseWrite() // Dial is asked for tcp
				}()
				_, _ = io.Copy(a, b)
			}()
		}
	}()
	return nil
}

// Close ends the jobs and takes the fabric down with everything in it.
func (y *realYard) Close() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, j := range y.jobs {
		j.Kill()
	}
	return y.lab.Close()
}
