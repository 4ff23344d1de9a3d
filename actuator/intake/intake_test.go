// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/actuator/flow"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What a real Alertmanager sends is read: the ending newline, UTF-8 label names, the zero end time, truncation.
func TestRealBodies(t *testing.T) {
	for _, c := range []struct {
		file      string
		firing    []bool
		truncated int
	}{
		{"basic_firing.json", []bool{true}, 0},
		{"basic_resolved.json", []bool{false}, 0},
		{"truncated_firing.json", []bool{true, true}, 2},
		{"truncated_resolved.json", []bool{false, false}, 3}, // its status says "resolved", though three fire: nobody reads it
		{"ha_first.json", []bool{true}, 0},
	} {
		d, err := Decode(fixture(t, c.file))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		var firing []bool
		for _, a := range d.Alerts {
			firing = append(firing, a.Firing)
		}
		if !cmp.Equal(firing, c.firing) || d.Truncated != c.truncated || d.Bad != nil {
			t.Errorf("%s: %v, truncated %d, bad %v", c.file, firing, d.Truncated, d.Bad)
		}
	}
	d, err := Decode(fixture(t, "basic_firing.json"))
	if err != nil {
		t.Fatal(err)
	}
	if a := d.Alerts[0]; a.Name != `GPU XID "79"` || a.Labels["k8s/node"] != "n1" || a.Summary != "node ½ ∞ <b>" || a.TargetError == "" {
		t.Errorf("%+v", a)
	}
}

