// SPDX-License-Identifier: Apache-2.0

//go:build lab

package snmp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/exporter/config"
	"github.com/trainyard/trainyard/exporter/source"
)

const passphrase = "a long passphrase"

// snmpd runs net-snmp's agent on loopback, on a port of its own, with an engine id of the test's choice. It ends
// with the test.
type snmpd struct {
	t        *testing.T
	dir      string
	endpoint string
	process  *exec.Cmd
}

func newSnmpd(t *testing.T) *snmpd {
	t.Helper()
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	d := &snmpd{t: t, dir: t.TempDir(), endpoint: free.LocalAddr().String()}
	t.Cleanup(d.stop)
	return d
}

// start writes the configuration anew and waits until the agent answers.
func (d *snmpd) start(engine string) {
	d.t.Helper()
	persist := filepath.Join(d.dir, "persist-"+engine)
	if err := os.MkdirAll(persist, 0o700); err != nil {
		d.t.Fatal(err)
	}
	conf := fmt.Sprintf("agentaddress udp:%s\nrocommunity public 127.0.0.1\nengineID %s\n", d.endpoint, engine)
	for _, u := range users {
		conf += fmt.Sprintf("createUser %s %s %q %s %q\nrouser %s priv\n", u.name, u.auth, passphrase, u.priv, passphrase, u.name)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "snmpd.conf"), []byte(conf), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.process = exec.Command("/usr/sbin/snmpd", "-f", "-Lf", filepath.Join(d.dir, "log"), "-p", filepath.Join(d.dir, "pid"), "-I", "-smux")
	d.process.Env = []string{"SNMPCONFPATH=" + d.dir + ":" + persist, "SNMP_PERSISTENT_DIR=" + persist, "MIBS="}
	if err := d.process.Start(); err != nil {
		d.t.Fatalf("start snmpd (Debian package snmpd): %v", err)
	}
	c, err := dial(d.endpoint, community("public"), 200*time.Millisecond, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.close()
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, err := readClock(d.t.Context(), c)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(d.dir, "log"))
			d.t.Fatalf("snmpd does not answer: %v\n%s", err, log)
		}
	}
}

func (d *snmpd) stop() {
	if d.process == nil {
		return
	}
	_ = d.process.Process.Kill()
	_ = d.process.Wait() // killed: it cannot end well
	d.process = nil
}

var users = []struct{ name, auth, priv, ourAuth, ourPriv string }{
	{"weak", "MD5", "DES", "md5", "des"},
	{"sha1aes", "SHA", "AES", "sha", "aes"},
	{"sha256aes", "SHA-256", "AES", "sha256", "aes"},
	{"sha512aes256", "SHA-512", "AES-256", "sha512", "aes256"},
}

func community(name string) config.Credentials {
	return config.Credentials{Version: config.V2c, Community: config.NewSecret(name)}
}

func user(name, auth, authPass, priv, privPass string) config.Credentials {
	return config.Credentials{Version: config.V3, User: name, Auth: auth, AuthPass: config.NewSecret(authPass), Priv: priv, PrivPass: config.NewSecret(privPass)}
}

// poller makes a source for the agent.
func poller(t *testing.T, endpoint string, c config.Credentials) *Source {
	t.Helper()
	cfg := config.DefaultFabric()
	cfg.Name, cfg.Timeout, cfg.Retries = "lab", 400*time.Millisecond, 1
	cfg.Credentials = map[string]config.Credentials{"c": c}
	cfg.Switches = []config.Switch{{Name: "l1", Address: endpoint, Credentials: "c"}}
	cfg.Complete()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	sources, err := New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if sources[0].client != nil {
			_ = sources[0].client.close()
		}
	})
	return sources[0]
}

func find(samples []source.Sample, name, port string) (float64, bool) {
	for _, s := range samples {
		if s.Row.Name == name && s.Label("port") == port {
			return s.Value, true
		}
	}
	return 0, false
}

func isUp(t *testing.T, s *Source) (bool, error) {
	t.Helper()
	samples, err := s.Read(t.Context())
	v, ok := find(samples, "trainyard_switch_up", "")
	if !ok {
		t.Fatal("no trainyard_switch_up")
	}
	return v == 1, err
}

