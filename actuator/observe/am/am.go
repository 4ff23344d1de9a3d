// SPDX-License-Identifier: Apache-2.0

// Package am reads the alerts that Alertmanager holds, by its API v2, so that what a webhook never says (a re-fire
// inside one group interval, a resolve while silenced, a truncated body) is seen all the same. It only reads: its
// transport refuses every method but GET. It compares nothing and decides nothing.
package am

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Config says which Alertmanager to ask, for what and how often.
type Config struct {
	URL       string        `yaml:"url"`        // e.g. http://127.0.0.1:9093; "" = do not poll
	TokenFile string        `yaml:"token_file"` // optional: bearer token, read again for each poll
	Receiver  string        `yaml:"receiver"`   // only alerts routed to receivers that match this anchored regexp; "" = all
	Filter    []string      `yaml:"filter"`     // matchers such as alertname="FabricLinkCongested"
	Every     time.Duration `yaml:"every"`
	Timeout   time.Duration `yaml:"timeout"`
	// Settle is how long after its start Alertmanager is not believed: it begins with no alerts at all and hears of
	// those that fire one by one, at the latest when Prometheus sends them again (1 m by default).
	Settle time.Duration `yaml:"settle"`
}

// DefaultConfig polls a local Alertmanager every 30 s: the poll is the safety net, the webhook is the fast way.
func DefaultConfig() Config {
	return Config{URL: "http://127.0.0.1:9093", Every: 30 * time.Second, Timeout: 5 * time.Second, Settle: 2 * time.Minute}
}

// Validate names each wrong key with what is wrong with it.
func (c Config) Validate() error {
	if c.URL == "" {
		return nil
	}
	var errs []error
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		errs = append(errs, errors.New("url: not a URL"))
	case u.Scheme != "http" && u.Scheme != "https":
		errs = append(errs, fmt.Errorf("url: scheme %q, want http or https", u.Scheme))
	case u.Host == "":
		errs = append(errs, errors.New("url: no host"))
	case u.User != nil:
		errs = append(errs, errors.New("url: credentials in a URL end up in logs; use token_file"))
	case u.RawQuery != "" || u.Fragment != "":
		errs = append(errs, errors.New("url: a query or fragment has no meaning here"))
	}
	if c.Every < 100*time.Millisecond || c.Every > time.Hour {
		errs = append(errs, fmt.Errorf("every: %s is outside 100ms..1h", c.Every))
	}
	if c.Timeout < 100*time.Millisecond || c.Timeout > time.Minute {
		errs = append(errs, fmt.Errorf("timeout: %s is outside 100ms..1m", c.Timeout))
	}
	if c.Settle < 0 || c.Settle > time.Hour {
		errs = append(errs, fmt.Errorf("settle: %s is outside 0s..1h", c.Settle))
	}
	return errors.Join(errs...)
}

// ErrYoung says that Alertmanager has not run long enough to know of every alert that fires.
var ErrYoung = errors.New("it started a short time ago and may not know of every alert yet")

// Alert is one alert as Alertmanager holds it. Only firing alerts are listed; one that has vanished has resolved or
// was lost, which only the caller can tell.
type Alert struct {
	Labels      map[string]string
	Annotations map[string]string
	StartsAt    time.Time
	EndsAt      time.Time
	UpdatedAt   time.Time
	Fingerprint string
	State       string   // active, suppressed or unprocessed
	SilencedBy  []string // ids of silences
	InhibitedBy []string // fingerprints of inhibiting alerts
	MutedBy     []string // names of mute intervals
	Receivers   []string
}

// Suppressed says that people or rules keep the alert from notifying.
func (a Alert) Suppressed() bool { return a.State == "suppressed" }

// maxAnswer bounds one answer.
const maxAnswer = 32 << 20

// Client asks one Alertmanager.
type Client struct {
	cfg  Config
	http *http.Client
}

