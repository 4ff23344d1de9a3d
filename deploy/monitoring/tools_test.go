// SPDX-License-Identifier: Apache-2.0

//go:build tools

package monitoring

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/test/tools/toolbox"
)

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := toolbox.Path(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The real checkers accept what is rendered, with and without people.
func TestToolsAcceptTheConfiguration(t *testing.T) {
	for name, p := range map[string]Params{"lab": Lab(), "lab with stand-ins": labExample(), "production": Production()} {
		dir := t.TempDir()
		config, err := WritePrometheus(dir, p)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(tool(t, "promtool"), "check", "config", "--lint=none", config).CombinedOutput(); err != nil {
			t.Errorf("%s: promtool check config: %v\n%s", name, err, out)
		}
		if config, err = WriteAlertmanager(dir, p); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(tool(t, "amtool"), "check-config", config).CombinedOutput(); err != nil {
			t.Errorf("%s: amtool check-config: %v\n%s", name, err, out)
		}
	}
}

// Who hears of which alert.
func TestRoutes(t *testing.T) {
	for _, p := range []Params{labExample(), Production()} {
		config, err := WriteAlertmanager(filepath.Join(t.TempDir(), "am"), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ receivers, labels string }{
			{"trainyard-actuator,people", "alertname=FabricLinkCongested severity=warning fabric=f link=f/l1:u1"},
			{"chat", "alertname=FabricUplinkImbalance severity=info fabric=f switch=l1"},
			{"people", "alertname=FabricSwitchUnreachable severity=critical fabric=f switch=l1"},
			{"people", "alertname=HostMemoryFragmented severity=warning node=n1"},
			{"people", "alertname=TrainyardExporterDown severity=warning"},
			{"people", "alertname=FabricLinkCongestedToo severity=warning"},
		} {
			cmd := exec.Command(tool(t, "amtool"), append([]string{"config", "routes", "test", "--config.file=" + config, "--verify.receivers=" + c.receivers}, fields(c.labels)...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: {%s} should go to %s: %v\n%s", p.Profile, c.labels, c.receivers, err, out)
			}
		}
	}
}
