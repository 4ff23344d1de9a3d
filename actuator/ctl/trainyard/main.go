// SPDX-License-Identifier: Apache-2.0

// Command trainyard is the command-line tool of the trainyard actuator; see package ctl.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/trainyard/trainyard/actuator/ctl"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	version := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	code := ctl.Main(ctx, ctl.Environment{
		Name: os.Args[0], Args: os.Args[1:], Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Version: version,
	})
	cancel()
	os.Exit(code)
}
