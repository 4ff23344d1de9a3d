// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "rewrite the committed configuration files")

// labExample is the lab with stand-ins for Slack and the mail server, to show the whole file.
func labExample() Params {
	p := Lab()
	p.SlackURL = "http://127.0.0.1:9710/slack"
	p.SMTPHost = "127.0.0.1:9711"
	return p
}

func TestCommittedFilesAreCurrent(t *testing.T) {
	for _, p := range []Params{labExample(), Production()} {
		for dir, render := range map[string]func(Params) ([]byte, error){"prometheus": Prometheus, "alertmanager": Alertmanager} {
			path := filepath.Join("..", dir, p.Profile+".yml")
			want, err := render(p)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(path, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("%s is out of date: go test ./deploy/monitoring -update", path)
			}
			var anything map[string]any
			if err := yaml.Unmarshal(got, &anything); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

func TestWithoutPeopleNoReceiversForThem(t *testing.T) {
	out, err := Alertmanager(Lab())
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"slack_configs", "email_configs", "smtp"} {
		if strings.Contains(string(out), word) {
			t.Errorf("lab without Slack and e-mail: found %s in\n%s", word, out)
		}
	}
}

func TestValuesCannotBreakOutOfTheirPlace(t *testing.T) {
	p := Production()
	p.EmailTo = "a\"\nroute: x"
	out, err := Alertmanager(p)
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Receivers []struct {
			Email []struct {
				To string `yaml:"to"`
			} `yaml:"email_configs"`
		} `yaml:"receivers"`
	}
	if err := yaml.Unmarshal(out, &c); err != nil {
		t.Fatal(err)
	}
	if got := c.Receivers[1].Email[0].To; got != p.EmailTo {
		t.Errorf("address %q came out as %q", p.EmailTo, got)
	}
}

func TestUnknownProfileIsRefused(t *testing.T) {
	if _, err := WritePrometheus(t.TempDir(), Params{Profile: "office", ActuatorAlerts: []string{"x"}}); err == nil {
		t.Error("profile office: got no error")
	}
}
