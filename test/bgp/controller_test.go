// SPDX-License-Identifier: Apache-2.0

//go:build lab

package bgp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/act/bgp"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/test/lab"
	"github.com/trainyard/trainyard/test/lab/ring"
)

// controllerEnv makes this test binary the controller process instead.
const controllerEnv = "TRAINYARD_TEST_BGP_CONTROLLER"

func TestMain(m *testing.M) {
	if os.Getenv(controllerEnv) != "" {
		if err := controllerMain(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	ring.Main()
	os.Exit(m.Run())
}

// order is one line to the controller, answer one line back.
type order struct {
	Op     string // lease, reconcile, apply, withdraw, withdraw-all, read, sessions, reset, close
	For    time.Duration
	Routes []plan.Route
	Keep   bool
	Leaf   string
}

type answer struct {
	Routes   []plan.Route
	Actions  int
	Result   act.Result
	Sessions []bgp.State
	Error    string
}

// lease is the permit of the test's controller: valid for as long as the test said, by both clocks.
type lease struct {
	mu    sync.Mutex
	since time.Time
	d     time.Duration
}

func (l *lease) Valid(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if max(now.Sub(l.since), now.Round(0).Sub(l.since.Round(0))) > l.d {
		return fmt.Errorf("the lease of %s has run out", l.d)
	}
	return nil
}

func controllerMain() error {
	in := json.NewDecoder(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	var cfg bgp.Config
	if err := in.Decode(&cfg); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	l := &lease{}
	d, err := bgp.New(cfg, l, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return out.Encode(answer{Error: err.Error()})
	}
	if err := out.Encode(answer{}); err != nil {
		return err
	}
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			return fmt.Errorf("read an order: %w", err)
		}
		var a answer
		ctx := context.Background()
		switch o.Op {
		case "lease":
			l.mu.Lock()
			l.since, l.d = time.Now(), o.For
			l.mu.Unlock()
		case "reconcile":
			var did []act.Action
			did, err = act.Reconcile(ctx, d, l, o.Routes)
			a.Actions = len(did)
		case "apply":
			a.Result = d.Apply(ctx, l, o.Routes[0])
		case "withdraw":
			a.Result = d.Withdraw(ctx, l, o.Routes[0].Key())
		case "withdraw-all":
			a.Result = d.WithdrawAll(ctx)
		case "read":
			a.Routes, err = d.Read(ctx)
		case "sessions":
			a.Sessions = d.Sessions()
		case "reset":
			err = d.ResetBreaker(o.Leaf)
		case "close":
			err = d.Close(ctx, o.Keep)
		default:
			err = fmt.Errorf("unknown order %q", o.Op)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return err
		}
		if o.Op == "close" {
			return nil
		}
		err = nil
	}
}

// controller is a running controller process, seen from the test.
type controller struct {
	t    *testing.T
	proc *lab.Process
	in   *os.File
	enc  *json.Encoder
	out  *bufio.Scanner
}

// startController starts a controller with a lease of a minute. It is killed with the test, which by then has looked at
// everything that it wants to see.
func startController(t *testing.T, l *lab.Lab, cfg bgp.Config) *controller {
	t.Helper()
	inR, inW, err := os.Pipe()
	must(t, err)
	outR, outW, err := os.Pipe()
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	p, err := l.Start(lab.Mgmt, lab.Command{
		Argv: []string{self}, Env: []string{controllerEnv + "=1"}, Stdin: inR, Stdout: outW, Stderr: t.Output(), Nice: -10,
	})
	must(t, err)
	inR.Close()
	outW.Close()
	c := &controller{t: t, proc: p, in: inW, enc: json.NewEncoder(inW), out: bufio.NewScanner(outR)}
	c.out.Buffer(nil, 1<<20)
	t.Cleanup(func() { c.kill(); inW.Close(); outR.Close() })
	must(t, c.enc.Encode(cfg))
	if a := c.answer(); a.Error != "" {
		t.Fatal(a.Error)
	}
	c.do(order{Op: "lease", For: time.Minute})
	return c
}

func (c *controller) answer() answer {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the controller has ended: %v", errors.Join(c.out.Err(), c.proc.Wait(c.t.Context())))
	}
	var a answer
	must(c.t, json.Unmarshal(c.out.Bytes(), &a))
	return a
}

func (c *controller) do(o order) answer {
	c.t.Helper()
	must(c.t, c.enc.Encode(o))
	return c.answer()
}

// reconcile makes the controller's routes equal to the given ones and fails the test if it cannot.
func (c *controller) reconcile(routes ...plan.Route) answer {
	c.t.Helper()
	a := c.do(order{Op: "reconcile", Routes: routes})
	if a.Error != "" {
		c.t.Fatalf("reconcile: %s\nsessions: %s", a.Error, c.sessions())
	}
	return a
}

func (c *controller) sessions() string {
	var b strings.Builder
	for _, s := range c.do(order{Op: "sessions"}).Sessions {
		fmt.Fprintf(&b, "\n  %s %s up=%v routes=%d breaker=%v %s", s.Leaf, s.Kind, s.Up, s.Routes, s.Breaker, s.Reason)
	}
	return b.String()
}

func (c *controller) signal(s syscall.Signal) {
	c.t.Helper()
	must(c.t, c.proc.Signal(s))
}

func (c *controller) kill() { c.proc.Kill() }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
