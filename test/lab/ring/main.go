// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ring

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/trainyard/trainyard/test/lab"
)

const workerEnv = "TRAINYARD_LAB_WORKER" // names the role that the started program plays

// hooked is set by Main: without it a started copy of this program would be the program, not a worker.
var hooked bool

// roles are what a worker can be. Each reads its orders from stdin and reports on stdout, one JSON value a line.
var roles = map[string]func(orders *json.Decoder, report func(any)) error{
	"rank":           runRank,
	"stream-send":    runStreamSend,
	"stream-receive": runStreamReceive,
	"probe-send":     runProbeSend,
	"probe-receive":  runProbeReceive,
}

// Main turns this process into a traffic worker if it was started as one, and then never returns; else it does
// nothing. Call it first in main and TestMain of whatever program starts traffic.
func Main() {
	hooked = true
	name, ok := os.LookupEnv(workerEnv)
	if !ok {
		return
	}
	role, ok := roles[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "lab worker: unknown role %q\n", name)
		os.Exit(2)
	}
	var mu sync.Mutex
	enc := json.NewEncoder(os.Stdout)
	report := func(v any) {
		mu.Lock()
		defer mu.Unlock()
		if enc.Encode(v) != nil {
			os.Exit(3) // whoever started us is gone
		}
	}
	if err := role(json.NewDecoder(os.Stdin), report); err != nil {
		fmt.Fprintf(os.Stderr, "lab worker %s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// worker is the parent's side of one worker process.
type worker struct {
	proc   *lab.Process
	orders *json.Encoder
	mu     sync.Mutex
	stdin  io.WriteCloser
	errOut *tail
	lines  chan struct{} // closed when stdout ended
}

// trafficNice is for machines that refuse lab.Realtime.
const trafficNice = -5

// startWorker starts a copy of this program in a place and gives it its first order. Each line that it reports goes to
// each.
func startWorker(l *lab.Lab, place, role string, first any, each func(line []byte)) (*worker, error) {
	if !hooked {
		return nil, errors.New("start traffic: ring.Main was not called at the start of this program")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start traffic: %w", err)
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start traffic: %w", err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start traffic: %w", err), inR.Close(), inW.Close())
	}
	w := &worker{orders: json.NewEncoder(inW), stdin: inW, errOut: &tail{}, lines: make(chan struct{})}
	w.proc, err = l.Start(place, lab.Command{
		Argv: append(lab.Realtime(), self), Env: []string{workerEnv + "=" + role, "GOMAXPROCS=2"}, Stdin: inR, Stdout: outW, Stderr: w.errOut, Nice: trafficNice,
	})
	_ = inR.Close()
	_ = outW.Close()
	if err != nil {
		return nil, errors.Join(err, inW.Close(), outR.Close())
	}
	go func() {
		defer close(w.lines)
		defer outR.Close()
		for sc := bufio.NewScanner(outR); sc.Scan(); {
			each(sc.Bytes())
		}
	}()
	if err := w.order(first); err != nil {
		w.proc.Kill()
		return nil, err
	}
	return w, nil
}

// order sends one more order.
func (w *worker) order(v any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.orders.Encode(v); err != nil {
		return fmt.Errorf("give orders to a traffic worker: %w", err)
	}
	return nil
}

// end closes the worker's orders, which tells it to end, and waits for its last line.
func (w *worker) closeOrders() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.stdin.Close()
}

// tail keeps the beginning of what a worker complained about.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 4096 - len(t.text); room > 0 {
		t.text = append(t.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
