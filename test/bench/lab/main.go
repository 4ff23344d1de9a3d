// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command lab measures how good forecasts of link loads are: iperf3 streams over real switches, the same streams in
// the product's max-min model, and the kernel's counters as judge. On links whose queues are fair per flow the load of
// every link that is not full must be forecast within 5 %; the error on drop-tail links is measured and shown. Then rings
// collide, the product decides, its plan is carried out, and its forecast of loads and step times is compared with what
// came. It needs root and iperf3, whose version it prints, and fails without.
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
	var streams [2]result
	var rings [2]decided
	for i, fair := range []bool{true, false} {
		var err error
		if streams[i], err = bench(ctx, fair, cases); err != nil {
			return err
		}
		if rings[i], err = decideAll(ctx, fair); err != nil {
			return err
		}
	}
	fair, tail := streams[0], streams[1]
	fmt.Printf("\n%-44s %10s %10s\n", "error of forecasts", "fair", "drop-tail")
	line := func(what string, fair, tail summary) {
		if len(fair) == 0 {
			return
		}
		fmt.Printf("%-44s %8.1f %% %8.1f %%   (worst %.1f %%, %.1f %%; %d values each)\n", what, 100*fair.mean(), 100*tail.mean(), 100*fair.worst(), 100*tail.worst(), len(fair))
	}
	line("iperf3 streams: loads of links not full", fair.open, tail.open)
	line("iperf3 streams: loads of full links", fair.full, tail.full)
	line("iperf3 streams: rate of each stream", fair.streams, tail.streams)
	line("rings, after the chosen plan: links not full", rings[0].open, rings[1].open)
	line("rings, after the chosen plan: full links", rings[0].full, rings[1].full)
	line("rings, after the chosen plan: step time", rings[0].steps, rings[1].steps)
	fmt.Printf("peer: %s\n", fair.version)
	if w := fair.open.worst(); w > bound {
		return fmt.Errorf("on fair links a forecast is off by %.1f %%, more than %.0f %%", 100*w, 100*bound)
	}
	if len(fair.open) == 0 {
		return errors.New("no link that is not full was measured")
	}
	return nil
}
