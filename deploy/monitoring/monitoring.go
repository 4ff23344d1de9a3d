// SPDX-License-Identifier: Apache-2.0

// Package monitoring renders the configuration of Prometheus and Alertmanager: one template each for the lab, the demo,
// the tests and production, so that what is tested is what is deployed. It writes files and makes argument lists; it
// starts nothing.
package monitoring

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/trainyard/trainyard/rules"
)

//go:embed templates/*.tmpl
var templates embed.FS

// Params is what differs from place to place. Addresses are host:port, without a scheme.
type Params struct {
	Profile string // "lab" or "production": intervals, waits and which rules
	Cluster string // external label cluster; "" = none

	// Where to scrape. An empty list makes Prometheus read targets/<job name>/*.yml beside its configuration instead.
	NodeExporters, FabricExporters, Actuators []string

	Alertmanagers []string

	Webhook          string   // URL of the actuator's webhook
	WebhookTokenFile string   // bearer token; "" = none, for loopback only
	ActuatorAlerts   []string // names of the alerts that go to the actuator

	// People. An empty SMTPHost leaves e-mail out; no SlackURL and no SlackURLFile leave Slack out. Secrets are read from
	// files by Alertmanager itself and never pass through here; SlackURL is for stand-ins.
	SMTPHost, SMTPUser, SMTPPasswordFile string
	EmailFrom, EmailTo                   string
	SlackURL, SlackURLFile, SlackChannel string
}

// Lab is the lab's and the demo's default: everything on loopback, no Slack, no e-mail.
func Lab() Params {
	return Params{
		Profile:         "lab",
		NodeExporters:   []string{"127.0.0.1:9600"},
		FabricExporters: []string{"127.0.0.1:9601"},
		Actuators:       []string{"127.0.0.1:9610"},
		Alertmanagers:   []string{"127.0.0.1:9093"},
		Webhook:         "http://127.0.0.1:9610/webhook/alertmanager",
		ActuatorAlerts:  []string{"FabricLinkCongested"},
		EmailFrom:       "trainyard@localhost", EmailTo: "oncall@localhost", SlackChannel: "#training-fabric",
	}
}

// Production is a starting point: targets from files, credentials from files, names to be replaced.
func Production() Params {
	return Params{
		Profile: "production", Cluster: "yard-1",
		Alertmanagers:    []string{"127.0.0.1:9093"},
		Webhook:          "https://trainyard-actuator.example.com:9610/webhook/alertmanager",
		WebhookTokenFile: "secrets/actuator-token",
		ActuatorAlerts:   []string{"FabricLinkCongested"},
		SMTPHost:         "smtp.example.com:587", SMTPUser: "trainyard", SMTPPasswordFile: "secrets/smtp-password",
		EmailFrom: "trainyard@example.com", EmailTo: "oncall@example.com",
		SlackURLFile: "secrets/slack-url", SlackChannel: "#training-fabric",
	}
}

// times are Alertmanager's waits. The first message of a group leaves after Wait; what follows in the same group after
// the interval, and an unchanged firing group after the repeat.
type times struct {
	Wait, ActuatorInterval, ActuatorRepeat, PeopleInterval, PeopleRepeat string
}

var profileTimes = map[string]times{
	"lab":        {Wait: "0s", ActuatorInterval: "1s", ActuatorRepeat: "1m", PeopleInterval: "5s", PeopleRepeat: "1h"},
	"production": {Wait: "5s", ActuatorInterval: "30s", ActuatorRepeat: "10m", PeopleInterval: "5m", PeopleRepeat: "4h"},
}

type scrapeJob struct {
	Name, About string
	Targets     []string
}

// view is what the templates see.
type view struct {
	Params
	Rules          rules.Profile
	Times          times
	ScrapeTimeout  string
	ActuatorAlerts string
	Jobs           []scrapeJob
}

// Prometheus renders prometheus.yml. It expects the rule files in rules/ beside it.
func Prometheus(p Params) ([]byte, error) { return render("prometheus.yml.tmpl", p) }

