// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const inventory = `
fabric: lab
interval: 1020ms
topology_interval: 3s
timeout: 400ms
credentials:
  ro: {version: v2c, community: {env: TRAINYARD_TEST_COMMUNITY}}
  v3:
    version: v3
    user: reader
    auth: sha256
    auth_pass: {file: PASS}
    priv: aes
    priv_pass: {file: PASS}
switches:
  - {name: l1, address: 10.255.0.3, tier: 0, balancing: hash, vrf: default, credentials: ro}
  - {name: s1, address: "10.255.0.1:1161", tier: 1, credentials: v3, interval: 5s, lldp_name: lab-s1, chassis_id: "02:00:00:00:00:01"}
nodes:
  names: {lab-n1: n1}
  pattern: lab-(n\d+)
`

func TestLoadFabric(t *testing.T) {
	t.Setenv("TRAINYARD_TEST_COMMUNITY", "hush-hush")
	pass := write(t, "pass", "authpass12345\n")
	f, err := LoadFabric(write(t, "inventory.yaml", strings.ReplaceAll(inventory, "PASS", pass)))
	if err != nil {
		t.Fatal(err)
	}
	if l1 := f.Switches[0]; l1.Endpoint() != "10.255.0.3:161" || l1.Interval != 1020*time.Millisecond || l1.LLDPName != "l1" || l1.Ports != ".*" {
		t.Errorf("l1 is %+v", l1)
	}
	if s1 := f.Switches[1]; s1.Endpoint() != "10.255.0.1:1161" || s1.Interval != 5*time.Second || s1.LLDPName != "lab-s1" || s1.Balancing != "unknown" {
		t.Errorf("s1 is %+v", s1)
	}
	if f.Credentials["ro"].Community.Reveal() != "hush-hush" || f.Credentials["v3"].AuthPass.Reveal() != "authpass12345" || f.Retries != 1 {
		t.Error("secrets or defaults are not read")
	}
	printed, err := yaml.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(printed), fmt.Sprintf("%v %+v %#v", f, f, f)} {
		if strings.Contains(text, "hush-hush") || strings.Contains(text, "authpass12345") {
			t.Errorf("a secret is printed:\n%s", text)
		}
	}
}

func TestFaultsOfAnInventoryAreNamed(t *testing.T) {
	t.Setenv("TRAINYARD_TEST_COMMUNITY", "hush-hush")
	pass := write(t, "pass", "authpass12345\n")
	short := write(t, "short", "abc")
	for _, c := range []struct{ what, old, new, want string }{
		{"an unknown key", "fabric: lab", "fabric: lab\nfabrics: x", "fabrics"},
		{"an unknown key of a switch", "tier: 1", "teir: 1", "teir"},
		{"no fabric", "fabric: lab", "fabric: ''", "$.fabric"},
		{"a slash in the fabric", "fabric: lab", "fabric: a/b", "$.fabric"},
		{"a name twice", "name: s1", "name: l1", "$.switches[1].name"},
		{"an address twice", "10.255.0.1:1161", "10.255.0.3:161", "$.switches[1].address"},
		{"a bad port", ":1161", ":snmp", "$.switches[1].address"},
		{"no credentials", "credentials: v3", "credentials: v4", "$.switches[1].credentials"},
		{"a bad balancing", "balancing: hash", "balancing: hsah", "$.switches[0].balancing"},
		{"a short interval", "interval: 5s", "interval: 1ms", "$.switches[1].interval"},
		{"a bad duration", "interval: 5s", "interval: 5", "5"},
		{"an unknown version", "version: v2c", "version: v1", "$.credentials.ro.version"},
		{"an unknown protocol", "auth: sha256", "auth: sha3", "$.credentials.v3.auth"},
		{"a secret in the inventory", "community: {env: TRAINYARD_TEST_COMMUNITY}", "community: public", "community"},
		{"a secret from two places", "{env: TRAINYARD_TEST_COMMUNITY}", "{env: A, file: B}", "$.credentials.ro.community"},
		{"an empty secret", "TRAINYARD_TEST_COMMUNITY", "TRAINYARD_TEST_NOTHING", "TRAINYARD_TEST_NOTHING"},
		{"a short passphrase", "auth_pass: {file: " + pass, "auth_pass: {file: " + short, "fewer than 8"},
		{"a pattern without a group", `lab-(n\d+)`, `lab-n\d+`, "$.nodes.pattern"},
		{"a bad pattern", `lab-(n\d+)`, `lab-(`, "$.nodes.pattern"},
		{"a node that is a switch", "lab-n1: n1", "lab-s1: n1", "$.nodes.names.lab-s1"},
		{"a second document", "fabric: lab", "fabric: lab\n---\nfabric: lab", "more than one"},
	} {
		text := strings.ReplaceAll(inventory, "PASS", pass)
		changed := strings.Replace(text, c.old, c.new, 1)
		if changed == text {
			t.Fatalf("%s: the test changes nothing", c.what)
		}
		if _, err := LoadFabric(write(t, "inventory.yaml", changed)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q in the error, got %v", c.what, c.want, err)
		}
	}
	if _, err := LoadFabric(""); err == nil {
		t.Error("no inventory was accepted")
	}
}

func TestLoadNode(t *testing.T) {
	n, err := LoadNode(write(t, "node.yaml", "fabric: lab\ndevices: rail\\d+\nrails: {ens7: 3}\njob_max_age: 3s\n"))
	if err != nil {
		t.Fatal(err)
	}
	n.Name = "n1"
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	if n.Devices != `rail\d+` || n.Rail != `rail(\d+)` || n.JobMaxAge != 3*time.Second || n.Rails["ens7"] != 3 {
		t.Errorf("read %+v", n)
	}
	if n, err := LoadNode(write(t, "empty.yaml", "# nothing\n")); err != nil || n.JobMaxAge != 15*time.Second {
		t.Errorf("an empty file gives %+v, %v", n, err)
	}
	for text, want := range map[string]string{
		"device: x":         "device",
		"rail: rail\\d+":    "$.rail",
		"devices: ''":       "$.devices",
		"devices: '('":      "$.devices",
		"rails: {a: -1}":    "$.rails.a",
		"job_max_age: 1ms":  "$.job_max_age",
		"job_max_age: soon": "soon",
	} {
		n, err := LoadNode(write(t, "node.yaml", text))
		if err == nil {
			n.Name = "n1"
			err = n.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q in the error, got %v", text, want, err)
		}
	}
}

// The examples of the documentation are configurations.
func TestDocumentedExamples(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "exporter.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SNMP_COMMUNITY", "public")
	pass := write(t, "pass", "a long passphrase")
	seen := 0
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		switch {
		case strings.HasPrefix(text, "# node\n"):
			n, err := LoadNode(write(t, "node.yaml", text))
			n.Name = "n1"
			if err == nil {
				err = n.Validate()
			}
			if err != nil {
				t.Error(err)
			}
			seen++
		case strings.HasPrefix(text, "# fabric\n"):
			text = strings.NewReplacer("/etc/trainyard/snmp-auth", pass, "/etc/trainyard/snmp-priv", pass).Replace(text)
			if _, err := LoadFabric(write(t, "fabric.yaml", text)); err != nil {
				t.Error(err)
			}
			seen++
		}
	}
	if seen != 2 {
		t.Errorf("%d examples found, want 2", seen)
	}
}

func TestCheckListen(t *testing.T) {
	users := write(t, "web.yaml", "basic_auth_users: {prometheus: $2y$04$abc}\n")
	certs := write(t, "web.yaml", "tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequireAndVerifyClientCert}\n")
	open := write(t, "web.yaml", "tls_server_config: {cert_file: a, key_file: b}\n")
	for _, c := range []struct {
		address, web string
		ok           bool
	}{
		{"127.0.0.1:9600", "", true}, {"localhost:9600", "", true}, {"[::1]:9600", "", true}, {"127.0.0.1:0", "", true},
		{":9600", "", false}, {"0.0.0.0:9600", "", false}, {"10.0.0.1:9600", "", false}, {"host.example:9600", "", false}, {"9600", "", false},
		{":9600", users, true}, {":9600", certs, true}, {":9600", open, false}, {":9600", "/nowhere", false},
	} {
		if err := CheckListen(c.address, c.web); (err == nil) != c.ok {
			t.Errorf("%s with %q: %v", c.address, c.web, err)
		}
	}
}
