// SPDX-License-Identifier: Apache-2.0

// Command demo shows the whole loop on one machine: two training jobs collide on one uplink of a leaf-spine fabric, and
// trainyard sees it, says so, simulates a cure, moves one route, and checks that it helped. It runs twice, first in watch
// mode as the control: there the congestion lasts and no route is written.
//
// As root on Linux the fabric is real (network namespaces with FRR, SNMP and LLDP, and TCP traffic); elsewhere, or with
// --simulated, it is the simulated plant. Prometheus, Alertmanager and trainyard are real in both.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/test/tools/toolbox"
)

func main() {
	beRank() // a rank of a training job in the lab is this program started again
	os.Exit(run())
}

// exitInterrupted is what a shell calls the end by Ctrl-C.
const exitInterrupted = 130

// run is main with an exit code.
func run() int {
	simulate := flag.Bool("simulated", false, "use the simulated plant, which needs no root")
	dir := flag.String("dir", "", "folder for configurations, logs and results (default: a new one below the temporary folder)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := demo(ctx, os.Stdout, *simulate, *dir); {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "demo: interrupted, everything is taken down")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}

// demo makes both runs, prints the table and says what they fail to show.
func demo(ctx context.Context, out io.Writer, simulate bool, dir string) error {
	if !simulate {
		if err := labMissing(); err != nil {
			fmt.Fprintf(out, "No real fabric here: %v. Going on with the SIMULATED plant.\n", err)
			simulate = true
		}
	}
	root, err := toolbox.Root()
	if err != nil {
		return err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "trainyard-demo-"); err != nil {
			return fmt.Errorf("make a folder for logs: %w", err)
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("folder for logs: %w", err)
	}
	began := time.Now()
	bin, err := prepare(ctx, out, root, filepath.Join(dir, "bin"))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Logs and configurations: %s (programs ready after %.0f s)\n", dir, time.Since(began).Seconds())

	results := map[policy.Mode]result{}
	for _, mode := range []policy.Mode{policy.Watch, policy.Act} {
		fmt.Fprintf(out, "\n=== run in mode %s%s\n", mode, map[policy.Mode]string{policy.Watch: " (control: it says what it would do)", policy.Act: ""}[mode])
		r, err := once(ctx, out, simulate, mode, defaultSchedule, bin, filepath.Join(dir, string(mode)))
		if err != nil {
			return fmt.Errorf("run in mode %s: %w (logs: %s)", mode, err, filepath.Join(dir, string(mode)))
		}
		results[mode] = r
	}
	watch, act := results[policy.Watch], results[policy.Act]
	printTable(out, watch, act, simulate)
	if act.Story != "" {
		fmt.Fprintf(out, "What `trainyard explain %s` says:\n%s\n", act.Incident, indent(act.Story, 24))
	}
	if simulate {
		fmt.Fprintln(out, "SIMULATED: the fabric and the jobs were numbers; as root on Linux the same command runs it on real switches.")
	}
	fmt.Fprintf(out, "Next: the journal is in %s; `go run ./test/lab/cmd/labctl up` (root) gives a fabric to play with; README.md says where to read on. Took %.0f s.\n", filepath.Join(dir, "act", "journal"), time.Since(began).Seconds())
	text, err := json.MarshalIndent(results, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "results.json"), text, 0o644)
	}
	return errors.Join(append(check(watch, act), err)...)
}

// once builds a yard with its control side, makes one run and takes everything down, whatever happens.
func once(ctx context.Context, out io.Writer, simulate bool, mode policy.Mode, plan schedule, bin binaries, dir string) (_ result, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return result{}, fmt.Errorf("make the run's folder: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil { // an old journal in it would be replayed
		return result{}, fmt.Errorf("make the run's folder: %w", err)
	}
	say := newTimeline(out)
	var y yard
	if simulate {
		y = newSimulated(ctx, dir)
	} else if y, err = newLab(ctx, out, dir, bin); err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, y.Close()) }()
	say.event("%s", y.About())
	c, err := startControl(ctx, y, dir, mode, bin, say)
	if err != nil {
		return result{}, err
	}
	r := &pass{yard: y, control: c, mode: mode, plan: plan, say: say}
	return r.do(ctx)
}

// prepare builds what is not built yet: the foreign tools once for all, our own programs each time.
func prepare(ctx context.Context, out io.Writer, root, dir string) (binaries, error) {
	for _, tool := range []string{"prometheus", "alertmanager"} {
		if _, err := toolbox.Path(tool); errors.Is(err, toolbox.ErrNotBuilt) {
			fmt.Fprintf(out, "Building %s once, from its pinned source (minutes on a cold machine) ...\n", tool)
			if err := goTool(ctx, root, "run", "./test/tools/cmd/build", tool); err != nil {
				return binaries{}, err
			}
		} else if err != nil {
			return binaries{}, err
		}
	}
	return build(ctx, root, dir)
}

// goTool runs the go command in the repository.
func goTool(ctx context.Context, root string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	var b strings.Builder
	cmd.Stdout, cmd.Stderr = &b, &b
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, b.String())
	}
	return nil
}

// indent shows the first n lines.
func indent(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > n {
		lines = append(lines[:n], fmt.Sprintf("... %d lines more", len(lines)-n))
	}
	return "    " + strings.Join(lines, "\n    ")
}
