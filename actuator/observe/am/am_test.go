// SPDX-License-Identifier: Apache-2.0

package am_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/actuator/observe/am"
)

// recorded is the shape of an answer of Alertmanager 0.35.0 to GET /api/v2/alerts, written by hand.
const recorded = `[
 {"annotations":{"summary":"l1:sp1 is congested"},"endsAt":"2026-11-30T12:04:00.000Z","fingerprint":"8d4f3c2b1a09e7f6",
  "receivers":[{"name":"actuator"},{"name":"slack"}],"startsAt":"2026-11-30T12:00:00.000Z",
  "status":{"inhibitedBy":[],"mutedBy":[],"silencedBy":["5b0f"],"state":"suppressed"},
  "updatedAt":"2026-11-30T12:00:01.000Z","generatorURL":"http://prometheus/graph",
  "labels":{"alertname":"FabricLinkCongested","link":"lab/l1:sp1","severity":"warning"}}
]
`

func client(t *testing.T, h http.HandlerFunc, edit func(*am.Config)) *am.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	cfg := am.DefaultConfig()
	cfg.URL, cfg.Settle = srv.URL, 0
	if edit != nil {
		edit(&cfg)
	}
	c, err := am.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAlerts(t *testing.T) {
	var asked string
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.RequestURI()
		fmt.Fprint(w, recorded)
	}, func(c *am.Config) {
		c.Receiver = "actuator"
		c.Filter = []string{`alertname="FabricLinkCongested"`, `fabric="lab"`}
	})
	got, err := c.Alerts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := []am.Alert{{
		Labels:      map[string]string{"alertname": "FabricLinkCongested", "link": "lab/l1:sp1", "severity": "warning"},
		Annotations: map[string]string{"summary": "l1:sp1 is congested"},
		StartsAt:    time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		EndsAt:      time.Date(2026, 11, 30, 12, 4, 0, 0, time.UTC),
		UpdatedAt:   time.Date(2026, 11, 30, 12, 0, 1, 0, time.UTC),
		Fingerprint: "8d4f3c2b1a09e7f6", State: "suppressed", SilencedBy: []string{"5b0f"}, InhibitedBy: []string{}, MutedBy: []string{},
		Receivers: []string{"actuator", "slack"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !got[0].Suppressed() {
		t.Error("a silenced alert is not called suppressed")
	}
	if want := "GET /api/v2/alerts?active=true&filter=alertname%3D%22FabricLinkCongested%22&filter=fabric%3D%22lab%22&inhibited=true&receiver=actuator&silenced=true&unprocessed=true"; asked != want {
		t.Errorf("asked %s\nwant  %s", asked, want)
	}
}

// TestRefused: an answer that is not wholly understood is an error, never a shorter list, since a missing alert
// would look like a resolved one.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"html", "<html>", "decode alerts"},
		{"null", "null", "null, want a list"},
		{"object", `{"alerts":[]}`, "decode alerts"},
		{"null label", strings.Replace(recorded, `"lab/l1:sp1"`, "null", 1), `labels: "link" is null`},
		{"doubled label", strings.Replace(recorded, `"severity":`, `"link":`, 1), "duplicate object member name"},
		{"no name", strings.Replace(recorded, `"alertname"`, `"alert"`, 1), "no alertname"},
		{"no fingerprint", strings.Replace(recorded, `8d4f3c2b1a09e7f6`, ``, 1), "no fingerprint"},
		{"no start", strings.Replace(recorded, `"startsAt":"2026-11-30T12:00:00.000Z",`, ``, 1), "no start time"},
		{"cut", recorded[:200], "decode alerts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := client(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.body) }, nil).Alerts(context.Background())
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "poll Alertmanager http://127") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not yet", http.StatusServiceUnavailable) }, nil)
	if _, err := c.Alerts(context.Background()); err == nil || !strings.Contains(err.Error(), `status 503: "not yet\n"`) {
		t.Errorf("error %v", err)
	}
	c = client(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(c *am.Config) { c.Timeout = 100 * time.Millisecond })
	if _, err := c.Alerts(context.Background()); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("error %v", err)
	}
}

// TestYoung: an Alertmanager that has just started knows of no alert, which must not look as if all had resolved.
func TestYoung(t *testing.T) {
	started := time.Now().Add(-time.Minute)
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v2/status" {
			fmt.Fprintf(w, `{"uptime":%q,"cluster":{"status":"ready"}}`, started.Format(time.RFC3339Nano))
			return
		}
		fmt.Fprint(w, "[]")
	}, func(c *am.Config) { c.Settle = 2 * time.Minute })
	if _, err := c.Alerts(context.Background()); !errors.Is(err, am.ErrYoung) {
		t.Errorf("error %v", err)
	}
	started = started.Add(-2 * time.Minute)
	if alerts, err := c.Alerts(context.Background()); err != nil || alerts == nil || len(alerts) != 0 {
		t.Errorf("%v, error %v", alerts, err)
	}
}

func TestConfig(t *testing.T) {
	for url, want := range map[string]string{
		"alertmanager:9093":   "url: scheme",
		"http://u:secret@h":   "url: credentials",
		"http://h/?q":         "url: a query",
		"http://h:x":          "url: not a URL",
		"":                    "",
		"https://h/am/prefix": "",
	} {
		cfg := am.DefaultConfig()
		cfg.URL = url
		err := cfg.Validate()
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: error %v, want %q", url, err, want)
		}
	}
}
