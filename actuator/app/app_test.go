// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/act/acttest"
	"github.com/trainyard/trainyard/actuator/api/shadow"
	"github.com/trainyard/trainyard/actuator/app"
	"github.com/trainyard/trainyard/actuator/config"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/observe/prom/promtest"
	"github.com/trainyard/trainyard/actuator/plan"
)

// yard is the whole loop without a lab: the real actuator with its journal on disk and its API on a port, a fake
// Prometheus whose yard obeys the routes of a driver in memory, and a test that plays Alertmanager.
type yard struct {
	t      *testing.T
	dir    string
	prom   *promtest.Server
	driver *driver
	log    *bytes.Buffer

	alertmanager string // URL of one to poll; "" = the test plays it by webhook alone

	url  string
	app  *app.App
	stop func() error
}

// driver is the fake driver whose routes the yard obeys. It outlives restarts, as switches do.
type driver struct {
	*acttest.Fake
	prom *promtest.Server
}

func (d *driver) told(r act.Result) act.Result {
	routes, err := d.Read(context.Background())
	if err != nil {
		panic(err)
	}
	d.prom.Change(func(y *promtest.Yard) { y.Routes = routes })
	return r
}

// Apply implements act.Driver.
func (d *driver) Apply(ctx context.Context, p act.Permit, r plan.Route) act.Result {
	return d.told(d.Fake.Apply(ctx, p, r))
}

// Withdraw implements act.Driver.
func (d *driver) Withdraw(ctx context.Context, p act.Permit, k plan.RouteKey) act.Result {
	return d.told(d.Fake.Withdraw(ctx, p, k))
}

// WithdrawAll implements act.Driver.
func (d *driver) WithdrawAll(ctx context.Context) act.Result { return d.told(d.Fake.WithdrawAll(ctx)) }

// Close implements act.Driver: graceful restart keeps the routes in the switches.
func (d *driver) Close(ctx context.Context, keep bool) error {
	if keep {
		return nil
	}
	d.WithdrawAll(ctx)
	return nil
}

const policies = `version: 1
policies:
  - name: lab links
    match: {alerts: [FabricLinkCongested], clusters: ["*"], fabrics: [lab]}
    goal: relieve-link
    mode: %s
    settle: 100ms
    hold: 300ms
    cooldown: 1s
    verify_deadline: 10s
    decide_deadline: 10s
    max_data_age: 3s
`

func (y *yard) config() config.Config {
	c := config.Default(config.Lab)
	c.Listen = "127.0.0.1:0"
	c.Prometheus.URL, c.Prometheus.Fabric = y.prom.URL, promtest.Fabric
	c.Alertmanager.URL, c.Alertmanager.Every, c.Alertmanager.Settle = y.alertmanager, 100*time.Millisecond, 0
	c.JournalDir, c.PoliciesFile, c.StopFile = filepath.Join(y.dir, "journal"), filepath.Join(y.dir, "policies.yaml"), filepath.Join(y.dir, "stop")
	c.Prometheus.Timeout = 10 * time.Second // the machine may be busy with other things
	c.Timers = config.Timers{Observe: 100 * time.Millisecond, Reconcile: 100 * time.Millisecond}
	return c
}

func newYard(t *testing.T, mode string) *yard { return newYardPolling(t, mode, "") }

func newYardPolling(t *testing.T, mode, alertmanager string) *yard {
	t.Helper()
	y := &yard{t: t, dir: t.TempDir(), log: &bytes.Buffer{}, alertmanager: alertmanager}
	y.write("policies.yaml", fmt.Sprintf(policies, mode))
	c := config.Default(config.Lab).Prometheus
	c.Fabric = promtest.Fabric
	y.prom = promtest.Serve(t, promtest.Collision(), c)
	y.driver = &driver{Fake: &acttest.Fake{}, prom: y.prom}
	y.start()
	t.Cleanup(func() {
		if err := y.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", y.log)
		}
	})
	return y
}

func (y *yard) write(name, text string) {
	y.t.Helper()
	if err := os.WriteFile(filepath.Join(y.dir, name), []byte(text), 0o600); err != nil {
		y.t.Fatal(err)
	}
}

