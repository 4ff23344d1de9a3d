// SPDX-License-Identifier: Apache-2.0

package ctl_test

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/api"
	"github.com/trainyard/trainyard/actuator/api/apitest"
	"github.com/trainyard/trainyard/actuator/ctl"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// serve runs the real API over a yard written by hand.
func serve(t *testing.T, y *apitest.Yard, tokens []api.Token) string {
	t.Helper()
	nothing := http.NotFoundHandler()
	h, err := api.Handler(api.Options{
		Listen: "127.0.0.1:9610", Tokens: tokens, Version: "test", Yard: y, Webhook: nothing, Metrics: nothing,
		Now: func() time.Time { return apitest.Start.Add(2 * time.Hour) },
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

type result struct {
	code     int
	out, err string
}

func run(server, name string, args ...string) result {
	var out, errOut bytes.Buffer
	env := ctl.Environment{
		Name: name, Args: args, Out: &out, Err: &errOut, Version: "v1.2.3",
		Getenv: func(k string) string { return map[string]string{"TRAINYARD_SERVER": server}[k] },
	}
	code := ctl.Main(context.Background(), env)
	return result{code, strings.ReplaceAll(out.String(), server, "SERVER"), strings.ReplaceAll(errOut.String(), server, "SERVER")}
}

// TestGolden compares what people read with testdata. Run with -update after a change and read the difference.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		file string
		args []string
	}{
		{"incidents", []string{"incidents"}},
		{"incidents_open", []string{"incidents", "--open"}},
		{"explain_holding", []string{"explain", "inc-mzxw6ytb-1"}},
		{"explain_only_path", []string{"explain", "inc-mzxw6ytb-2"}},
		{"explain_no_picture", []string{"explain", "inc-mzxw6ytb-3"}},
		{"explain_watched", []string{"explain", "inc-mzxw6ytb-4"}},
		{"explain_asked", []string{"explain", "inc-mzxw6ytb-6"}},
		{"explain_json", []string{"explain", "inc-mzxw6ytb-2", "-o", "json"}},
		{"shadow", []string{"shadow", "--since", "24h"}},
		{"help", []string{"--help"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			got := run(serve(t, apitest.New(apitest.All()...), nil), "trainyard", c.args...)
			if got.code != 0 || got.err != "" {
				t.Fatalf("exit code %d: %s", got.code, got.err)
			}
			for i, line := range strings.Split(got.out, "\n") {
				if strings.TrimRight(line, " ") != line {
					t.Errorf("line %d ends in blanks: %q", i+1, line)
				}
			}
			path := filepath.Join("testdata", c.file+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got.out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got.out != string(want) {
				t.Errorf("differs from %s:\n%s", path, got.out)
			}
		})
	}
}

// TestWords: the words that change something reach the yard with the actor, and say so.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		args []string
		out  string
		said string
	}{
		{[]string{"approve", "inc-mzxw6ytb-6"}, "inc-mzxw6ytb-6: approved by loopback user\n", "loopback user approves inc-mzxw6ytb-6"},
		{[]string{"deny", "inc-mzxw6ytb-6"}, "inc-mzxw6ytb-6: denied by loopback user\n", "loopback user denies inc-mzxw6ytb-6"},
		{[]string{"release", "inc-mzxw6ytb-1"}, "inc-mzxw6ytb-1: let go by loopback user\n", "loopback user releases inc-mzxw6ytb-1"},
		{[]string{"stop"}, "stopped by loopback user: no new steps are taken; routes that stand remain\n", "loopback user stops, withdraw false"},
		{[]string{"stop", "--withdraw"}, "stopped by loopback user: no new steps are taken, and all routes are withdrawn\n", "loopback user stops, withdraw true"},
		{[]string{"resume"}, "resumed by loopback user\n", "loopback user resumes"},
	} {
		y := apitest.New(apitest.All()...)
		got := run(serve(t, y, nil), "trainyard", c.args...)
		if got.code != 0 || got.out != c.out || strings.Join(y.Said(), "; ") != c.said {
			t.Errorf("%v: exit %d, out %q, err %q, told %q", c.args, got.code, got.out, got.err, y.Said())
		}
	}
}

