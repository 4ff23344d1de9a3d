// SPDX-License-Identifier: Apache-2.0

//go:build tools

package am_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/observe/am"
	"github.com/trainyard/trainyard/test/tools/toolbox"
)

// TestRealAlertmanager posts an alert and a silence to a real Alertmanager and reads what it holds.
func TestRealAlertmanager(t *testing.T) {
	path, err := toolbox.Path("alertmanager")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	_ = l.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "am.yml")
	if err := os.WriteFile(file, []byte("route: {receiver: actuator}\nreceivers: [{name: actuator}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "--config.file="+file, "--storage.path="+dir, "--web.listen-address="+listen, "--cluster.listen-address=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url := "http://" + listen
	post := func(path, body string) {
		t.Helper()
		var last error
		for range 200 {
			resp, err := http.Post(url+path, "application/json", strings.NewReader(body))
			if err == nil {
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					return
				}
				err = errors.New(resp.Status)
			}
			last = err
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("post %s: %v", path, last)
	}
	post("/api/v2/alerts", `[{"labels":{"alertname":"FabricLinkCongested","link":"lab/l1:sp1"},"annotations":{"summary":"hot"}},{"labels":{"alertname":"Other"}}]`)
	cfg := am.DefaultConfig()
	cfg.URL, cfg.Receiver, cfg.Filter = url, "actuator", []string{`alertname="FabricLinkCongested"`}
	young, err := am.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := young.Alerts(context.Background()); !errors.Is(err, am.ErrYoung) {
		t.Errorf("an Alertmanager of some seconds: %v", err)
	}
	cfg.Settle = 0
	c, err := am.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	// until waits for the one alert to be in a state.
	until := func(state string) am.Alert {
		var got []am.Alert
		for range 200 {
			if got, err = c.Alerts(context.Background()); err == nil && len(got) == 1 && got[0].State == state {
				return got[0]
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("never %s: %+v, %v", state, got, err)
		return am.Alert{}
	}
	a := until("active")
	if a.Labels["link"] != "lab/l1:sp1" || a.Annotations["summary"] != "hot" || len(a.Fingerprint) != 16 || a.StartsAt.IsZero() || len(a.Receivers) != 1 || a.Suppressed() {
		t.Errorf("%+v", a)
	}
	post("/api/v2/silences", `{"matchers":[{"name":"alertname","value":"FabricLinkCongested","isRegex":false}],"startsAt":"`+
		time.Now().UTC().Format(time.RFC3339)+`","endsAt":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`","createdBy":"test","comment":"test"}`)
	if a := until("suppressed"); !a.Suppressed() || len(a.SilencedBy) != 1 {
		t.Errorf("%+v", a)
	}
}
