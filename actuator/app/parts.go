// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"

	"github.com/trainyard/trainyard/actuator/api"
	"github.com/trainyard/trainyard/actuator/config"
	"github.com/trainyard/trainyard/actuator/observe/am"
	"github.com/trainyard/trainyard/actuator/observe/prom"
	"github.com/trainyard/trainyard/actuator/policy"
)

// parts are what a reload builds anew and exchanges at once.
type parts struct {
	cfg      config.Config
	tokens   []api.Token
	policies policy.Set
	observer *prom.Observer
	alerts   *am.Client // nil = no poll
	handler  http.Handler
}

// buildParts builds all of them, or nothing.
func buildParts(cfg config.Config) (*parts, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &parts{cfg: cfg}
	var errs []error
	var err error
	if cfg.Web.TokensFile != "" {
		if p.tokens, err = api.LoadTokens(cfg.Web.TokensFile); err != nil {
			errs = append(errs, err)
		}
	}
	if p.policies, err = loadPolicies(cfg.PoliciesFile); err != nil {
		errs = append(errs, err)
	}
	if p.observer, err = prom.New(cfg.Prometheus); err != nil {
		errs = append(errs, fmt.Errorf("prometheus: %w", err))
	}
	if cfg.Alertmanager.URL != "" {
		if p.alerts, err = am.New(cfg.Alertmanager); err != nil {
			errs = append(errs, fmt.Errorf("alertmanager: %w", err))
		}
	}
	return p, errors.Join(errs...)
}

func loadPolicies(path string) (policy.Set, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return policy.Set{}, fmt.Errorf("read policies: %w", err)
	}
	set, err := policy.Parse(text)
	if err != nil {
		return policy.Set{}, fmt.Errorf("policies %s: %w", path, err)
	}
	return set, nil
}

// mount builds the handler of a set of parts.
func (a *App) mount(p *parts) error {
	h, err := api.Handler(api.Options{
		Listen: p.cfg.Listen, Tokens: p.tokens, Version: a.options.Version, Yard: yard{a.loop},
		Webhook: a.webhook(), Metrics: a.metrics.Handler(), Now: now,
	})
	if err != nil {
		return err
	}
	p.handler = h
	return nil
}

// ServeHTTP serves by the handler of the newest configuration.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.parts.Load().handler.ServeHTTP(w, r)
}

// Reload builds everything that may change from a new configuration and then exchanges it at once; on an error the old
// stays in force. What cannot change while running is refused by name. The driver is not touched: its sessions stay up.
func (a *App) Reload(ctx context.Context, cfg config.Config) error {
	a.reloadMu.Lock()
	defer a.reloadMu.Unlock()
	if err := needsRestart(a.cfg, cfg); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	p, err := buildParts(cfg)
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	if err := a.mount(p); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	if err := a.loop.SetPolicies(ctx, p.policies); err != nil {
		return fmt.Errorf("reload: policies: %w", err)
	}
	a.parts.Store(p)
	a.log.Info("configuration reloaded", "policies", p.policies.Hash())
	return nil
}

// needsRestart names what a reload cannot change.
func needsRestart(is, want config.Config) error {
	var errs []error
	for _, k := range []struct {
		key     string
		is, new any
	}{
		{"profile", is.Profile, want.Profile}, {"listen", is.Listen, want.Listen},
		{"web.tls_cert_file", is.Web.TLSCertFile, want.Web.TLSCertFile}, {"web.tls_key_file", is.Web.TLSKeyFile, want.Web.TLSKeyFile},
		{"journal_dir", is.JournalDir, want.JournalDir}, {"stop_file", is.StopFile, want.StopFile}, {"lease", is.Lease, want.Lease},
		{"timers", is.Timers, want.Timers}, {"driver", is.Driver, want.Driver}, {"log", is.Log, want.Log},
		{"prometheus.window", is.Prometheus.Window, want.Prometheus.Window}, {"prometheus.max_age", is.Prometheus.MaxAge, want.Prometheus.MaxAge},
		{"prometheus.timeout", is.Prometheus.Timeout, want.Prometheus.Timeout},
	} {
		if !reflect.DeepEqual(k.is, k.new) {
			errs = append(errs, fmt.Errorf("$.%s: cannot change while running: restart", k.key))
		}
	}
	return errors.Join(errs...)
}
