// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/api"
	"github.com/trainyard/trainyard/actuator/api/apitest"
	"github.com/trainyard/trainyard/actuator/api/shadow"
)

func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		fmt.Fprint(w, s)
	})
}

func handler(t *testing.T, y *apitest.Yard, listen string, tokens []api.Token) http.Handler {
	t.Helper()
	h, err := api.Handler(api.Options{
		Listen: listen, Tokens: tokens, Version: "test", Yard: y, Webhook: text("taken"), Metrics: text("# metrics\n"),
		Now: func() time.Time { return apitest.Start.Add(2 * time.Hour) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const loopback = "127.0.0.1:9610"

type request struct {
	method, path, body string
	header             map[string]string
	host               string
}

func (q request) to(h http.Handler) (int, string) {
	r := httptest.NewRequest(q.method, "http://127.0.0.1:9610"+q.path, strings.NewReader(q.body))
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for k, v := range q.header {
		r.Header.Set(k, v)
	}
	if q.host != "" {
		r.Host = q.host
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

const p = api.Prefix

// TestStories: who asks for what gets which answer.
func TestStories(t *testing.T) {
	for _, c := range []struct {
		name   string
		q      request
		edit   func(*apitest.Yard)
		status int
		want   string // in the body
		said   string // what the yard was told
	}{
		{"list", request{method: "GET", path: p + "/incidents"}, nil, 200, `"incidents":[{"id":"inc-mzxw6ytb-6"`, ""},
		{"list of open ones", request{method: "GET", path: p + "/incidents?open=true&limit=1"}, nil, 200, `"state":"asked"`, ""},
		{"unknown parameter", request{method: "GET", path: p + "/incidents?opne=true"}, nil, 422, "opne", ""},
		{"one", request{method: "GET", path: p + "/incidents/inc-mzxw6ytb-1"}, nil, 200, `"target":"lab/l1:sp1"`, ""},
		{"none", request{method: "GET", path: p + "/incidents/inc-x-9"}, nil, 404, `there is no incident \"inc-x-9\"`, ""},
		{"approve", request{method: "POST", path: p + "/incidents/inc-mzxw6ytb-6/approve"}, nil, 200, `"actor":"loopback user"`, "loopback user approves inc-mzxw6ytb-6"},
		{"deny", request{method: "POST", path: p + "/incidents/inc-mzxw6ytb-6/deny", body: "{}"}, nil, 200, `"actor":"loopback user"`, "loopback user denies inc-mzxw6ytb-6"},
		{"approve what asks nothing", request{method: "POST", path: p + "/incidents/inc-mzxw6ytb-1/approve"}, nil, 409, "asks nothing: it is holding", ""},
		{"release", request{method: "POST", path: p + "/incidents/inc-mzxw6ytb-1/release"}, nil, 200, "", "loopback user releases inc-mzxw6ytb-1"},
		{"release what is over", request{method: "POST", path: p + "/incidents/inc-mzxw6ytb-2/release"}, nil, 409, "is over: it is refused", ""},
		{"stop", request{method: "POST", path: p + "/stop", body: "{}"}, nil, 200, "", "loopback user stops, withdraw false"},
		{"stop and withdraw", request{method: "POST", path: p + "/stop", body: `{"withdraw":true}`}, nil, 200, "", "loopback user stops, withdraw true"},
		{"stop with a typing error", request{method: "POST", path: p + "/stop", body: `{"witdraw":true}`}, nil, 422, "witdraw", ""},
		{"stop without a body", request{method: "POST", path: p + "/stop"}, nil, 400, "body", ""},
		{"stop with a huge body", request{method: "POST", path: p + "/stop", body: `{"withdraw":true` + strings.Repeat(" ", 1<<20) + "}"}, nil, 413, "", ""},
		{"resume", request{method: "DELETE", path: p + "/stop"}, nil, 200, "", "loopback user resumes"},
		{"journal full", request{method: "POST", path: p + "/stop", body: "{}"}, func(y *apitest.Yard) { y.Broken = apitest.ErrJournal }, 503, "not journalled: append to journal", ""},
		{"journal full, but the routes go", request{method: "POST", path: p + "/stop", body: `{"withdraw":true}`}, func(y *apitest.Yard) { y.Broken = apitest.ErrJournal }, 503, "the routes are taken back all the same", ""},
		{"answered meanwhile", request{method: "POST", path: p + "/incidents/inc-mzxw6ytb-6/approve"}, func(y *apitest.Yard) { y.Broken = api.ErrConflict }, 409, "not possible in this state", ""},
		{"approve by link", request{method: "GET", path: p + "/incidents/inc-mzxw6ytb-6/approve"}, nil, 405, "", ""},
		{"stop by link", request{method: "GET", path: p + "/stop"}, nil, 405, "", ""},
		{"webhook by link", request{method: "GET", path: "/webhook/alertmanager"}, nil, 405, "", ""},
		{"shadow", request{method: "GET", path: p + "/shadow"}, nil, 200, `"would":{"act":2,"nothing":1}`, ""},
		{"shadow since a time", request{method: "GET", path: p + "/shadow?since=2026-11-30T12:34:30Z"}, nil, 200, `"would":{"act":1}`, ""},
		{"shadow since when?", request{method: "GET", path: p + "/shadow?since=yesterday"}, nil, 422, "is neither a duration", ""},
		{"status", request{method: "GET", path: p + "/status"}, nil, 200, `"open_incidents":2`, ""},
		{"webhook", request{method: "POST", path: "/webhook/alertmanager", body: "{}"}, nil, 200, "taken", ""},
		{"metrics", request{method: "GET", path: "/metrics"}, nil, 200, "# metrics", ""},
		{"ready", request{method: "GET", path: "/-/ready"}, nil, 200, "ready", ""},
		{"not ready", request{method: "GET", path: "/-/ready"}, func(y *apitest.Yard) { y.NotReady = apitest.ErrJournal }, 503, "not ready: append to journal", ""},
		{"healthy", request{method: "GET", path: "/-/healthy"}, nil, 200, "healthy", ""},
		{"nothing here", request{method: "GET", path: "/"}, nil, 404, "", ""},
		{"a page in a browser posts", request{method: "POST", path: p + "/incidents/inc-mzxw6ytb-6/approve", header: map[string]string{"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}}, nil, 403, "cross-origin", ""},
		{"a name that somebody resolved to us", request{method: "GET", path: p + "/incidents", host: "evil.example"}, nil, 421, "only loopback names are answered", ""},
		{"localhost", request{method: "GET", path: p + "/status", host: "localhost:9610"}, nil, 200, "", ""},
		{"IPv6 loopback", request{method: "GET", path: p + "/status", host: "[::1]:9610"}, nil, 200, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := apitest.New(apitest.All()...)
			if c.edit != nil {
				c.edit(y)
			}
			status, body := c.q.to(handler(t, y, loopback, nil))
			if status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("status %d, want %d; body %.600s\nwant %q in it", status, c.status, body, c.want)
			}
			if got := strings.Join(y.Said(), "; "); got != c.said {
				t.Errorf("the yard was told %q, want %q", got, c.said)
			}
		})
	}
}

func tokens() []api.Token {
	return []api.Token{
		{Actor: "anna", Roles: []api.Role{api.View, api.Operate}, Token: "anna-anna-anna-anna-anna"},
		{Actor: "grafana", Roles: []api.Role{api.View}, Token: "graf-graf-graf-graf-graf"},
		{Actor: "alertmanager", Roles: []api.Role{api.Alert}, Token: "alrt-alrt-alrt-alrt-alrt"},
	}
}

// TestTokens: with credentials everybody must show one, roles do not include each other, and the actor is the token's.
func TestTokens(t *testing.T) {
	bearer := func(s string) map[string]string { return map[string]string{"Authorization": "Bearer " + s} }
	const anna, grafana, am = "anna-anna-anna-anna-anna", "graf-graf-graf-graf-graf", "alrt-alrt-alrt-alrt-alrt"
	approve := p + "/incidents/inc-mzxw6ytb-6/approve"
	for _, c := range []struct {
		name   string
		q      request
		status int
		said   string
	}{
		{"nobody reads", request{method: "GET", path: p + "/incidents"}, 401, ""},
		{"nobody approves", request{method: "POST", path: approve}, 401, ""},
		{"nobody alerts", request{method: "POST", path: "/webhook/alertmanager"}, 401, ""},
		{"nobody reads metrics", request{method: "GET", path: "/metrics"}, 401, ""},
		{"nobody reads the description", request{method: "GET", path: p + "/openapi.json"}, 401, ""},
		{"a stranger", request{method: "GET", path: p + "/incidents", header: bearer("wrong-wrong-wrong-wrong")}, 401, ""},
		{"another scheme", request{method: "GET", path: p + "/incidents", header: map[string]string{"Authorization": "Basic " + anna}}, 401, ""},
		{"anna reads", request{method: "GET", path: p + "/incidents", header: bearer(anna)}, 200, ""},
		{"anna approves", request{method: "POST", path: approve, header: bearer(anna)}, 200, "anna approves inc-mzxw6ytb-6"},
		{"anna is no Alertmanager", request{method: "POST", path: "/webhook/alertmanager", header: bearer(anna)}, 403, ""},
		{"grafana reads", request{method: "GET", path: "/metrics", header: bearer(grafana)}, 200, ""},
		{"grafana approves nothing", request{method: "POST", path: approve, header: bearer(grafana)}, 403, ""},
		{"Alertmanager alerts", request{method: "POST", path: "/webhook/alertmanager", header: bearer(am)}, 200, ""},
		{"Alertmanager approves nothing", request{method: "POST", path: approve, header: bearer(am)}, 403, ""},
		{"Alertmanager reads nothing", request{method: "GET", path: p + "/incidents", header: bearer(am)}, 403, ""},
		{"probes need none", request{method: "GET", path: "/-/healthy"}, 200, ""},
		{"another host name is fine", request{method: "GET", path: p + "/incidents", header: bearer(anna), host: "actuator.example"}, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := apitest.New(apitest.All()...)
			status, body := c.q.to(handler(t, y, "0.0.0.0:9610", tokens()))
			if status != c.status || strings.Contains(body, anna) || strings.Contains(body, "wrong-wrong") {
				t.Errorf("status %d, want %d; body %.300s", status, c.status, body)
			}
			if got := strings.Join(y.Said(), "; "); got != c.said {
				t.Errorf("the yard was told %q, want %q", got, c.said)
			}
		})
	}
}

// TestOpenWithoutCredentials: the handler itself refuses, whoever builds it.
func TestOpenWithoutCredentials(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:9610", ":9610", "10.255.0.254:9610", "[::]:9610", "actuator.example:9610", "nonsense"} {
		if _, err := api.Handler(api.Options{Listen: listen, Yard: apitest.New(), Webhook: text(""), Metrics: text("")}); err == nil {
			t.Errorf("%s: no error", listen)
		}
	}
}

// TestGetChangesNothing calls every GET of the served description and looks whether the yard was told anything.
func TestGetChangesNothing(t *testing.T) {
	y := apitest.New(apitest.All()...)
	h := handler(t, y, loopback, nil)
	status, body := request{method: "GET", path: p + "/openapi.json"}.to(h)
	var doc struct {
		OpenAPI string                               `json:"openapi"`
		Paths   map[string]map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || status != 200 || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Fatalf("description: status %d, version %q, %v", status, doc.OpenAPI, err)
	}
	var got []string
	for path, methods := range doc.Paths {
		for m := range methods {
			got = append(got, strings.ToUpper(m)+" "+strings.TrimPrefix(path, p))
			url := strings.ReplaceAll(path, "{id}", "inc-mzxw6ytb-6")
			for _, method := range []string{"GET", "HEAD"} {
				request{method: method, path: url}.to(h)
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"DELETE /stop", "GET /incidents", "GET /incidents/{id}", "GET /shadow", "GET /status", "POST /incidents/{id}/approve",
		"POST /incidents/{id}/deny", "POST /incidents/{id}/release", "POST /stop",
	}
	if !slices.Equal(got, want) {
		t.Errorf("operations\n%q\nwant\n%q", got, want)
	}
	if said := y.Said(); len(said) != 0 {
		t.Errorf("GET told the yard %q", said)
	}
}

func TestLoadTokens(t *testing.T) {
	write := func(s string) string {
		path := filepath.Join(t.TempDir(), "tokens.yaml")
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, err := api.LoadTokens(write("tokens:\n- {actor: anna, roles: [view, operate], token: hunter2hunter2hunter2}\n"))
	if err != nil || len(got) != 1 || got[0].Actor != "anna" || string(got[0].Token) != "hunter2hunter2hunter2" {
		t.Fatalf("%v, %v", got, err)
	}
	if s := fmt.Sprintf("%v %+v %#v %s", got, got, got, got[0].Token); strings.Contains(s, "hunter2") {
		t.Errorf("a token shows itself: %s", s)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "tokens: []\n", "tokens: empty"},
		{"short", "tokens:\n- {actor: anna, roles: [view], token: hunter2}\n", "tokens[0].token: 7 characters, want at least 20"},
		{"role", "tokens:\n- {actor: anna, roles: [admin], token: hunter2hunter2hunter2}\n", `tokens[0].roles: "admin" is none of view, operate, alert`},
		{"no role", "tokens:\n- {actor: anna, token: hunter2hunter2hunter2}\n", "tokens[0].roles: empty"},
		{"no actor", "tokens:\n- {roles: [view], token: hunter2hunter2hunter2}\n", "tokens[0].actor: want 1 to 100 printable characters"},
		{"twice", "tokens:\n- {actor: a, roles: [view], token: hunter2hunter2hunter2}\n- {actor: b, roles: [view], token: hunter2hunter2hunter2}\n", "tokens[1].token: the same as that of tokens[0]"},
		{"unknown key", "tokens:\n- {actor: anna, token: hunter2hunter2hunter2, role: view}\n", `line 2`},
		{"no YAML", "tokens: [hunter2hunter2hunter2", "tokens file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := api.LoadTokens(write(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestShadow(t *testing.T) {
	r := shadow.Make(apitest.All(), apitest.Start, apitest.Start.Add(time.Hour))
	if r.Incident != 3 || r.Would[shadow.Act] != 2 || r.Would[shadow.Nothing] != 1 || r.Followed[shadow.Right] != 1 || r.Followed[shadow.Needless] != 1 || *r.RightRatio != 0.5 {
		t.Errorf("%+v", r)
	}
	if r := shadow.Make(nil, apitest.Start, apitest.Start); r.RightRatio != nil || r.Lines == nil {
		t.Errorf("%+v", r)
	}
}