// Alertmanager renders alertmanager.yml.
func Alertmanager(p Params) ([]byte, error) { return render("alertmanager.yml.tmpl", p) }

// WritePrometheus writes prometheus.yml and rules/ into a folder and returns the path of the configuration.
func WritePrometheus(dir string, p Params) (string, error) {
	config, err := Prometheus(p)
	if err != nil {
		return "", err
	}
	files, err := rules.Files(p.Profile)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(dir, "rules"), 0o755); err != nil {
		return "", fmt.Errorf("write Prometheus' configuration: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, "rules", name), content, 0o644); err != nil {
			return "", fmt.Errorf("write Prometheus' rules: %w", err)
		}
	}
	return write(filepath.Join(dir, "prometheus.yml"), config)
}

// WriteAlertmanager writes alertmanager.yml into a folder and returns its path.
func WriteAlertmanager(dir string, p Params) (string, error) {
	config, err := Alertmanager(p)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("write Alertmanager's configuration: %w", err)
	}
	return write(filepath.Join(dir, "alertmanager.yml"), config)
}

// PrometheusArgs are the arguments of a Prometheus that reads what WritePrometheus has written into dir, keeps its data
// below dir and listens on host:port.
func PrometheusArgs(dir, listen string, p Params) []string {
	resend := "1m"
	if p.Profile == "lab" {
		resend = "5s" // Alertmanager takes an alert for resolved four of these after the last message
	}
	return []string{
		"--config.file=" + filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path=" + filepath.Join(dir, "prometheus-data"),
		"--web.listen-address=" + listen,
		"--rules.alert.resend-delay=" + resend,
		"--log.level=warn",
	}
}

// AlertmanagerArgs are the arguments of a lone Alertmanager that reads what WriteAlertmanager has written into dir, keeps
// its data below dir and listens on host:port.
func AlertmanagerArgs(dir, listen string) []string {
	return []string{
		"--config.file=" + filepath.Join(dir, "alertmanager.yml"),
		"--storage.path=" + filepath.Join(dir, "alertmanager-data"),
		"--web.listen-address=" + listen,
		"--cluster.listen-address=", // no peers: a lone one must not wait for gossip
		"--log.level=warn",
	}
}

func write(path string, content []byte) (string, error) {
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return "", fmt.Errorf("write monitoring configuration: %w", err)
	}
	return path, nil
}

func render(name string, p Params) ([]byte, error) {
	v := view{Params: p, Times: profileTimes[p.Profile], ActuatorAlerts: quote(strings.Join(p.ActuatorAlerts, "|"))}
	var ok bool
	if v.Rules, ok = rules.Lookup(p.Profile); !ok {
		return nil, fmt.Errorf("render %s: profile %q: want production or lab", name, p.Profile)
	}
	if len(p.ActuatorAlerts) == 0 {
		return nil, fmt.Errorf("render %s: no alert goes to the actuator", name)
	}
	v.ScrapeTimeout = v.Rules.Scrape // a scrape that takes longer than the interval is late anyway
	if p.Profile == "production" {
		v.ScrapeTimeout = "10s"
	}
	v.Jobs = []scrapeJob{
		{"trainyard-node", "The node role on every training node.", p.NodeExporters},
		{"trainyard-fabric", "The fabric role, which alone talks to switches.", p.FabricExporters},
		{"trainyard-actuator", "The actuator's own metrics.", p.Actuators},
	}
	t, err := template.New("").Delims("<<", ">>").Option("missingkey=error").Funcs(template.FuncMap{
		"quote": quote, "list": list,
	}).ParseFS(templates, "templates/*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("parse templates of the monitoring configuration: %w", err)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, v); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return append(bytes.TrimSpace(b.Bytes()), '\n'), nil
}

// quote and list spell values as JSON, which is YAML whatever they hold.
func quote(s string) string {
	b, _ := json.Marshal(s) // a string always marshals
	return string(b)
}

func list(s []string) string {
	quoted := make([]string, len(s))
	for i := range s {
		quoted[i] = quote(s[i])
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
