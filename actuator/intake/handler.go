// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"

	"github.com/trainyard/trainyard/actuator/flow"
)

// DefaultMaxBytes bounds a body: about 8,000 alerts with ten labels each.
const DefaultMaxBytes = 4 << 20

// Config is what the webhook needs. Deliver is required.
type Config struct {
	// Deliver makes alerts durable; it returns after the fsync. Any error is answered 503, so that they are sent again.
	Deliver func(ctx context.Context, alerts []flow.AlertEvent) error
	// Poll is called when a body was truncated: what was cut off must be read from Alertmanager's API. It must not block.
	Poll func(why string)
	// Count is told how each delivery ended: "ok", "partly bad", "refused", "too large", "journal". May be nil.
	Count    func(result string)
	Logger   *slog.Logger
	MaxBytes int64 // 0 = DefaultMaxBytes
}

// answer is what the sender, or somebody who tries with curl, gets to read. Alertmanager ignores it.
type answer struct {
	Accepted  int    `json:"accepted"`
	Truncated int    `json:"truncated,omitempty"`
	Bad       []Bad  `json:"bad,omitempty"`
	Error     string `json:"error,omitempty"`
}

// Handler is the webhook: 200 once every sound alert is durable (bad ones are set aside and told), 400 for what is no
// message of version 4, 413 for a body that is too large, 503 if nothing could be made durable. Who may call it is the
// business of whoever wraps it.
func Handler(cfg Config) http.Handler {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, a, result := serve(cfg, w, r)
		if cfg.Count != nil {
			cfg.Count(result)
		}
		if a.Error != "" || len(a.Bad) > 0 {
			cfg.Logger.Warn("webhook", "result", result, "status", code, "err", a.Error, "bad", len(a.Bad), "remote", r.RemoteAddr)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(a) // the sender went away: nothing to be done
	})
}

func serve(cfg Config, w http.ResponseWriter, r *http.Request) (code int, a answer, result string) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, answer{Error: "the webhook takes POST"}, "refused"
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, answer{Error: "the webhook takes application/json"}, "refused"
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, cfg.MaxBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge, answer{Error: fmt.Sprintf("more than %d bytes: set max_alerts for this receiver", cfg.MaxBytes)}, "too large"
	}
	if err != nil {
		return http.StatusBadRequest, answer{Error: "read the body: " + err.Error()}, "refused"
	}
	if len(body) == 0 {
		return http.StatusBadRequest, answer{Error: "the body is empty"}, "refused"
	}
	d, err := Decode(body)
	if err != nil {
		return http.StatusBadRequest, answer{Error: err.Error()}, "refused"
	}
	if err := cfg.Deliver(r.Context(), d.Alerts); err != nil {
		w.Header().Set("Retry-After", "5")
		return http.StatusServiceUnavailable, answer{Error: err.Error()}, "journal"
	}
	if d.Truncated > 0 && cfg.Poll != nil {
		cfg.Poll(fmt.Sprintf("%d alerts were cut off", d.Truncated))
	}
	result = "ok"
	if len(d.Bad) > 0 {
		result = "partly bad"
	}
	return http.StatusOK, answer{Accepted: len(d.Alerts), Truncated: d.Truncated, Bad: d.Bad}, result
}
