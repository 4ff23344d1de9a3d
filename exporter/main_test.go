// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFlags(t *testing.T) {
	t.Setenv("TRAINYARD_TEST_COMMUNITY", "public")
	write := func(text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	inventory := "fabric: lab\ncredentials: {ro: {version: v2c, community: {env: TRAINYARD_TEST_COMMUNITY}}}\nswitches: [{name: l1, address: 192.0.2.1, credentials: ro}]\n"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--version"}, 0, "trainyard-exporter"},
		{[]string{"--help"}, 0, "-role"},
		{[]string{"--config.check", "--node-name=n1"}, 0, "configuration is good"},
		{[]string{"--config.check", "--role=fabric", "--config.file=" + write(inventory)}, 0, "configuration is good"},
		{[]string{"--config.check", "--role=fabric", "--config.file=" + write(inventory+"switch: x\n")}, 2, "switch"},
		{[]string{"--role=fabric"}, 2, "--config.file"},
		{[]string{"--config.check", "--config.file=" + write("divices: x\n")}, 2, "divices"},
		{[]string{"--role=both"}, 2, "--role"},
		{[]string{"--interval=1ms"}, 2, "--interval"},
		{[]string{"--listen=:9600"}, 2, "credentials"},
		{[]string{"--nonsense"}, 2, "nonsense"},
		{[]string{"extra"}, 2, "extra"},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), c.args, &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: exit code %d and %q, want %d and %q", c.args, code, out.String(), c.code, c.want)
		}
	}
}

// A signal is the end of the context: the program stops in good order.
func TestStopsInGoodOrder(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	if code := run(ctx, []string{"--node-name=n1", "--listen=127.0.0.1:0"}, &out, &out); code != 0 || !strings.Contains(out.String(), "exporter stopped") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}
