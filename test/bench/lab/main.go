// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command lab measures how good forecasts of link loads are: iperf3 streams over real switches, the same streams in
// the product's max-min model, and the kernel's counters as judge. On links whose queues are fair per flow the load of
// every link that is not full must be forecast within 5 %; the error on drop-tail links is measured and shown. It
// needs root and iperf3, whose version it prints, and fails without.
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
	"github.com/trainyard/trainyard/test/lab/ring"
)

func main() {
	ring.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-lab:", err)
		os.Exit(1)
	}
}

const bound = 0.05 // of a link's forecast load, on fair links

func run(ctx context.Context) error {
	seed := flag.Uint64("seed", 1, "seed of the random cases")
	random := flag.Int("random", 3, "number of random cases")
	flag.Parse()
	if err := lab.Require(); err != nil {
		return err
	}
	cases := append(fixedCases(), randomCases(*seed, *random)...)
	fair, err := bench(ctx, true, cases)
	if err != nil {
		return err
	}
	tail, err := bench(ctx, false, cases)
	if err != nil {
		return err
	}
	fmt.Printf("\n%-42s %10s %10s\n", "error of forecast link loads, links not full", "fair", "drop-tail")
	for _, row := range []struct {
		what string
		of   func(summary) float64
	}{{"mean", summary.mean}, {"worst", summary.worst}} {
		fmt.Printf("%-44s %8.1f %% %8.1f %%\n", row.what, 100*row.of(fair.open), 100*row.of(tail.open))
	}
	fmt.Printf("%-44s %10d %10d\n", "links", len(fair.open), len(tail.open))
	fmt.Printf("%-44s %8.1f %% %8.1f %%\n", "full links, mean", 100*fair.full.mean(), 100*tail.full.mean())
	fmt.Printf("%-44s %8.1f %% %8.1f %%\n", "rate of single streams, mean", 100*fair.streams.mean(), 100*tail.streams.mean())
	fmt.Printf("peer: %s\n", fair.version)
	if w := fair.open.worst(); w > bound {
		return fmt.Errorf("on fair links a forecast is off by %.1f %%, more than %.0f %%", 100*w, 100*bound)
	}
	if len(fair.open) == 0 {
		return errors.New("no link that is not full was measured")
	}
	return nil
}