// Two replicas send what is the same to us.
func TestTwinsAreEqual(t *testing.T) {
	a, err := Decode(fixture(t, "ha_first.json"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Decode(fixture(t, "ha_twin.json"))
	if err != nil {
		t.Fatal(err)
	}
	if a.ExternalURL == b.ExternalURL {
		t.Error("the fixtures are from one replica")
	}
	if d := cmp.Diff(a.Alerts, b.Alerts); d != "" {
		t.Error(d)
	}
}

const sound = `{"status":"firing","labels":{"alertname":"FabricLinkCongested","severity":"warning","owner":"fabric","fabric":"lab","link":"lab/l1:sp1","switch":"l1","port":"sp1"},"annotations":{"summary":"s"},"startsAt":"2026-01-01T00:00:00Z","endsAt":"0001-01-01T00:00:00Z","generatorURL":"","fingerprint":"0123456789abcdef"}`

func message(alerts ...string) string {
	return `{"receiver":"r","status":"firing","alerts":[` + strings.Join(alerts, ",") + `],"groupKey":"{}","version":"4","truncatedAlerts":0}` + "\n"
}

func change(from, to string) string { return strings.Replace(sound, from, to, 1) }

// Every kind of bad alert is set aside with its place, and does not lose the sound one beside it.
func TestBadAlerts(t *testing.T) {
	for _, c := range []struct{ alert, want string }{
		{change(`"labels":{`, `"labels":{"alertname":"X","link":"lab/l2:sp1"},"labels":{`), "duplicate"},
		{change(`"owner":"fabric"`, `"owner":"fabric","owner":"x"`), "duplicate"},
		{change(`"owner":"fabric"`, `"owner":null`), "/labels/owner: null, want a string"},
		{change(`"owner":"fabric"`, `"owner":7`), "/labels/owner: number, want a string"},
		{change(`"labels":{`, `"LABELS":{`), `/LABELS: spelled "labels"`},
		{change(`"endsAt"`, `"EndsAt"`), `/EndsAt: spelled "endsAt"`},
		{change(`"owner":"fabric"`, "\"owner\":\"\xff\""), "UTF-8"},
		{change(`"firing"`, `"FIRING"`), "/status"},
		{change(`"startsAt":"2026-01-01T00:00:00Z",`, ``), "/startsAt: missing"},
		{change(`"2026-01-01T00:00:00Z"`, `"yesterday"`), "/startsAt"},
		{change(`"0001-01-01T00:00:00Z"`, `"never"`), "/endsAt"},
		{change(`"0123456789abcdef"`, `"xyz"`), "/fingerprint"},
		{change(`,"fingerprint":"0123456789abcdef"`, ``), "/fingerprint: missing"},
		{change(`"alertname":"FabricLinkCongested",`, ``), "/labels/alertname: missing"},
		{change(`"labels":{`, `"labels":null,"x":{`), "/labels"},
		{change(`"summary":"s"`, `"summary":"`+strings.Repeat("x", maxAlertBytes)+`"`), "bytes, at most"},
		{change(`"owner":"fabric"`, `"owner":"`+strings.Repeat("<", maxAlertBytes/2)+`"`), "bytes in the journal"},
		{`null`, "an object"},
		{`[]`, "an object"},
	} {
		d, err := Decode([]byte(message(sound, c.alert)))
		if err != nil || len(d.Alerts) != 1 || len(d.Bad) != 1 || d.Bad[0].Index != 1 || !strings.Contains(d.Bad[0].Reason, c.want) {
			t.Errorf("%.60s: %d alerts, bad %v, error %v; want %q", c.alert, len(d.Alerts), d.Bad, err, c.want)
		}
		if _, err := Decode([]byte(message(c.alert))); err == nil || !strings.Contains(err.Error(), "/alerts/0") {
			t.Errorf("%.60s alone: %v", c.alert, err)
		}
	}
}

func TestBadBodies(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{``, "not a JSON object"},
		{`null`, "an object"},
		{`[]`, "an object"},
		{`{`, "EOF"},
		{message(sound) + `{}`, "something follows"},
		{message(sound) + `x`, "something follows"},
		{`{"version":"4"}`, "/alerts: missing"},
		{`{"alerts":[]}`, "/version: missing"},
		{`{"version":"1","alerts":[]}`, "/version"},
		{`{"version":4,"alerts":[]}`, "/version: number, want a string"},
		{`{"version":"4","version":"4","alerts":[]}`, "/version: twice"},
		{`{"version":"4","alerts":null}`, "/alerts: null, want an array"},
		{`{"version":"4","alerts":[],"truncatedAlerts":-1}`, "/truncatedAlerts"},
		{`{"version":"4","alerts":[],"truncatedAlerts":1.5}`, "/truncatedAlerts"},
		{strings.Repeat(`{"a":`, 20000), "depth"},
	} {
		if _, err := Decode([]byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: %v, want %q", c.body, err, c.want)
		}
	}
}

func TestTarget(t *testing.T) {
	labels := func(more ...string) map[string]string {
		m := map[string]string{"severity": "warning", "owner": "x", "fabric": "lab", "link": "lab/l1:sp1", "switch": "s1", "port": "lf1"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	for _, c := range []struct {
		name   string
		labels map[string]string
		want   string // target, or part of the error
	}{
		{"FabricLinkCongested", labels(), "lab/l1:sp1"}, // noticed at the far end: the same target
		{"FabricLinkCongested", labels("fabric", "other"), `names fabric "lab"`},
		{"FabricLinkCongested", labels("link", "l1:sp1"), "no '/'"},
		{"FabricLinkCongested", labels("link", ""), "lacks the labels link"},
		{"FabricLinkCongested", labels("owner", ""), "lacks the labels owner"},
		{"Invented", labels(), "not in the catalogue"},
		{"TrainyardExporterDown", map[string]string{"severity": "x", "owner": "y"}, "names no link"},
	} {
		p, err := Target(c.name, c.labels)
		got := p.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s %v: %s, want %s", c.name, c.labels, got, c.want)
		}
	}
}

func TestHandler(t *testing.T) {
	var delivered []flow.AlertEvent
	var polls, counts []string
	var fail error
	h := Handler(Config{
		Deliver: func(_ context.Context, as []flow.AlertEvent) error { delivered = as; return fail },
		Poll:    func(why string) { polls = append(polls, why) },
		Count:   func(r string) { counts = append(counts, r) }, MaxBytes: 8 << 10,
	})
	for _, c := range []struct {
		name, method, kind, body string
		fail                     error
		code                     int
		result                   string
	}{
		{"sound", "POST", "application/json", message(sound), nil, 200, "ok"},
		{"charset", "POST", "application/json; charset=utf-8", message(sound), nil, 200, "ok"},
		{"one bad", "POST", "application/json", message(sound, "null"), nil, 200, "partly bad"},
		{"garbage", "POST", "application/json", "hello", nil, 400, "refused"},
		{"empty", "POST", "application/json", "", nil, 400, "refused"},
		{"form", "POST", "application/x-www-form-urlencoded", "a=b", nil, 415, "refused"},
		{"get", "GET", "application/json", "", nil, 405, "refused"},
		{"large", "POST", "application/json", strings.Repeat(" ", 9<<10), nil, 413, "too large"},
		{"journal", "POST", "application/json", message(sound), errors.New("disk full"), 503, "journal"},
	} {
		fail, counts = c.fail, nil
		r := httptest.NewRequest(c.method, "/webhook/alertmanager", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.kind)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.code || len(counts) != 1 || counts[0] != c.result {
			t.Errorf("%s: %d %s, counted %v; want %d %s", c.name, w.Code, w.Body, counts, c.code, c.result)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: answer %q is no JSON", c.name, w.Body)
		}
	}
	fail = nil
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(fixture(t, "truncated_resolved.json"))))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if len(delivered) != 2 || len(polls) != 1 {
		t.Errorf("truncated: %d alerts, polls %v", len(delivered), polls)
	}
}

// Whatever is accepted is sound: it has what flow relies on, and fits into a record.
func FuzzDecode(f *testing.F) {
	names, err := filepath.Glob("testdata/*.json")
	if err != nil || len(names) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, n := range names {
		f.Add(fixture(f, filepath.Base(n)))
	}
	f.Add([]byte(message(sound, change("fabric", "\xff"))))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := Decode(body)
		if err != nil {
			return
		}
		for _, a := range d.Alerts {
			if a.Name == "" || len(a.Fingerprint) != 16 || a.StartsAt.IsZero() || a.Target.IsZero() == (a.TargetError == "") {
				t.Fatalf("accepted: %+v", a)
			}
			text, err := flow.EncodeEvent(flow.Alert{Alert: a})
			if err != nil {
				t.Fatal(err)
			}
			back, err := flow.DecodeEvent(flow.KindAlert, text)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(fmt.Sprint(back), fmt.Sprint(flow.Event(flow.Alert{Alert: a}))); d != "" {
				t.Fatal(d)
			}
		}
	})
}
