// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sync/errgroup"
)

// Lab is a running fabric. Its methods may be used by several goroutines.
type Lab struct {
	Topology
	Dir string // state of this lab: configurations, logs, sockets

	cfg    Config
	prefix string
	places map[string]*placeNS

	mu      sync.Mutex
	rates   map[portKey]int
	markers map[portKey]*marker
	closers []func() // monitors and the like, ended before the namespaces are
	closed  bool
	ports   int // destination ports given out by TakePorts
}

// placeNS is one namespace of the lab.
type placeNS struct {
	name   string
	ns     netns.NsHandle
	handle *netlink.Handle
}

type portKey struct{ place, port string }

// Up builds the fabric and returns when every leaf has a route to every host subnet over every spine. On error and
// when ctx ends nothing is left behind.
func Up(ctx context.Context, cfg Config) (_ *Lab, err error) {
	if err := Require(); err != nil {
		return nil, err
	}
	cfg, err = cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("lab configuration: %w", err)
	}
	if err := Sweep(); err != nil {
		fmt.Fprintf(cfg.Log, "lab: %v\n", err)
	}
	l, err := newLab(cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	begin := time.Now()
	for _, stage := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"namespaces, cables, addresses", l.wire},
		{"rates", l.limitRates},
		{"SNMP and LLDP agents", l.startAgents},
		{"BGP", l.startFRR},
		{"convergence", l.converge},
	} {
		t := time.Now()
		if err := stage.do(ctx); err != nil {
			return nil, fmt.Errorf("lab: %s: %w", stage.what, err)
		}
		fmt.Fprintf(cfg.Log, "lab: %s %.1f s\n", stage.what, time.Since(t).Seconds())
	}
	fmt.Fprintf(cfg.Log, "lab: up after %.1f s, namespaces %s*, state in %s\n", time.Since(begin).Seconds(), l.prefix, l.Dir)
	return l, nil
}

func newLab(cfg Config) (*Lab, error) {
	dir, err := os.MkdirTemp("", stateDirPrefix)
	if err != nil {
		return nil, fmt.Errorf("make the lab's state directory: %w", err)
	}
	// Sockets and logs of daemons that run as another user lie in it.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, fmt.Errorf("open the lab's state directory: %w", err)
	}
	var id [3]byte
	_, _ = rand.Read(id[:]) // never fails, see crypto/rand
	l := &Lab{
		Topology: Plan(cfg.SharedSpineAS), Dir: dir, cfg: cfg, prefix: "ty" + hex.EncodeToString(id[:]) + "-",
		places: map[string]*placeNS{}, rates: map[portKey]int{}, markers: map[portKey]*marker{},
	}
	if err := writeOwner(dir, l.prefix); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return l, nil
}

// Close ends every process of the lab and removes everything that Up made. It may be called more than once.
func (l *Lab) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	closers := l.closers
	l.mu.Unlock()
	for _, c := range closers {
		c()
	}
	for _, m := range l.markers {
		m.close()
	}
	err := tearDown(l.prefix, l.Dir)
	for _, p := range l.places {
		if p.handle != nil {
			p.handle.Close()
		}
		_ = p.ns.Close()
	}
	return err
}

// tearDown ends processes, namespaces and state of one lab; Close and Sweep share it.
func tearDown(prefix, dir string) error {
	names := netnsNames(prefix)
	errs := []error{killInside(names)}
	for _, n := range names {
		errs = append(errs, deleteNetns(n))
	}
	if errors.Join(errs...) == nil { // the state directory is what a later Sweep finds us by: it goes last
		errs = append(errs, os.RemoveAll(dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("take down lab %s: %w", prefix, err)
	}
	return nil
}

// Config is what the lab was built with, defaults filled in.
func (l *Lab) Config() Config { return l.cfg }

// TakePorts reserves n destination ports in a row for a traffic generator, so that each flow of a fair lab has its own
// class. Past FairClasses they share one.
func (l *Lab) TakePorts(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := FairPorts + l.ports
	l.ports += n
	return first
}

// onClose registers something to end before the namespaces go.
func (l *Lab) onClose(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closers = append(l.closers, f)
}

// Namespace is the full name of a place's network namespace, for `ip netns exec`.
func (l *Lab) Namespace(place string) string { return l.prefix + place }

// Do runs f on a thread inside the namespace of a place. f must not start goroutines that expect to be there too.
func (l *Lab) Do(place string, f func() error) error {
	p, err := l.ns(place)
	if err != nil {
		return err
	}
	return inNetns(p.ns, f)
}

func (l *Lab) ns(place string) (*placeNS, error) {
	p, ok := l.places[place]
	if !ok {
		return nil, fmt.Errorf("the lab has no place %q", place)
	}
	return p, nil
}

// devices are the places that forward or compute: all but mgmt.
func (l *Lab) devices() []string { return l.Places()[1:] }

// each runs f for several places at once, a few at a time: this is work for processes, and the machine is small.
func (l *Lab) each(ctx context.Context, places []string, f func(context.Context, string) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, place := range places {
		g.Go(func() error { return f(ctx, place) })
	}
	return g.Wait()
}

func (l *Lab) cableAt(place, port string) (Cable, bool) {
	for _, c := range l.Cables {
		if c.A == place && c.APort == port || c.B == place && c.BPort == port {
			return c, true
		}
	}
	return Cable{}, false
}

// stateDir makes a directory for one daemon's files.
func (l *Lab) stateDir(parts ...string) (string, error) {
	dir := filepath.Join(append([]string{l.Dir}, parts...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make %s: %w", dir, err)
	}
	return dir, nil
}
