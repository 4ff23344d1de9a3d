// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

func (a *App) tmpWebhook() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b struct {
			Alerts []struct {
				Status      string
				Labels      map[string]string
				Annotations map[string]string
				StartsAt    time.Time
				Fingerprint string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		var evs []flow.AlertEvent
		for _, x := range b.Alerts {
			p, _ := ident.ParsePort(x.Labels["link"])
			evs = append(evs, flow.AlertEvent{Fingerprint: x.Fingerprint, StartsAt: x.StartsAt, Firing: x.Status == "firing", Name: x.Labels["alertname"], Cluster: x.Labels["cluster"], Target: p, Labels: x.Labels, Summary: x.Annotations["summary"], Source: "webhook"})
		}
		if err := a.loop.Deliver(r.Context(), evs); err != nil {
			http.Error(w, err.Error(), 503)
			return
		}
		a.metrics.Delivery("taken")
	})
}
