// SPDX-License-Identifier: Apache-2.0

//go:build lab

package ethtool

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netns"
)

// A veth device in a namespace of its own: what we read is what the program ethtool reads.
func TestAgreesWithTheProgram(t *testing.T) {
	name := fmt.Sprintf("tyeth-%d", os.Getpid())
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v\n%s", args, err, out)
		}
	}
	ip("netns", "add", name)
	defer func() { _ = exec.Command("ip", "netns", "del", name).Run() }()
	ip("-n", name, "link", "add", "rail0", "type", "veth", "peer", "name", "far0")

	out, err := exec.CommandContext(t.Context(), "ip", "netns", "exec", name, "ethtool", "-S", "rail0").Output()
	if err != nil {
		t.Fatalf("ethtool -S: %v", err)
	}
	ours, err := inNamespace(name, func() (map[string]uint64, error) { return statistics("rail0") })
	if err != nil {
		t.Fatal(err)
	}
	theirs := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		i := strings.LastIndex(lines.Text(), ":")
		if i < 0 {
			continue
		}
		key := strings.TrimSpace(lines.Text()[:i])
		want, err := strconv.ParseUint(strings.TrimSpace(lines.Text()[i+1:]), 10, 64)
		if err != nil {
			continue // the heading
		}
		theirs++
		if got, ok := ours[key]; !ok || got != want {
			t.Errorf("%s is %d (there: %v), ethtool says %d", key, got, ok, want)
		}
	}
	if theirs == 0 || theirs != len(ours) {
		t.Errorf("%d statistics, ethtool shows %d:\n%s", len(ours), theirs, out)
	}
}

// inNamespace runs f on a thread that is thrown away with the namespace it was put into.
func inNamespace(name string, f func() (map[string]uint64, error)) (m map[string]uint64, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		var h netns.NsHandle
		if h, err = netns.GetFromName(name); err != nil {
			return
		}
		defer h.Close()
		if err = netns.Set(h); err == nil {
			m, err = f()
		}
	}()
	<-done
	return m, err
}
