// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unit is section -> key -> values in order.
type unit map[string]map[string][]string

func parse(t *testing.T, path string) unit {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	u, section := unit{}, ""
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
			u[section] = map[string][]string{}
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok || section == "" || strings.HasSuffix(line, `\`) {
				t.Fatalf("%s:%d: %q is no assignment", path, n+1, line)
			}
			u[section][key] = append(u[section][key], value)
		}
	}
	return u
}

// hardened is what every unit must say.
var hardened = map[string]string{
	"DynamicUser": "yes", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes", "PrivateDevices": "yes",
	"ProtectKernelTunables": "yes", "ProtectKernelModules": "yes", "ProtectControlGroups": "yes", "RestrictNamespaces": "yes", "RestrictSUIDSGID": "yes",
	"LockPersonality": "yes", "MemoryDenyWriteExecute": "yes", "CapabilityBoundingSet": "", "SystemCallArchitectures": "native", "Restart": "on-failure",
}

func TestUnitsAreHardened(t *testing.T) {
	units, err := filepath.Glob("*.service")
	if err != nil || len(units) != 3 {
		t.Fatalf("units %v, %v: want three", units, err)
	}
	for _, path := range units {
		u := parse(t, path)
		for key, want := range hardened {
			if got := u["Service"][key]; !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %s is %q, want %q", path, key, got, want)
			}
		}
		for key, values := range u["Service"] {
			if key == "Environment" || key == "User" {
				t.Errorf("%s: %s=%q: secrets come by LoadCredential, the user is dynamic", path, key, values)
			}
		}
		if len(u["Install"]["WantedBy"]) == 0 || len(u["Unit"]["Description"]) == 0 {
			t.Errorf("%s: no Install or Description", path)
		}
		for _, exec := range append(u["Service"]["ExecStart"], u["Service"]["ExecStartPre"]...) {
			if !strings.HasPrefix(exec, "/usr/local/bin/trainyard-") {
				t.Errorf("%s: starts %q", path, exec)
			}
		}
	}
	// The node agent needs the host's /proc; the others see only their own processes.
	if u := parse(t, "trainyard-exporter-node.service"); u["Service"]["ProcSubset"] != nil {
		t.Error("the node agent cannot read /proc/buddyinfo with ProcSubset")
	}
}

// Where systemd is there, it reads the units itself. It asks for the programs, so copies that name an existing one are read.
func TestSystemdReadsTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not here: the units were parsed by the test above only")
		return
	}
	units, _ := filepath.Glob("*.service")
	dir := t.TempDir()
	var copies []string
	for _, path := range units {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.NewReplacer("/usr/local/bin/trainyard-exporter", "/bin/true", "/usr/local/bin/trainyard-actuator", "/bin/true").Replace(string(text)))
		copies = append(copies, filepath.Join(dir, path))
		if err := os.WriteFile(copies[len(copies)-1], text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(analyze, append([]string{"verify", "--man=no"}, copies...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
