// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command labctl is for people who want to look around in the lab: `labctl up` builds one and keeps it until Ctrl-C,
// `labctl down` takes all labs of this machine down, `labctl sweep` those whose owners are gone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/trainyard/trainyard/test/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "labctl:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	verb := "up"
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "up":
		return up(ctx, args)
	case "down":
		n, err := lab.Remove("")
		fmt.Printf("%d labs taken down\n", n)
		return err
	case "sweep":
		return lab.Sweep()
	}
	return fmt.Errorf("unknown verb %q: want up, down or sweep", verb)
}

func up(ctx context.Context, args []string) (err error) {
	var cfg lab.Config
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.IntVar(&cfg.FabricMbit, "mbit", 0, "rate of each leaf-spine direction in Mbit/s (0 = the default)")
	flags.BoolVar(&cfg.Fair, "fair", false, "per-flow-fair queues instead of drop-tail")
	flags.BoolVar(&cfg.ECN, "ecn", false, "ECN marking on long queues")
	flags.BoolVar(&cfg.SharedSpineAS, "shared-spine-as", false, "both spines in one AS")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg.Log = os.Stdout
	l, err := lab.Up(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	fmt.Printf("try: ip netns exec %s ip route\n     ip netns exec %s ping -c 3 -I %s %s\nCtrl-C takes it down\n",
		l.Namespace("l1"), l.Namespace("n1"), l.Hosts[0].NICs[0].Addr, l.Hosts[4].NICs[0].Addr)
	<-ctx.Done()
	return nil
}
