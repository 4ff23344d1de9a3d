// SPDX-License-Identifier: Apache-2.0

package ident

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParsePort(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Port
		err  string // part of the message; "" = accepted
	}{
		{in: "lab/l1:sp1", want: Port{"lab", "l1", "sp1"}},
		{in: "dc1/leaf-7.pod-a:Ethernet1/1", want: Port{"dc1", "leaf-7.pod-a", "Ethernet1/1"}},
		{in: "dc1/leaf:eth0:1", want: Port{"dc1", "leaf", "eth0:1"}},
		{in: "", err: "no '/'"},
		{in: "l1:sp1", err: "no '/'"},
		{in: "lab/l1", err: "no ':'"},
		{in: "/l1:sp1", err: "fabric of port"},
		{in: "lab/:sp1", err: "device of port"},
		{in: "lab/l1:", err: "port of port"},
		{in: "a:b/l1:sp1", err: "fabric of port"},
		{in: "lab/l/1:sp1", err: "device of port"},
		{in: "lab/l1:sp 1", err: "space"},
		{in: "lab/l1:sp\x00", err: "control"},
		{in: "lab/l1:\xff", err: "UTF-8"},
		{in: "lab/" + strings.Repeat("x", 256) + ":p", err: "at most 255"},
	} {
		got, err := ParsePort(c.in)
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("ParsePort(%q) = %v, %v; want %v", c.in, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("ParsePort(%q) error %v; want one with %q", c.in, err, c.err)
		}
	}
}

func TestPortAsJSONKey(t *testing.T) {
	in := map[Port]int{{"lab", "l1", "sp1"}: 1}
	text, err := json.Marshal(in)
	if err != nil || string(text) != `{"lab/l1:sp1":1}` {
		t.Fatalf("marshal: %s, %v", text, err)
	}
	var out map[Port]int
	if err := json.Unmarshal(text, &out); err != nil || out[Port{"lab", "l1", "sp1"}] != 1 {
		t.Fatalf("unmarshal: %v, %v", out, err)
	}
	zero, err := json.Marshal(Port{})
	if err != nil || string(zero) != `""` {
		t.Errorf("the zero port: %s, %v", zero, err)
	}
	back := Port{"lab", "l1", "sp1"}
	if err := json.Unmarshal(zero, &back); err != nil || !back.IsZero() {
		t.Errorf("the zero port comes back as %v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"l1":1}`), &out); err == nil {
		t.Error("a key that is no port was accepted")
	}
}

// Whatever is accepted spells itself back, and is accepted again as the same port.
func FuzzParsePort(f *testing.F) {
	for _, s := range []string{"lab/l1:sp1", "a/b:c/d:e", "//::", "é/ü:ö"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePort(s)
		if err != nil {
			return
		}
		if p.String() != s {
			t.Fatalf("%q spelled back as %q", s, p)
		}
		if q, err := NewPort(p.Fabric, p.Device, p.Name); err != nil || q != p {
			t.Fatalf("%q: NewPort of its parts: %v, %v", s, q, err)
		}
	})
}
