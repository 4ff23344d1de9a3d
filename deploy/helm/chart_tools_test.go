// SPDX-License-Identifier: Apache-2.0

//go:build tools

package helm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	actuator "github.com/trainyard/trainyard/actuator/config"
	"github.com/trainyard/trainyard/actuator/policy"
	exporter "github.com/trainyard/trainyard/exporter/config"
	"github.com/trainyard/trainyard/test/tools/toolbox"
)

// full switches everything on.
const full = `
node: {webConfigSecret: web, config: {fabric: lab, devices: "rail\\d+"}}
fabric:
  enabled: true
  webConfigSecret: web
  credentialsSecret: snmp
  switchCIDRs: [10.255.0.0/24]
  config:
    fabric: lab
    credentials: {ro: {version: v2c, community: {file: /etc/trainyard/credentials/community}}}
    switches: [{name: l1, address: 10.255.0.3, balancing: hash, vrf: default, credentials: ro}]
actuator:
  enabled: true
  credentialsSecret: actuator
  switchCIDRs: [10.255.0.0/24]
  config: {prometheus: {url: "http://prometheus:9090"}}
  policy:
    version: 1
    policies: [{name: fabric, match: {alerts: [FabricLinkCongested], clusters: ["*"], fabrics: ["*"]}}]
serviceMonitor: {enabled: true}
prometheusRule: {enabled: true}
`

