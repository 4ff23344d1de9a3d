// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/trainyard/trainyard/exporter/prom"
)

// Targets are the addresses that Prometheus scrapes.
type Targets struct {
	Fabric, Nodes string // host:port, path /metrics
}

// Serve shows both pages on two free loopback ports until the context ends.
func (p *Plant) Serve(ctx context.Context) (Targets, error) {
	fabric, err := page(ctx, p.FabricMetrics)
	if err != nil {
		return Targets{}, fmt.Errorf("serve the switches of plant %s: %w", p.cfg.Fabric, err)
	}
	nodes, err := page(ctx, p.NodeMetrics)
	if err != nil {
		return Targets{}, fmt.Errorf("serve the nodes of plant %s: %w", p.cfg.Fabric, err)
	}
	return Targets{Fabric: fabric, Nodes: nodes}, nil
}

func page(ctx context.Context, render func() []byte) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", prom.ContentType)
		_, _ = w.Write(render())
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go func() { _ = s.Serve(l) }()
	return l.Addr().String(), nil
}
