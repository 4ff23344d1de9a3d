// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/observe/am"
)

func (a *App) webhook() http.Handler { return a.tmpWebhook() }

// poll asks Alertmanager now and then for what no webhook says, until ctx ends. Only a whole list is given to the loop.
func (a *App) poll(ctx context.Context) {
	said := "" // the same trouble is said once
	for {
		p := a.parts.Load()
		every := p.cfg.Alertmanager.Every
		if p.alerts == nil {
			every = 10 * time.Second // until a reload brings one
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		if p.alerts == nil {
			continue
		}
		err := a.pollOnce(ctx, p.alerts)
		switch {
		case err == nil || ctx.Err() != nil:
			if said != "" {
				a.log.Info("the poll of Alertmanager works again")
			}
			said = ""
		case err.Error() != said:
			said = err.Error()
			level := a.log.Warn
			if errors.Is(err, am.ErrYoung) {
				level = a.log.Info
			}
			level("not polled; the webhook goes on", "err", err)
		}
	}
}

func (a *App) pollOnce(ctx context.Context, c *am.Client) error {
	alerts, err := c.Alerts(ctx)
	if err != nil {
		return err
	}
	shown := make([]flow.AlertEvent, 0, len(alerts))
	_ = alerts
	return a.loop.Poll(ctx, shown)
}
