// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlags: what a person can get wrong before anything runs, each with its exit code.
func TestFlags(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("policies.yaml", "version: 1\npolicies: []\n")
	good := write("good.yaml", "profile: lab\njournal_dir: journal\npolicies_file: policies.yaml\nstop_file: stop\n")
	bad := write("bad.yaml", "profile: lab\nlisten: 0.0.0.0:9610\n")
	typo := write("typo.yaml", "profil: lab\n")
	for _, c := range []struct {
		args     []string
		code     int
		out, err string
	}{
		{[]string{"--version"}, 0, "trainyard-actuator ", ""},
		{[]string{"--help"}, 0, "", "-config.check"},
		{[]string{"--nope"}, 2, "", "flag provided but not defined"},
		{[]string{"serve"}, 2, "", `unexpected argument "serve"`},
		{[]string{"--config.file", good, "--config.check"}, 0, "good.yaml: ok\n", ""},
		{[]string{"--config.file", bad, "--config.check"}, 2, "", `$.listen: "0.0.0.0:9610" is reachable from other machines and no credentials are configured`},
		{[]string{"--config.file", bad}, 2, "", "no credentials are configured"},
		{[]string{"--config.file", typo, "--config.check"}, 2, "", `unknown field "profil"`},
		{[]string{"--config.file", filepath.Join(dir, "none.yaml")}, 2, "", "read configuration: open"},
	} {
		var out, errOut bytes.Buffer
		code := run(c.args, &out, &errOut)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errOut.String(), c.err) {
			t.Errorf("%v: exit %d, want %d\nout %q\nerr %q", c.args, code, c.code, out.String(), errOut.String())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "journal")); err == nil {
		t.Error("the check made a journal")
	}
}