// TestErrors: each kind of failure has its own exit code and one clear line.
func TestErrors(t *testing.T) {
	server := serve(t, apitest.New(apitest.All()...), nil)
	broken := apitest.New(apitest.All()...)
	broken.Broken = apitest.ErrJournal
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	t.Cleanup(html.Close)
	for _, c := range []struct {
		server string
		args   []string
		code   int
		err    string
	}{
		{server, []string{"explain", "inc-none-1"}, 3, `trainyard: SERVER: there is no incident "inc-none-1" (status 404)` + "\n"},
		{server, []string{"approve", "inc-mzxw6ytb-2"}, 4, "trainyard: SERVER: incident inc-mzxw6ytb-2 asks nothing: it is refused (status 409)\n"},
		{server, []string{"explain"}, 2, "trainyard: accepts 1 arg(s), received 0\nSee 'trainyard --help'.\n"},
		{server, []string{"incidents", "-o", "yaml"}, 2, "trainyard: --output \"yaml\": want one of table, json\nSee 'trainyard --help'.\n"},
		{server, []string{"shadow", "--since", "yesterday"}, 2, "invalid argument"},
		{server, []string{"shadow", "--since", "-1h"}, 2, "want a positive duration"},
		{server, []string{"incdents"}, 2, `unknown command "incdents" for "trainyard"`},
		{server, []string{"--nope"}, 2, "unknown flag: --nope"},
		{serve(t, broken, nil), []string{"stop"}, 5, "SERVER: not journalled: append to journal: no space left on device (status 503)"},
		{"http://127.0.0.1:1", []string{"incidents"}, 5, "no answer from the actuator at SERVER: dial tcp 127.0.0.1:1: connect: connection refused"},
		{"ftp://x", []string{"incidents"}, 2, `--server "SERVER": want http://host:port or https://host:port`},
		{html.URL, []string{"incidents"}, 1, "answer of SERVER is not what an actuator says"},
	} {
		got := run(c.server, "trainyard", c.args...)
		if got.code != c.code || !strings.Contains(got.err, c.err) || got.out != "" {
			t.Errorf("%v: exit %d, want %d\n%q\nwant %q\n%s", c.args, got.code, c.code, got.err, c.err, got.out)
		}
	}
}

// TestToken: the token is read from a file, sent, and never printed.
func TestToken(t *testing.T) {
	server := serve(t, apitest.New(apitest.All()...), []api.Token{{Actor: "anna", Roles: []api.Role{api.View, api.Operate}, Token: "anna-anna-anna-anna-anna"}})
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("anna-anna-anna-anna-anna\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run(server, "trainyard", "approve", "inc-mzxw6ytb-6", "--token-file", file); got.out != "inc-mzxw6ytb-6: approved by anna\n" {
		t.Errorf("%+v", got)
	}
	if got := run(server, "trainyard", "incidents"); got.code != 4 || got.err != "trainyard: SERVER: no bearer token (see --token-file) (status 401)\n" {
		t.Errorf("%+v", got)
	}
	if got := run(server, "trainyard", "incidents", "--token-file", file+".none"); got.code != 1 || !strings.Contains(got.err, "read token: open") {
		t.Errorf("%+v", got)
	}
}

// TestPlugin: installed as kubectl-trainyard it calls itself as kubectl does.
func TestPlugin(t *testing.T) {
	server := serve(t, apitest.New(), nil)
	if got := run(server, "/usr/local/bin/kubectl-trainyard", "--help"); !strings.Contains(got.out, "kubectl trainyard [command]") {
		t.Errorf("%s", got.out)
	}
	if got := run(server, "kubectl-trainyard", "explain", "x"); !strings.HasPrefix(got.err, "kubectl trainyard: SERVER: there is no incident") {
		t.Errorf("%+v", got)
	}
	if got := run(server, "trainyard", "version"); got.out != "trainyard v1.2.3\n" {
		t.Errorf("%+v", got)
	}
	if got := run(server, "trainyard", "incidents"); got.out != "no incidents\n" {
		t.Errorf("%+v", got)
	}
}

// TestCompletion: ids come from the actuator, with what they are about.
func TestCompletion(t *testing.T) {
	server := serve(t, apitest.New(apitest.Asking()), nil)
	if got := run(server, "trainyard", "__complete", "approve", ""); !strings.HasPrefix(got.out, "inc-mzxw6ytb-6\tasked lab/l1:sp1\n") {
		t.Errorf("%+v", got)
	}
	if got := run(server, "trainyard", "completion", "bash"); got.code != 0 || !strings.Contains(got.out, "__start_trainyard") {
		t.Errorf("exit %d: %.200s", got.code, got.out+got.err)
	}
}

// TestHostileText: what an alert says must not reach the terminal as control characters.
func TestHostileText(t *testing.T) {
	v := apitest.NoPicture()
	v.Reason = "\x1b]0;owned\x07 \u202egnp"
	got := run(serve(t, apitest.New(v), nil), "trainyard", "explain", string(v.ID))
	for _, r := range got.out {
		if r < ' ' && r != '\n' || r == '\u202e' {
			t.Fatalf("control character %U in %q", r, got.out)
		}
	}
}
