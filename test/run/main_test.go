// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	events := []event{
		{Action: "output", Package: "p", Test: "TestA", Output: "quiet\n"},
		{Action: "pass", Package: "p", Test: "TestA"},
		{Action: "output", Package: "p", Test: "TestB", Output: "why it is skipped\n"},
		{Action: "skip", Package: "p", Test: "TestB"},
		{Action: "output", Package: "p", Test: "TestC", Output: "FIGURE 3 ms\n"},
		{Action: "pass", Package: "p", Test: "TestC"},
		{Action: "pass", Package: "p"},
	}
	for _, c := range []struct {
		name    string
		ci      bool
		allowed map[string]bool
		err     error
		code    int
		closing string
	}{
		{"a skip on a user's machine", false, nil, nil, 0, "2 passed, 0 failed, 1 skipped"},
		{"a skip under CI", true, nil, nil, 1, "2 passed, 1 failed, 1 skipped"},
		{"a named skip under CI", true, map[string]bool{"p TestB": true}, nil, 0, "2 passed, 0 failed, 1 skipped"},
		{"go test failed without a failed test", false, nil, errors.New("exit status 1"), 1, "2 passed, 1 failed, 1 skipped"},
	} {
		var out strings.Builder
		s := newSummary(&out)
		for _, e := range events {
			s.add(e)
		}
		if code := s.close(c.err, c.ci, c.allowed); code != c.code {
			t.Errorf("%s: exit status %d, want %d", c.name, code, c.code)
		}
		if !strings.HasSuffix(out.String(), c.closing+"\n") {
			t.Errorf("%s: closes with\n%swant %s", c.name, out.String(), c.closing)
		}
		if strings.Contains(out.String(), "quiet") || !strings.Contains(out.String(), "FIGURE 3 ms") {
			t.Errorf("%s: shows what passed, or hides a figure:\n%s", c.name, out.String())
		}
	}
}