// What the agent says of this machine's devices is what the kernel says of them.
func TestRealAgentAgreesWithTheKernel(t *testing.T) {
	d := newSnmpd(t)
	d.start("0x80001f8801")
	s := poller(t, d.endpoint, community("public"))
	before := kernelBytes(t)
	samples, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after := kernelBytes(t)
	compared := 0
	for device, low := range before {
		if device == "lo" {
			if _, ok := find(samples, "trainyard_switch_port_receive_bytes_total", device); ok {
				t.Error("loopback is a port")
			}
			continue
		}
		got, ok := find(samples, "trainyard_switch_port_receive_bytes_total", device)
		if !ok {
			t.Errorf("device %s is missing", device)
			continue
		}
		// The agent keeps its counters for 3 s; it has just been started, so that they are not much older than low.
		if got > after[device] || got < low-64e6 {
			t.Errorf("device %s: the agent says %v, the kernel %v to %v", device, got, low, after[device])
		}
		compared++
	}
	if compared == 0 {
		t.Error("no device but loopback: nothing was compared")
	}
	if v, ok := find(samples, "trainyard_switch_agent_cache_seconds", ""); !ok || v <= 0 {
		t.Errorf("the agent's cache time is %v (%v)", v, ok)
	}
}

func kernelBytes(t *testing.T) map[string]float64 {
	t.Helper()
	dirs, err := filepath.Glob("/sys/class/net/*/statistics/rx_bytes")
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]float64{}
	for _, path := range dirs {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
		if err != nil {
			t.Fatal(err)
		}
		m[strings.Split(path, "/")[4]] = v
	}
	return m
}

func TestRealAgentCredentials(t *testing.T) {
	d := newSnmpd(t)
	d.start("0x80001f8802")
	for _, u := range users {
		if up, err := isUp(t, poller(t, d.endpoint, user(u.name, u.ourAuth, passphrase, u.ourPriv, passphrase))); !up || err != nil {
			t.Errorf("user %s: up %v, %v", u.name, up, err)
		}
	}
	for what, c := range map[string]struct {
		credentials config.Credentials
		want        string
	}{
		"a wrong community":                 {community("nothing"), "a wrong community"},
		"an unknown user":                   {user("nobody", "sha256", passphrase, "aes", passphrase), "does not know the user"},
		"a wrong authentication passphrase": {user("sha256aes", "sha256", "another passphrase", "aes", passphrase), "wrong authentication"},
		"a wrong authentication protocol":   {user("sha256aes", "sha", passphrase, "aes", passphrase), "wrong authentication"},
		"a wrong privacy passphrase":        {user("sha256aes", "sha256", passphrase, "aes", "another passphrase"), "a wrong privacy passphrase"},
	} {
		if up, err := isUp(t, poller(t, d.endpoint, c.credentials)); up || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: up %v, want %q in the error, got %v", what, up, c.want, err)
		}
	}
}

// An agent that is stopped is down; one that comes back with a new engine id is followed by the poll after the first
// failure.
func TestRealAgentComesBackAsAnother(t *testing.T) {
	d := newSnmpd(t)
	d.start("0x80001f8803")
	v3 := poller(t, d.endpoint, user("sha256aes", "sha256", passphrase, "aes", passphrase))
	if up, err := isUp(t, v3); !up {
		t.Fatalf("at first: %v", err)
	}
	d.stop()
	if up, err := isUp(t, v3); up || !errors.Is(err, errNoAnswer) {
		t.Errorf("stopped: up %v, %v", up, err)
	}
	d.start("0x80001f8804")
	if up, err := isUp(t, v3); !up {
		t.Errorf("as another engine, after a poll that failed: %v", err)
	}
	d.stop()
	d.start("0x80001f8805") // this time no poll falls into the gap
	first, errFirst := isUp(t, v3)
	second, errSecond := isUp(t, v3)
	if !first && !second {
		t.Errorf("as another engine: %v, then %v", errFirst, errSecond)
	}
}
