// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/trainyard/trainyard/exporter/config"
	"github.com/trainyard/trainyard/exporter/prom"
	"github.com/trainyard/trainyard/exporter/source"
)

// Options say what to run. Only the configuration of the chosen role is used.
type Options struct {
	Role          string
	Listen        string // default: 127.0.0.1:9600 for a node, 127.0.0.1:9601 for a fabric
	WebConfigFile string
	Node          config.Node
	Fabric        config.Fabric
}

// DefaultListen is where a role listens if nobody says otherwise.
func DefaultListen(role string) string {
	if role == RoleFabric {
		return "127.0.0.1:9601"
	}
	return "127.0.0.1:9600"
}

// Build checks the options and builds the sources; it opens nothing.
func Build(o Options, log *slog.Logger) (*source.Set, error) {
	if err := config.CheckListen(o.Listen, o.WebConfigFile); err != nil {
		return nil, err
	}
	if err := web.Validate(o.WebConfigFile); err != nil {
		return nil, fmt.Errorf("web configuration %s: %w", o.WebConfigFile, err)
	}
	switch o.Role {
	case RoleNode:
		return NodeSet(o.Node, log)
	case RoleFabric:
		return FabricSet(o.Fabric, log)
	}
	return nil, fmt.Errorf("--role: %q, want node or fabric", o.Role)
}

// Run reads and serves until ctx ends, then stops in good order. It calls ready, if given, with the address that it
// listens on.
func Run(ctx context.Context, o Options, log *slog.Logger, ready func(net.Addr)) error {
	set, err := Build(o, log)
	if err != nil {
		return err
	}
	handler := prom.NewHandler("trainyard exporter, role " + o.Role)
	set.OnPublish(handler.Publish)

	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen for scrapes: %w", err)
	}
	server := &http.Server{
		Handler: handler.Routes(), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}

	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	var reader sync.WaitGroup
	reader.Go(func() { set.Run(reading) })

	served := make(chan error, 1)
	systemd := false
	go func() {
		served <- web.Serve(listener, server, &web.FlagConfig{WebSystemdSocket: &systemd, WebConfigFile: &o.WebConfigFile}, log)
	}()
	log.Info("exporter runs", "role", o.Role, "address", listener.Addr().String(), "version", Version)
	if ready != nil {
		ready(listener.Addr())
	}

	select {
	case <-ctx.Done():
	case err = <-served:
		err = fmt.Errorf("serve metrics: %w", err)
	}
	// Scrapes in flight are answered; then the sources stop.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if e := server.Shutdown(closing); e != nil && !errors.Is(e, http.ErrServerClosed) {
		log.Warn("scrapes were cut off", "err", e)
	}
	stopReading()
	reader.Wait()
	log.Info("exporter stopped", "role", o.Role)
	return err
}