func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := toolbox.Path("helm")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir() // helm reads plugins and repositories of the user's otherwise
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func values(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// object is a manifest, as far as the tests read it.
type object struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name   string            `yaml:"name"`
		Labels map[string]string `yaml:"labels"`
	} `yaml:"metadata"`
	Data      map[string]string `yaml:"data"`
	Automount *bool             `yaml:"automountServiceAccountToken"`
	Spec      struct {
		Groups   []any `yaml:"groups"`
		Replicas *int  `yaml:"replicas"`
		Template struct {
			Spec pod `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type pod struct {
	ServiceAccount string      `yaml:"serviceAccountName"`
	Automount      *bool       `yaml:"automountServiceAccountToken"`
	HostNetwork    bool        `yaml:"hostNetwork"`
	HostPID        bool        `yaml:"hostPID"`
	Security       security    `yaml:"securityContext"`
	Containers     []container `yaml:"containers"`
}

type container struct {
	Name     string         `yaml:"name"`
	Image    string         `yaml:"image"`
	Args     []string       `yaml:"args"`
	Env      []env          `yaml:"env"`
	Security security       `yaml:"securityContext"`
	Limits   map[string]any `yaml:"resources"`
}

type env struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"`
}

type security struct {
	NonRoot      *bool `yaml:"runAsNonRoot"`
	Privileged   bool  `yaml:"privileged"`
	Escalation   *bool `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRoot *bool `yaml:"readOnlyRootFilesystem"`
	Capabilities struct {
		Add  []string `yaml:"add"`
		Drop []string `yaml:"drop"`
	} `yaml:"capabilities"`
	Seccomp struct {
		Type string `yaml:"type"`
	} `yaml:"seccompProfile"`
}

func render(t *testing.T, text string) []object {
	t.Helper()
	out, err := helm(t, "template", "yard", "trainyard", "--values", values(t, text))
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, out)
	}
	var objects []object
	d := yaml.NewDecoder(bytes.NewReader([]byte(out)))
	for {
		var o object
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatalf("read what helm rendered: %v\n%s", err, out)
		}
		if o.Kind != "" {
			objects = append(objects, o)
		}
	}
}

func TestLint(t *testing.T) {
	for name, v := range map[string]string{"defaults": "", "full": full} {
		if out, err := helm(t, "lint", "--strict", "trainyard", "--values", values(t, v)); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// By default there is the node agent and nothing else, and it listens on loopback.
func TestDefaults(t *testing.T) {
	var kinds []string
	for _, o := range render(t, "") {
		kinds = append(kinds, o.Kind)
		for _, c := range o.Spec.Template.Spec.Containers {
			if !slices.Contains(c.Args, "--listen=127.0.0.1:9600") {
				t.Errorf("%s: without credentials it listens as %q", o.Metadata.Name, c.Args)
			}
		}
	}
	slices.Sort(kinds)
	if got := strings.Join(kinds, " "); got != "ConfigMap DaemonSet Service ServiceAccount" {
		t.Errorf("defaults render %s", got)
	}
}

// Every pod is restricted, has its own identity without a token, and holds no secret in its text.
func TestFull(t *testing.T) {
	objects := render(t, full)
	count := map[string]int{}
	accounts := map[string]bool{}
	for _, o := range objects {
		count[o.Kind]++
		if o.Metadata.Labels["app.kubernetes.io/name"] != "trainyard" {
			t.Errorf("%s %s has the labels %v", o.Kind, o.Metadata.Name, o.Metadata.Labels)
		}
		if o.Kind == "ServiceAccount" && (o.Automount == nil || *o.Automount) {
			t.Errorf("service account %s mounts a token", o.Metadata.Name)
		}
		if o.Kind == "PrometheusRule" && len(o.Spec.Groups) < 2 {
			t.Errorf("the rule object has %d groups", len(o.Spec.Groups))
		}
		p := o.Spec.Template.Spec
		if len(p.Containers) == 0 {
			continue
		}
		if accounts[p.ServiceAccount] || p.ServiceAccount == "" || p.Automount == nil || *p.Automount {
			t.Errorf("%s: service account %q, shared or with a token", o.Metadata.Name, p.ServiceAccount)
		}
		accounts[p.ServiceAccount] = true
		if p.HostNetwork != (o.Kind == "DaemonSet") || p.HostPID {
			t.Errorf("%s: hostNetwork %v, hostPID %v", o.Metadata.Name, p.HostNetwork, p.HostPID)
		}
		for _, c := range p.Containers {
			if err := restricted(p.Security, c.Security); err != nil {
				t.Errorf("%s/%s: %v", o.Metadata.Name, c.Name, err)
			}
			if c.Limits["limits"] == nil || strings.HasSuffix(c.Image, ":latest") || !strings.Contains(c.Image, ":") {
				t.Errorf("%s/%s: image %s, resources %v", o.Metadata.Name, c.Name, c.Image, c.Limits)
			}
			for _, e := range c.Env {
				if e.Value != "" {
					t.Errorf("%s/%s: a value in the environment: %s", o.Metadata.Name, c.Name, e.Name)
				}
			}
		}
	}
	want := map[string]int{"ServiceAccount": 3, "DaemonSet": 1, "Deployment": 2, "NetworkPolicy": 2, "ServiceMonitor": 3, "PrometheusRule": 1, "ConfigMap": 3, "Service": 3, "PersistentVolumeClaim": 1}
	if got, exp := fmt.Sprint(count), fmt.Sprint(want); got != exp {
		t.Errorf("rendered %s, want %s", got, exp)
	}
}

func restricted(p, c security) error {
	yes := func(b *bool) bool { return b != nil && *b }
	switch {
	case c.Privileged || c.Escalation == nil || *c.Escalation:
		return errors.New("privileged, or may become it")
	case !yes(p.NonRoot) || !yes(c.NonRoot) || !yes(c.ReadOnlyRoot):
		return errors.New("root user or writable root file system")
	case len(c.Capabilities.Add) > 0 || !slices.Equal(c.Capabilities.Drop, []string{"ALL"}):
		return fmt.Errorf("capabilities %+v", c.Capabilities)
	case p.Seccomp.Type != "RuntimeDefault":
		return fmt.Errorf("seccomp %q", p.Seccomp.Type)
	}
	return nil
}

// What the chart hands to the programs is what the programs read: their own readers accept it.
func TestConfigurationsAreRead(t *testing.T) {
	secret := values(t, "public")
	read := 0
	for _, o := range render(t, full) {
		for name, text := range o.Data {
			// The secret's files exist in the cluster only.
			path := values(t, strings.ReplaceAll(text, "/etc/trainyard/credentials/community", secret))
			var err error
			switch component := o.Metadata.Labels["app.kubernetes.io/component"] + "/" + name; component {
			case "node/exporter.yaml":
				_, err = exporter.LoadNode(path)
			case "fabric/exporter.yaml":
				_, err = exporter.LoadFabric(path)
			case "actuator/actuator.yaml":
				var c actuator.Config
				if c, err = actuator.Load(path); err == nil && (c.Listen != ":9610" || c.Web.TokensFile == "") {
					err = fmt.Errorf("listens on %q with tokens in %q", c.Listen, c.Web.TokensFile)
				}
			case "actuator/policies.yaml":
				_, err = policy.Parse([]byte(text))
			default:
				err = errors.New("nobody reads this")
			}
			if err != nil {
				t.Errorf("%s of %s: %v\n%s", name, o.Metadata.Name, err, text)
			}
			read++
		}
	}
	if read != 4 {
		t.Errorf("%d configurations, want 4", read)
	}
}
