// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const netnsDir = "/run/netns" // where iproute2 looks for named namespaces

// makeNetns creates a named namespace as `ip netns add` does and returns a handle on it.
func makeNetns(name string) (netns.NsHandle, error) {
	var h netns.NsHandle
	err := onThread(func() error {
		var err error
		h, err = netns.NewNamed(name) // leaves this thread in the new namespace; onThread throws the thread away
		return err
	})
	if err != nil {
		return netns.None(), fmt.Errorf("make namespace %s: %w", name, err)
	}
	return h, nil
}

// inNetns runs f on a thread that is in namespace h. Sockets that f makes stay in h wherever they are used later.
func inNetns(h netns.NsHandle, f func() error) error {
	return onThread(func() error {
		if err := netns.Set(h); err != nil {
			return fmt.Errorf("enter namespace: %w", err)
		}
		return f()
	})
}

// onThread runs f on a fresh thread that ends with it: whatever namespace f left it in, nobody inherits it.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread when this goroutine returns
		done <- f()
	}()
	return <-done
}

// deleteNetns removes the name; the kernel takes the namespace down once the last process and socket are gone.
func deleteNetns(name string) error {
	path := filepath.Join(netnsDir, name)
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount namespace %s: %w", name, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove namespace %s: %w", name, err)
	}
	return nil
}

// netnsNames lists the named namespaces that begin with prefix.
func netnsNames(prefix string) []string {
	entries, err := os.ReadDir(netnsDir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// inodeOf identifies a namespace by the inode behind its name; 0 = it has none.
func inodeOf(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	return st.Ino
}

// killInside ends every process that lives in one of the named namespaces, and waits until they are gone. It is the
// one sure way to end daemons that changed their user: those lose the parent-death signal. Our own process is spared.
func killInside(names []string) error {
	inside := map[uint64]bool{}
	for _, n := range names {
		if ino := inodeOf(filepath.Join(netnsDir, n)); ino != 0 {
			inside[ino] = true
		}
	}
	host := inodeOf("/proc/1/ns/net")
	delete(inside, host) // a plain file left where a mount was would name the host's own
	// This thread's, not /proc/self's: that is the main thread's, which the runtime cannot end, so that it stays in the
	// namespace that onThread left it in.
	delete(inside, inodeOf("/proc/thread-self/ns/net"))
	deadline := time.Now().Add(5 * time.Second)
	for {
		pids := pidsInside(inside)
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v in the lab's namespaces do not end", pids)
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func pidsInside(inside map[uint64]bool) []int {
	if len(inside) == 0 {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if inside[inodeOf("/proc/"+e.Name()+"/ns/net")] && !isZombie(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isZombie says that a process is dead and only waits for its parent.
func isZombie(pid int) bool {
	state, _, err := statOf(pid)
	return err != nil || state == "Z" || state == "X"
}

// statOf reads state and start time (in clock ticks since boot) of a process, see proc_pid_stat(5).
func statOf(pid int) (state, start string, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", err
	}
	_, rest, ok := strings.Cut(string(raw), ") ") // the name may hold anything, but the last field before is ")"
	if i := strings.LastIndex(string(raw), ") "); i >= 0 {
		rest = string(raw)[i+2:]
	}
	f := strings.Fields(rest)
	if !ok || len(f) < 20 {
		return "", "", fmt.Errorf("read stat of process %d: %d fields", pid, len(f))
	}
	return f[0], f[19], nil
}