// New makes a client; it does not connect.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.URL == "" {
		return nil, errors.New("url: empty")
	}
	return &Client{cfg: cfg, http: &http.Client{
		Transport: readOnly{http.DefaultTransport.(*http.Transport).Clone()},
		// A redirect would carry the bearer token to wherever the answer says.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// readOnly refuses every request that could change something (contract 20).
type readOnly struct{ next http.RoundTripper }

// RoundTrip passes GET on and refuses the rest.
func (r readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return nil, fmt.Errorf("%s refused: this client only reads", req.Method)
	}
	return r.next.RoundTrip(req)
}

// Alerts lists what Alertmanager holds now, suppressed alerts included. One alert that cannot be read fails the whole
// list: a poll that misses one would look like a resolve. So does an Alertmanager that is too young (ErrYoung).
func (c *Client) Alerts(ctx context.Context) ([]Alert, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	alerts, err := c.alerts(ctx)
	if err != nil {
		return nil, fmt.Errorf("poll Alertmanager %s: %w", c.cfg.URL, err)
	}
	return alerts, nil
}

func (c *Client) alerts(ctx context.Context) ([]Alert, error) {
	values := url.Values{"active": {"true"}, "silenced": {"true"}, "inhibited": {"true"}, "unprocessed": {"true"}, "filter": c.cfg.Filter}
	if c.cfg.Receiver != "" {
		values.Set("receiver", c.cfg.Receiver)
	}
	body, _, err := c.get(ctx, "/api/v2/alerts?"+values.Encode())
	if err != nil {
		return nil, err
	}
	alerts, err := decode(body)
	if err != nil || c.cfg.Settle == 0 {
		return alerts, err
	}
	// Asked after the list: one that restarted in between is young, too.
	body, date, err := c.get(ctx, "/api/v2/status")
	if err != nil {
		return nil, err
	}
	var status struct {
		Uptime time.Time `json:"uptime"` // when it started, in spite of the name
	}
	if err := json.Unmarshal(body, &status); err != nil || status.Uptime.IsZero() {
		return nil, errors.Join(errors.New("decode status: no start time"), err)
	}
	if age := date.Sub(status.Uptime); age < c.cfg.Settle { // both by its own clock
		return nil, fmt.Errorf("%w (%s ago, believed after %s)", ErrYoung, age.Round(time.Second), c.cfg.Settle)
	}
	return alerts, nil
}

// get reads one resource, and the server's own time.
func (c *Client) get(ctx context.Context, path string) ([]byte, time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.cfg.URL, "/")+path, nil)
	if err != nil {
		return nil, time.Time{}, err
	}
	req.Header.Set("Accept", "application/json")
	if c.cfg.TokenFile != "" {
		b, err := os.ReadFile(c.cfg.TokenFile)
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("read token file: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(b)))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		// url.Error repeats the whole URL with the query; the cause is what a reader needs.
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, time.Time{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, time.Time{}, fmt.Errorf("read answer: %w", err)
	case len(body) > maxAnswer:
		return nil, time.Time{}, fmt.Errorf("answer is longer than %d MiB", maxAnswer>>20)
	case resp.StatusCode != http.StatusOK:
		return nil, time.Time{}, fmt.Errorf("status %d: %.200q", resp.StatusCode, body)
	}
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		date = time.Time{} // then it counts as young
	}
	return body, date, nil
}

// wire is an alert on the wire (Alertmanager's api/v2/openapi.yaml, gettableAlert). Members that newer servers add
// are passed over; values are pointers because the decoder would turn a null label into an empty string.
type wire struct {
	Labels      map[string]*string `json:"labels"`
	Annotations map[string]*string `json:"annotations"`
	StartsAt    time.Time          `json:"startsAt"`
	EndsAt      time.Time          `json:"endsAt"`
	UpdatedAt   time.Time          `json:"updatedAt"`
	Fingerprint string             `json:"fingerprint"`
	Status      struct {
		State       string   `json:"state"`
		SilencedBy  []string `json:"silencedBy"`
		InhibitedBy []string `json:"inhibitedBy"`
		MutedBy     []string `json:"mutedBy"`
	} `json:"status"`
	Receivers []struct {
		Name string `json:"name"`
	} `json:"receivers"`
}

func decode(body []byte) ([]Alert, error) {
	var wires []wire
	if err := json.Unmarshal(body, &wires); err != nil {
		return nil, fmt.Errorf("decode alerts: %w", err)
	}
	if wires == nil {
		return nil, errors.New("decode alerts: null, want a list")
	}
	alerts := make([]Alert, 0, len(wires))
	for i, w := range wires {
		a := Alert{
			StartsAt: w.StartsAt, EndsAt: w.EndsAt, UpdatedAt: w.UpdatedAt, Fingerprint: w.Fingerprint, State: w.Status.State,
			SilencedBy: w.Status.SilencedBy, InhibitedBy: w.Status.InhibitedBy, MutedBy: w.Status.MutedBy,
		}
		var err error
		if a.Labels, err = plain(w.Labels); err != nil {
			return nil, fmt.Errorf("decode alert %d: labels: %w", i, err)
		}
		if a.Annotations, err = plain(w.Annotations); err != nil {
			return nil, fmt.Errorf("decode alert %d: annotations: %w", i, err)
		}
		switch {
		case a.Labels["alertname"] == "":
			return nil, fmt.Errorf("decode alert %d: no alertname", i)
		case a.Fingerprint == "":
			return nil, fmt.Errorf("decode alert %d (%s): no fingerprint", i, a.Labels["alertname"])
		case a.StartsAt.IsZero():
			return nil, fmt.Errorf("decode alert %d (%s): no start time", i, a.Labels["alertname"])
		}
		for _, r := range w.Receivers {
			a.Receivers = append(a.Receivers, r.Name)
		}
		alerts = append(alerts, a)
	}
	return alerts, nil
}

func plain(m map[string]*string) (map[string]string, error) {
	out := make(map[string]string, len(m))
	for k, v := range m {
		if v == nil {
			return nil, fmt.Errorf("%.100q is null", k)
		}
		out[k] = *v
	}
	return out, nil
}
