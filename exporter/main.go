// SPDX-License-Identifier: Apache-2.0

// Command trainyard-exporter reads a node or the switches of a fabric and serves what it read to Prometheus. It never
// changes what it reads. The node role knows nothing of switches and holds none of their credentials.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/exporter/app"
	"github.com/trainyard/trainyard/exporter/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: it returns the exit code, 2 for a mistake in the flags or the configuration.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("trainyard-exporter", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var (
		role     = flags.String("role", app.RoleNode, "what to read: node (the machine this runs on) or fabric (switches over SNMP)")
		name     = flags.String("node-name", "", "name of this node as Kubernetes has it (default: the host name)")
		listen   = flags.String("listen", "", "address to serve on (default 127.0.0.1:9600 for a node, 127.0.0.1:9601 for a fabric)")
		file     = flags.String("config.file", "", "YAML configuration of the node, or inventory of the fabric")
		check    = flags.Bool("config.check", false, "check flags and configuration and exit")
		interval = flags.Duration("interval", 0, "time between two reads of a source (default: 5s for a node, the inventory's for a fabric)")
		jobDir   = flags.String("job-dir", "", "directory where training processes leave their reports")
		procfs   = flags.String("procfs", "/proc", "where the proc file system is mounted")
		sysfs    = flags.String("sysfs", "/sys", "where the sys file system is mounted")
		web      = flags.String("web.config.file", "", "TLS and passwords, in the format of Prometheus' exporter toolkit")
		version  = flags.Bool("version", false, "print the version and exit")
		debug    = flags.Bool("debug", false, "log more")
	)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "trainyard-exporter: unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	if *version {
		fmt.Fprintf(stdout, "trainyard-exporter %s (revision %s, %s)\n", app.Version, app.Revision(), runtime.Version())
		return 0
	}
	level := slog.LevelInfo
	if *debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))

	o := app.Options{Role: *role, Listen: *listen, WebConfigFile: *web}
	if o.Listen == "" {
		o.Listen = app.DefaultListen(*role)
	}
	var err error
	switch *role {
	case app.RoleFabric:
		o.Fabric, err = loadFabric(*file, *interval)
	default: // app.Build refuses an unknown role
		o.Node, err = config.LoadNode(*file)
		o.Node.JobDir, o.Node.Procfs, o.Node.Sysfs = *jobDir, *procfs, *sysfs
		if *name != "" {
			o.Node.Name = *name
		}
		if *interval != 0 {
			o.Node.Interval = *interval
		}
	}
	if err == nil {
		_, err = app.Build(o, log)
	}
	if err != nil {
		fmt.Fprintln(stderr, "trainyard-exporter:", err)
		return 2
	}
	if *check {
		fmt.Fprintln(stdout, "configuration is good")
		return 0
	}
	if err := app.Run(ctx, o, log, nil); err != nil {
		fmt.Fprintln(stderr, "trainyard-exporter:", err)
		return 1
	}
	return 0
}

// loadFabric reads the inventory; an interval given as a flag wins over the inventory's.
func loadFabric(file string, interval time.Duration) (config.Fabric, error) {
	f, err := config.LoadFabric(file)
	if err == nil && interval != 0 {
		f.Interval = interval
		for i := range f.Switches {
			f.Switches[i].Interval = interval
		}
	}
	return f, err
}
