// SPDX-License-Identifier: Apache-2.0

// Command trainyard-actuator relieves congested links: it hears of them, looks for itself, simulates what could be
// done, does it if it may, checks the effect, and takes it back when it is no longer needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/actuator/app"
	"github.com/trainyard/trainyard/actuator/config"
)

// Exit codes: 1 = it could not start or had to end, 2 = wrong usage or configuration.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("trainyard-actuator", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("config.file", "/etc/trainyard/actuator.yaml", "path of the configuration")
	check := flags.Bool("config.check", false, "check configuration, policies, tokens and certificates, and exit; a running actuator is not disturbed")
	showVersion := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return exitUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "trainyard-actuator: unexpected argument %q\n", flags.Arg(0))
		return exitUsage
	}
	version := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	if *showVersion {
		fmt.Fprintln(stdout, "trainyard-actuator", version)
		return 0
	}
	cfg, err := config.Load(*file)
	if err == nil && *check {
		err = app.Check(cfg)
	}
	if err != nil {
		fmt.Fprintf(stderr, "trainyard-actuator: %v\n", err)
		return exitUsage
	}
	if *check {
		fmt.Fprintf(stdout, "%s: ok\n", *file)
		return 0
	}

	log := cfg.Log.Logger(stderr)
	a, err := app.New(cfg, app.Options{Logger: log, Version: version})
	if err != nil {
		log.Error("cannot start", "err", err)
		return exitFailed
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		for range hangup {
			if err := reload(ctx, a, *file); err != nil {
				log.Error("the old configuration stays in force", "err", err)
			}
		}
	}()
	if err := a.Run(ctx); err != nil {
		log.Error("ended", "err", err)
		return exitFailed
	}
	return 0
}

// reload reads the file again and puts it in force, or leaves everything as it is.
func reload(ctx context.Context, a *app.App, file string) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return a.Reload(ctx, cfg)
}