// lockedBuffer lets many goroutines log into one buffer.
type lockedBuffer struct {
	mu sync.Mutex
	b  *bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (y *yard) start() {
	y.t.Helper()
	a, err := app.New(y.config(), app.Options{
		Driver:  func(act.Permit, *slog.Logger) (act.Driver, error) { return y.driver, nil },
		Logger:  slog.New(slog.NewTextHandler(&lockedBuffer{b: y.log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Version: "test",
	})
	if err != nil {
		y.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	y.app, y.url = a, "http://"+a.Addr()
	y.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	y.wait("ready", func() bool { return y.get("/-/ready", nil) == 200 })
}

// wait polls until the condition holds; every wait of the test has the same generous limit.
func (y *yard) wait(what string, ok func() bool) {
	y.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	y.t.Fatalf("waited in vain for %s; incidents: %s", what, y.stories())
}

func (y *yard) get(path string, out any) int {
	y.t.Helper()
	resp, err := http.Get(y.url + path)
	if err != nil {
		y.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		y.t.Fatal(err)
	}
	switch out := out.(type) {
	case nil:
	case *string:
		*out = string(body)
	default:
		if err := json.Unmarshal(body, out); err != nil {
			y.t.Fatalf("%s: %v: %.300s", path, err, body)
		}
	}
	return resp.StatusCode
}

func (y *yard) post(path, body string) (int, string) {
	y.t.Helper()
	resp, err := http.Post(y.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		y.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// alert posts what Alertmanager would post.
func (y *yard) alert(status string, began time.Time) {
	y.t.Helper()
	ends := "0001-01-01T00:00:00Z"
	if status == "resolved" {
		ends = time.Now().UTC().Format(time.RFC3339Nano)
	}
	body := fmt.Sprintf(`{"version":"4","groupKey":"{}:{link=\"lab/l1:sp1\"}","truncatedAlerts":0,"status":%[1]q,"receiver":"actuator","notification_reason":"first notification",
"groupLabels":{"link":"lab/l1:sp1"},"commonLabels":{},"commonAnnotations":{},"routeLabels":{},"externalURL":"http://127.0.0.1:9093",
"alerts":[{"status":%[1]q,"labels":{"alertname":"FabricLinkCongested","severity":"warning","owner":"network","cluster":"test","fabric":"lab","link":"lab/l1:sp1","switch":"l1","port":"sp1"},
"annotations":{"summary":"lab/l1:sp1 is congested"},"startsAt":%[2]q,"endsAt":%[3]q,"generatorURL":"http://127.0.0.1:9090/graph","fingerprint":"8d4f3c2b1a09e7f6"}]}
`, status, began.UTC().Format(time.RFC3339Nano), ends)
	if code, text := y.post("/webhook/alertmanager", body); code != 200 {
		y.t.Fatalf("webhook answers %d: %s", code, text)
	}
}

func (y *yard) incidents() []flow.View {
	y.t.Helper()
	var list struct{ Incidents []flow.View }
	if code := y.get("/api/v1alpha1/incidents", &list); code != 200 {
		y.t.Fatalf("incidents: status %d", code)
	}
	return list.Incidents
}

// newest waits until the newest incident is in a state, and gives it.
func (y *yard) newest(state flow.IncidentState) flow.View {
	y.t.Helper()
	var v flow.View
	y.wait("an incident to be "+string(state), func() bool {
		list := y.incidents()
		if len(list) > 0 {
			v = list[0]
		}
		return len(list) > 0 && v.State == state
	})
	return v
}

func (y *yard) stories() string {
	var s strings.Builder
	for _, v := range y.incidents() {
		fmt.Fprintf(&s, "\n%s %s: %s", v.ID, v.State, v.Reason)
		for _, e := range v.Timeline {
			fmt.Fprintf(&s, "\n  %s %s: %s", e.At.Format("15:04:05.000"), e.What, e.Why)
		}
	}
	return s.String()
}

func (y *yard) routes() []plan.Route {
	y.t.Helper()
	routes, err := y.driver.Read(context.Background())
	if err != nil {
		y.t.Fatal(err)
	}
	return routes
}

// TestCollisionHealed is the product in one test: an alert, a look, a cause, a plan, a route, a better step time, and
// the route taken back once the alert is gone.
func TestCollisionHealed(t *testing.T) {
	t.Parallel()
	y := newYard(t, "act")
	began := time.Now()
	y.alert("firing", began)
	v := y.newest(flow.Holding)
	if v.Verification == nil || v.Verification.Outcome != flow.Better || v.Diagnosis == nil || string(v.Diagnosis.Cause) != "hash collision" {
		t.Fatalf("verification %+v, diagnosis %+v", v.Verification, v.Diagnosis)
	}
	t.Logf("from alert to verified: %s", v.Verification.At.Sub(began).Round(time.Millisecond))
	if routes := y.routes(); len(routes) != len(v.Steps) || len(routes) == 0 {
		t.Errorf("routes %v for %d steps", routes, len(v.Steps))
	}
	y.alert("resolved", began)
	y.newest(flow.Released)
	if routes := y.routes(); len(routes) != 0 {
		t.Errorf("released, and yet there are %v", routes)
	}
	var metrics string
	y.get("/metrics", &metrics)
	for _, want := range []string{
		`trainyard_incidents_total{outcome="released"} 1`, "trainyard_forecast_error_ratio_count 1", "trainyard_actuator_routes_desired 0",
		`trainyard_actuator_mode{mode="act",pool="default"} 1`, `trainyard_intake_deliveries_total{result="`, "trainyard_journal_append_duration_seconds_count",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// TestWatchWritesNothing: the same collision in mode watch. It says what it would do, and writes zero routes.
func TestWatchWritesNothing(t *testing.T) {
	t.Parallel()
	y := newYard(t, "watch")
	y.alert("firing", time.Now())
	v := y.newest(flow.Watched)
	if v.Chosen == nil || v.Verdict == nil || v.Verdict.Would != "allow" || v.FollowUp == nil {
		t.Errorf("chosen %v, verdict %+v, follow-up %+v", v.Chosen, v.Verdict, v.FollowUp)
	}
	if writes := y.driver.Writes(); len(writes) != 0 {
		t.Errorf("mode watch wrote %q", writes)
	}
	var r shadow.Report
	y.get("/api/v1alpha1/shadow?since=1h", &r)
	if r.Would[shadow.Act] != 1 || r.Followed[shadow.Right] != 1 {
		t.Errorf("shadow %+v", r)
	}
}

// TestAdviseWaits: nothing is written before a human approves, and a human may deny.
func TestAdviseWaits(t *testing.T) {
	t.Parallel()
	y := newYard(t, "advise")
	y.alert("firing", time.Now())
	v := y.newest(flow.Asked)
	if writes := y.driver.Writes(); len(writes) != 0 {
		t.Fatalf("written before anybody approved: %q", writes)
	}
	if code, text := y.post("/api/v1alpha1/incidents/"+string(v.ID)+"/approve", "{}"); code != 200 || !strings.Contains(text, "loopback user") {
		t.Fatalf("approve: %d %s", code, text)
	}
	v = y.newest(flow.Holding)
	if v.ApprovedBy != "loopback user" || len(y.routes()) == 0 {
		t.Errorf("approved by %q, routes %v", v.ApprovedBy, y.routes())
	}
	if code, text := y.post("/api/v1alpha1/stop", `{"withdraw":true}`); code != 200 {
		t.Fatalf("stop: %d %s", code, text)
	}
	y.newest(flow.Released)
	if len(y.routes()) != 0 {
		t.Errorf("stopped and withdrawn, and yet there are %v", y.routes())
	}
}

// TestPrometheusDown: without a picture nothing is done, with the reason, and the loop goes on: once Prometheus is back
// the next alert is treated.
func TestPrometheusDown(t *testing.T) {
	t.Parallel()
	y := newYard(t, "act")
	y.prom.Fail(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "starting up", http.StatusServiceUnavailable)
	})
	began := time.Now()
	y.alert("firing", began)
	var v flow.View
	y.wait("an end without a picture", func() bool {
		list := y.incidents()
		if len(list) > 0 {
			v = list[0]
		}
		return v.Over
	})
	if told := fmt.Sprint(v.Reason, v.Timeline); !strings.Contains(told, `status 503: "starting up"`) || len(y.driver.Writes()) != 0 {
		t.Errorf("state %s, reason %q, writes %q", v.State, v.Reason, y.driver.Writes())
	}
	y.prom.Fail(nil)
	y.alert("resolved", began)
	y.alert("firing", time.Now())
	y.newest(flow.Holding)
}

// TestRestart: the actuator ends while it holds a route. The route stays, the next run takes it over from the journal,
// writes nothing twice, and releases it in the end.
func TestRestart(t *testing.T) {
	t.Parallel()
	y := newYard(t, "act")
	began := time.Now()
	y.alert("firing", began)
	was := y.newest(flow.Holding)
	writes := len(y.driver.Writes())
	if err := y.stop(); err != nil {
		t.Fatal(err)
	}
	if len(y.routes()) == 0 {
		t.Fatal("the route went with the actuator")
	}
	y.start()
	if v := y.newest(flow.Holding); v.ID != was.ID {
		t.Errorf("incident %s became %s", was.ID, v.ID)
	}
	if now := y.driver.Writes(); len(now) != writes {
		t.Errorf("the restart wrote %q", now[writes:])
	}
	y.alert("resolved", began)
	y.newest(flow.Released)
	if len(y.routes()) != 0 {
		t.Errorf("released, and yet there are %v", y.routes())
	}
}

// TestPoll: no webhook ever comes. The poll finds the alert, and finds that it is gone; a poll that fails in between
// must not look like the end of it.
func TestPoll(t *testing.T) {
	t.Parallel()
	var mode atomic.Value
	var broken atomic.Int64
	mode.Store("firing")
	began := time.Now().UTC().Format(time.RFC3339Nano)
	am := promtest.ServeHandler(t, func(w http.ResponseWriter, _ *http.Request) {
		switch mode.Load() {
		case "firing":
			fmt.Fprintf(w, `[{"annotations":{"summary":"hot"},"startsAt":%q,"updatedAt":%[1]q,"endsAt":%[1]q,"fingerprint":"8d4f3c2b1a09e7f6","receivers":[{"name":"actuator"}],
"status":{"state":"active","silencedBy":[],"inhibitedBy":[],"mutedBy":[]},
"labels":{"alertname":"FabricLinkCongested","severity":"warning","owner":"network","fabric":"lab","link":"lab/l1:sp1","switch":"l1","port":"sp1"}}]`, began)
		case "broken":
			broken.Add(1)
			fmt.Fprint(w, `[{"labels":`)
		default:
			fmt.Fprint(w, "[]")
		}
	})
	y := newYardPolling(t, "act", am)
	y.newest(flow.Holding)
	mode.Store("broken")
	seen := broken.Load()
	y.wait("two polls to fail", func() bool { return broken.Load() >= seen+2 })
	if v := y.incidents()[0]; v.State != flow.Holding {
		t.Errorf("a broken poll led to %s", v.State)
	}
	mode.Store("gone")
	y.newest(flow.Released)
}

// TestReload: new policies bind at once, a broken file changes nothing, and what cannot change says so.
func TestReload(t *testing.T) {
	t.Parallel()
	y := newYard(t, "act")
	ctx := context.Background()
	cfg := y.config()
	y.write("policies.yaml", fmt.Sprintf(policies, "watch"))
	if err := y.app.Reload(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	var metrics string
	y.get("/metrics", &metrics)
	if !strings.Contains(metrics, `trainyard_actuator_mode{mode="watch",pool="default"} 1`) {
		t.Error("the new mode does not bind")
	}
	y.write("policies.yaml", "version: 1\npolicies: [{name: x, mod: act}]\n")
	if err := y.app.Reload(ctx, cfg); err == nil || !strings.Contains(err.Error(), `unknown field "mod"`) {
		t.Errorf("error %v", err)
	}
	y.write("policies.yaml", fmt.Sprintf(policies, "act"))
	cfg.Lease, cfg.Driver.Kind = time.Minute, config.BGP
	if err := y.app.Reload(ctx, cfg); err == nil || !strings.Contains(err.Error(), "$.lease: cannot change while running") || !strings.Contains(err.Error(), "$.driver: cannot change") {
		t.Errorf("error %v", err)
	}
	y.get("/metrics", &metrics)
	if !strings.Contains(metrics, `trainyard_actuator_mode{mode="watch",pool="default"} 1`) {
		t.Error("a refused reload changed the mode")
	}
}

// TestCheck names every fault of a configuration at once and disturbs nobody.
func TestCheck(t *testing.T) {
	t.Parallel()
	y := newYard(t, "watch")
	if err := app.Check(y.config()); err != nil {
		t.Errorf("a running actuator's own configuration: %v", err)
	}
	c := y.config()
	c.PoliciesFile, c.Web.TokensFile, c.JournalDir = filepath.Join(y.dir, "none.yaml"), filepath.Join(y.dir, "no-tokens.yaml"), "/does/not/exist"
	c.Web.TLSCertFile, c.Web.TLSKeyFile = "cert.pem", "key.pem"
	err := app.Check(c)
	for _, want := range []string{"read policies: open", "read tokens file: open", "load TLS certificate", "$.journal_dir: neither /does/not/exist nor"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v\nwant %q in it", err, want)
		}
	}
	if _, err := app.New(y.config(), app.Options{}); err == nil || !strings.Contains(err.Error(), "journal") {
		t.Errorf("a second actuator on the same journal: %v", err)
	}
}
