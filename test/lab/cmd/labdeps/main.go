// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command labdeps installs the Debian packages that the lab needs and that are missing, and says which.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/trainyard/trainyard/test/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := lab.InstallPackages(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab-deps:", err)
		os.Exit(1)
	}
}
