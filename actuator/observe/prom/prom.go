// SPDX-License-Identifier: Apache-2.0

// Package prom reads one moment of the yard from Prometheus: topology, loads, NICs and jobs, all evaluated at one
// time that Prometheus itself gave, so that ages are Prometheus' ages (contract 6). It only reads: its transport
// refuses every method but GET. It decides nothing; what is missing, stale or does not add up is said in words in
// the snapshot's Problems, for guard to refuse on.
//
// Asking (this file, http.go, decode.go) and understanding (build.go and its neighbours) are apart: Build is pure
// and may be given recorded answers.
package prom

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/trainyard/actuator/fleet"
)

// Config says which Prometheus to ask and how fresh its data must be.
type Config struct {
	URL       string        `yaml:"url"`        // e.g. http://127.0.0.1:9090; a path prefix is kept
	TokenFile string        `yaml:"token_file"` // optional: bearer token, read again for each snapshot
	Fabric    string        `yaml:"fabric"`     // which fabric to look at; "" = there must be exactly one
	Window    time.Duration `yaml:"window"`     // over which raw counters become rates; at least 2 scrape intervals
	MaxAge    time.Duration `yaml:"max_age"`    // data older than this is a problem
	Timeout   time.Duration `yaml:"timeout"`    // for one whole snapshot
}

// DefaultConfig is for production: 15 s scrapes, so a window of 1 m holds four samples and data is stale after it
// missed two scrapes (45 s).
func DefaultConfig() Config {
	return Config{URL: "http://127.0.0.1:9090", Window: time.Minute, MaxAge: 45 * time.Second, Timeout: 10 * time.Second}
}

// LabConfig is for the lab and the plant: 0.5 s scrapes and the window of the lab's recording rules (field rule 18).
func LabConfig() Config {
	c := DefaultConfig()
	c.Window, c.MaxAge, c.Timeout = 2*time.Second, 3*time.Second, 2*time.Second
	return c
}

// Validate names each wrong key with what is wrong with it.
func (c Config) Validate() error {
	var errs []error
	if err := checkURL(c.URL); err != nil {
		errs = append(errs, fmt.Errorf("url: %w", err))
	}
	if strings.ContainsAny(c.Fabric, "/:\"\\\n") {
		errs = append(errs, fmt.Errorf("fabric: %q holds a character that no fabric name may hold", c.Fabric))
	}
	for _, d := range []struct {
		key   string
		value time.Duration
		least time.Duration
		most  time.Duration
	}{
		{"window", c.Window, time.Second, time.Hour},
		{"max_age", c.MaxAge, time.Second, time.Hour},
		{"timeout", c.Timeout, 100 * time.Millisecond, time.Minute},
	} {
		if d.value < d.least || d.value > d.most {
			errs = append(errs, fmt.Errorf("%s: %s is outside %s..%s", d.key, d.value, d.least, d.most))
		}
	}
	return errors.Join(errs...)
}

func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		// The parse error repeats the URL, which may hold a password.
		return errors.New("not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("scheme %q, want http or https", u.Scheme)
	case u.Host == "":
		return errors.New("no host")
	case u.User != nil:
		return errors.New("credentials in a URL end up in logs; use token_file")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("a query or fragment has no meaning here")
	}
	return nil
}

// concurrent bounds the queries in flight; Prometheus itself runs at most 20 by default and people use it too.
const concurrent = 8

// Observer asks one Prometheus for snapshots.
type Observer struct {
	cfg    Config
	client *client
}

// New makes an observer; it does not connect.
func New(cfg Config) (*Observer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Observer{cfg: cfg, client: newClient(cfg.URL)}, nil
}

// Observe reads the yard at Prometheus' present time. A query that gets no answer is an error, not a picture with a
// hole: half a topology would make a target look unknown, while a moment later the same question may be answered. What
// Prometheus does answer, but has not got, is a Problem of the snapshot.
func (o *Observer) Observe(ctx context.Context) (fleet.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	results, err := o.ask(ctx)
	if err != nil {
		return fleet.Snapshot{}, fmt.Errorf("observe by Prometheus %s: %w", o.cfg.URL, err)
	}
	return Build(results, Limits{Fabric: o.cfg.Fabric, MaxAge: o.cfg.MaxAge}), nil
}

// ask runs all queries at one evaluation time.
func (o *Observer) ask(ctx context.Context) (Results, error) {
	token, err := o.token()
	if err != nil {
		return Results{}, err
	}
	now, err := o.client.serverTime(ctx, token)
	if err != nil {
		return Results{}, err
	}
	results := Results{At: now, Vectors: map[Query][]Sample{}, Failures: map[Query]string{}}
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		gate = make(chan struct{}, concurrent)
	)
	for _, q := range queries {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			samples, warnings, err := o.answer(ctx, token, q, now)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				results.Failures[q.name] = err.Error()
				return
			}
			results.Vectors[q.name] = samples
			for _, w := range warnings {
				results.Warnings = append(results.Warnings, fmt.Sprintf("%s: %s", q.name, w))
			}
		})
	}
	wg.Wait()
	if n := len(results.Failures); n > 0 {
		first := slices.Min(slices.Collect(maps.Keys(results.Failures)))
		return Results{}, fmt.Errorf("%d of %d queries failed, the first (%s): %s", n, len(queries), first, results.Failures[first])
	}
	return results, nil
}

// answer asks one question.
func (o *Observer) answer(ctx context.Context, token string, q question, at time.Time) ([]Sample, []string, error) {
	body, err := o.client.query(ctx, token, q.text(o.cfg), at)
	switch {
	case err != nil:
		return nil, nil, err
	case q.per != nil:
		return decodeRates(body, q.per, at, o.cfg.Window)
	default:
		return decodeVector(body, at)
	}
}

// token is read for each snapshot, so that a rotated file needs no restart.
func (o *Observer) token() (string, error) {
	if o.cfg.TokenFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(o.cfg.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read token file: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("token file %s: want one non-empty line", o.cfg.TokenFile)
	}
	return token, nil
}
