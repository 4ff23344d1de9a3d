// SPDX-License-Identifier: Apache-2.0

package trainyardreceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.uber.org/zap"

	"github.com/trainyard/trainyard/exporter/source"
)

// receiver runs a Set and hands each snapshot on, at most once.
type receiver struct {
	set   *source.Set
	node  string
	every time.Duration
	next  consumer.Metrics
	log   *zap.Logger

	stop context.CancelFunc
	done sync.WaitGroup
}

// Start runs the sources until Shutdown; ctx is only that of starting.
func (r *receiver) Start(context.Context, component.Host) error {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.done.Go(func() { r.set.Run(ctx) })
	r.done.Go(func() { r.push(ctx) })
	return nil
}

// Shutdown ends the sources and waits for the last push.
func (r *receiver) Shutdown(context.Context) error {
	if r.stop != nil { // Shutdown without Start is allowed
		r.stop()
	}
	r.done.Wait()
	return nil
}

// push hands the newest snapshot to the pipeline on every tick; a snapshot that is out already is not sent again, so
// that sources which stand still cannot look alive.
func (r *receiver) push(ctx context.Context) {
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s := r.set.Snapshot()
		if s.Taken.IsZero() || s.Taken.Equal(last) {
			continue
		}
		last = s.Taken
		if err := r.next.ConsumeMetrics(ctx, convert(s, r.node)); err != nil {
			r.log.Warn("the pipeline refused a snapshot", zap.Time("taken", s.Taken), zap.Error(err))
		}
	}
}
