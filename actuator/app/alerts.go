// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/intake"
	"github.com/trainyard/trainyard/actuator/observe/am"
)

// webhook is intake's, led to the loop.
func (a *App) webhook() http.Handler {
	return intake.Handler(intake.Config{
		Deliver: a.loop.Deliver, Count: a.metrics.Delivery, Logger: a.log,
		Poll: func(why string) {
			a.log.Info("polling Alertmanager", "why", why)
			select {
			case a.pollNow <- struct{}{}:
			default: // somebody asked already
			}
		},
	})
}

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
		case <-a.pollNow:
		case <-time.After(every):
		}
		if p.alerts == nil {
			continue
		}
		err := a.pollOnce(ctx, p.alerts)
		switch {
		case ctx.Err() != nil:
		case err == nil && said == "":
		case err == nil:
			a.log.Info("the poll of Alertmanager works again")
			said = ""
		case errors.Is(err, am.ErrYoung):
			a.log.Debug("not polled", "err", err)
		case err.Error() != said:
			said = err.Error()
			a.log.Warn("not polled; the webhook goes on", "err", err)
		}
	}
}

// pollOnce gives one list to the loop. An alert that is not sound is named and left out: it would be set aside by the
// webhook too, so no episode of it is known that could seem to have ended.
func (a *App) pollOnce(ctx context.Context, c *am.Client) error {
	alerts, err := c.Alerts(ctx)
	if err != nil {
		return err
	}
	shown := make([]flow.AlertEvent, 0, len(alerts))
	for _, x := range alerts {
		e, err := intake.Raw{
			Fingerprint: x.Fingerprint, StartsAt: x.StartsAt, Firing: true, Suppressed: x.Suppressed(),
			Labels: x.Labels, Annotations: x.Annotations, Source: "poll",
		}.Event()
		if err != nil {
			a.log.Warn("an alert of the poll is set aside", "alert", x.Labels["alertname"], "fingerprint", x.Fingerprint, "err", err)
			continue
		}
		shown = append(shown, e)
	}
	if err := a.loop.Poll(ctx, shown); err != nil {
		return fmt.Errorf("deliver the poll: %w", err)
	}
	return nil
}
