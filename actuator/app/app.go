// SPDX-License-Identifier: Apache-2.0

// Package app wires the actuator: one straight function builds everything from the bottom to the top, Run starts it,
// and stops it in reverse. It decides nothing; where two packages speak differently, the translation is here.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/act/bgp"
	"github.com/trainyard/trainyard/actuator/api"
	"github.com/trainyard/trainyard/actuator/config"
	"github.com/trainyard/trainyard/actuator/fleet"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/journal"
	"github.com/trainyard/trainyard/actuator/loop"
	"github.com/trainyard/trainyard/actuator/observe/prom"
	"github.com/trainyard/trainyard/actuator/plan"
)

// Options are what a caller may bring instead of what the configuration says.
type Options struct {
	// Driver makes the driver; nil = the one that the configuration names. The permit is to be asked before each write.
	Driver  func(permit act.Permit, log *slog.Logger) (act.Driver, error)
	Logger  *slog.Logger // nil = as the configuration says, on standard error
	Version string
	Notify  func(text string, v flow.View) // tells a human; nil = the log alone
}

// App is one actuator, built and not yet running.
type App struct {
	cfg     config.Config
	options Options
	log     *slog.Logger

	store    journal.Store
	loop     *loop.Loop
	server   *api.Server
	metrics  *api.Metrics
	parts    atomic.Pointer[parts] // what a reload may exchange
	reloadMu sync.Mutex
	pollNow  chan struct{}
}

// New builds the whole actuator from the bottom to the top. On an error, what was built is closed again.
func New(cfg config.Config, o Options) (_ *App, err error) {
	a := &App{cfg: cfg, options: o, log: o.Logger, pollNow: make(chan struct{}, 1)}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	var undo []func() error
	defer func() {
		for i := len(undo) - 1; err != nil && i >= 0; i-- {
			err = errors.Join(err, undo[i]())
		}
	}()

	p, err := buildParts(cfg)
	if err != nil {
		return nil, err
	}
	a.parts.Store(p)

	store, err := journal.OpenDir(cfg.JournalDir)
	if err != nil {
		return nil, err
	}
	a.store = store
	undo = append(undo, store.Close)

	permit := loop.NewPermit(time.Now, cfg.Lease)
	driver, err := a.driver(permit)
	if err != nil {
		return nil, err
	}
	if driver != nil {
		undo = append(undo, func() error { return driver.Close(context.Background(), true) })
	}

	a.metrics = api.NewMetrics()
	think := newThinker(driver, cfg.Prometheus)
	a.loop, err = loop.New(loop.Config{
		Store: store, Observer: a, Propose: think.propose, Verify: think.verify, FollowUp: think.followUp,
		Driver: driver, Permit: permit, Lease: loop.NewFileLease(filepath.Join(cfg.JournalDir, "lease")),
		Policies: p.policies, StopFile: loop.StopFile(cfg.StopFile), Notify: o.Notify, Logger: a.log, Hooks: a.hooks(),
		ObserveEvery: cfg.Timers.Observe, ReconcileEvery: cfg.Timers.Reconcile,
		Timeout: cfg.Prometheus.Timeout + time.Second, Grace: cfg.Driver.BGP.RestartTime,
	})
	if err != nil {
		return nil, fmt.Errorf("build the loop: %w", err)
	}
	a.metrics.Watch(api.Watched{Incidents: a.loop.Views, Policies: a.loop.Policies, Routes: func() (int, int) {
		s := a.loop.Status()
		return s.Desired, s.Installed
	}})

	if err := a.mount(p); err != nil {
		return nil, err
	}
	a.server, err = api.Listen(cfg.Listen, cfg.Web.TLSCertFile, cfg.Web.TLSKeyFile, a, a.log)
	if err != nil {
		return nil, err
	}
	if len(p.tokens) > 0 && cfg.Web.TLSCertFile == "" {
		a.log.Warn("bearer tokens are read without TLS: put TLS in front, or set web.tls_cert_file", "listen", cfg.Listen)
	}
	return a, nil
}

// driver is the caller's, the configured one, or none.
func (a *App) driver(permit act.Permit) (act.Driver, error) {
	if a.options.Driver != nil {
		d, err := a.options.Driver(permit, a.log)
		if err != nil {
			return nil, fmt.Errorf("build the driver: %w", err)
		}
		return d, nil
	}
	if a.cfg.Driver.Kind != config.BGP {
		return nil, nil //nolint:nilnil // no driver is an answer: the loop refuses every plan with that reason
	}
	d, err := bgp.New(a.cfg.Driver.BGP, permit, a.log)
	if err != nil {
		return nil, err // a nil *bgp.Driver must not become a driver
	}
	return d, nil
}

// hooks leads what the loop tells to the metrics.
func (a *App) hooks() loop.Hooks {
	return loop.Hooks{
		Appended: a.metrics.Appended,
		Ended: func(v flow.View) {
			a.log.Info("incident is over", "incident", v.ID, "target", v.Target, "state", v.State, "reason", v.Reason)
			a.metrics.Ended(v)
		},
		Verified: func(f plan.Forecast, v flow.Verification) {
			for _, x := range v.Figures {
				if x.What == gainFigure {
					a.metrics.Verified(f, v, x.After)
				}
			}
		},
	}
}

// Observe implements loop.Observer by the observer of the newest configuration.
func (a *App) Observe(ctx context.Context) (fleet.Snapshot, error) {
	return a.parts.Load().observer.Observe(ctx)
}

var _ loop.Observer = (*prom.Observer)(nil)

// Addr is where the actuator listens.
func (a *App) Addr() string { return a.server.Addr() }

// shutdownTime is how long requests in flight may take at the end.
const shutdownTime = 3 * time.Second

// Run runs until ctx ends or something that the rest needs fails, and then stops in reverse: first nobody gets in,
// then the poll ends, then the loop, which leaves the routes to the next run (contract 2).
func (a *App) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	background := context.WithoutCancel(ctx)
	loopCtx, stopLoop := context.WithCancel(background)
	pollCtx, stopPoll := context.WithCancel(background)
	defer stopLoop()
	defer stopPoll()

	var (
		loopErr, serveErr error
		looping, serving  = make(chan struct{}), make(chan struct{})
		polling           sync.WaitGroup
	)
	go func() {
		defer close(looping)
		defer cancel()
		loopErr = a.loop.Run(loopCtx)
	}()
	go func() {
		defer close(serving)
		defer cancel()
		serveErr = a.server.Serve()
	}()
	polling.Go(func() { a.poll(pollCtx) })
	a.log.Info("started", "listen", a.Addr(), "version", a.options.Version, "profile", a.cfg.Profile)

	<-ctx.Done()
	a.log.Info("stopping")
	last, done := context.WithTimeout(background, shutdownTime)
	defer done()
	errs := []error{a.server.Shutdown(last)}
	<-serving
	stopPoll()
	polling.Wait()
	stopLoop()
	<-looping
	errs = append(errs, loopErr, serveErr, a.store.Close())
	return errors.Join(errs...)
}
