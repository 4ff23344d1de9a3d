// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command is a process to start in a namespace.
type Command struct {
	Argv   []string
	Env    []string // added to ours
	Dir    string
	Stdin  io.Reader
	Stdout io.Writer // nil = dropped
	Stderr io.Writer // nil = dropped
	Nice   int       // added to our own nice value; negative needs root, which the lab has
}

// Process is a running command in its own process group. It dies with this process: by the parent-death signal at
// once, and by Close or Sweep where it gave that up by changing its user.
type Process struct {
	cmd  *exec.Cmd
	name string
	done chan struct{}
	err  error
}

// spawner is one thread that lives as long as we do and starts every child: the parent-death signal is sent when the
// parent *thread* ends, so a thread that comes and goes must not be a parent.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// Start runs a command in the namespace of a place ("l1", "n3", "mgmt").
func (l *Lab) Start(place string, c Command) (*Process, error) {
	ns, err := l.ns(place)
	if err != nil {
		return nil, err
	}
	if len(c.Argv) == 0 {
		return nil, fmt.Errorf("start in %s: no command", place)
	}
	// `ip netns exec` rather than a bare setns: it also mounts a /sys that shows the namespace's own devices. It
	// becomes the command by exec, so the pid is the command's.
	argv := append([]string{"ip", "netns", "exec", ns.name}, c.Argv...)
	return startProcess(place+": "+strings.Join(c.Argv, " "), argv, c)
}

func startProcess(name string, argv []string, c Command) (*Process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), "PATH="+sbinPath()), c.Env...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 2 * time.Second
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if c.Nice != 0 {
		_ = unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, c.Nice) // better latency only: not worth failing for
	}
	p := &Process{cmd: cmd, name: name, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Realtime is what to put before a command that makes traffic, so that it runs before all other programs of a small
// machine: what is measured is the network then and not whatever else runs. Such programs use little time. It is empty
// where that is not allowed.
func Realtime() []string { return slices.Clone(realtime()) }

var realtime = sync.OnceValue(func() []string {
	if exec.Command("chrt", "-r", "5", "true").Run() != nil {
		return nil
	}
	return []string{"chrt", "-r", "5"}
})

// sbinPath is PATH with the directories where daemons live.
func sbinPath() string { return os.Getenv("PATH") + ":/usr/sbin:/sbin" }

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end and returns how it went.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("%s: %w", p.name, p.err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", p.name, ctx.Err())
	}
}

// Signal sends a signal to the process alone.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Stop asks the process to end and ends its whole group after grace.
func (p *Process) Stop(grace time.Duration) {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
	}
	p.Kill()
}

// Kill ends the process group and waits for the process.
func (p *Process) Kill() {
	if p == nil {
		return
	}
	select {
	case <-p.done: // the group id may be somebody else's by now
		return
	default:
	}
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
	<-p.done
}

// Exec runs a command in the namespace of a place and returns what it printed on standard output.
func (l *Lab) Exec(ctx context.Context, place string, argv ...string) (string, error) {
	var out, errOut bytes.Buffer
	p, err := l.Start(place, Command{Argv: argv, Stdout: &out, Stderr: &errOut})
	if err != nil {
		return "", err
	}
	if err := p.Wait(ctx); err != nil {
		p.Kill()
		return out.String(), withOutput(err, errOut.String())
	}
	return out.String(), nil
}

// withOutput adds the first line that a failed command wrote.
func withOutput(err error, text string) error {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, first)
}

// runHost runs a short command outside any namespace (tc and ip take a namespace themselves).
func runHost(ctx context.Context, stdin string, argv ...string) (string, error) {
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+sbinPath())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
		}
		return out.String(), withOutput(err, errOut.String())
	}
	return out.String(), nil
}
