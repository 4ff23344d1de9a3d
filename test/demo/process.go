// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// processes are programs that this demo has started itself, and that end with it.
type processes struct {
	dir string

	mu    sync.Mutex
	stops []func()
}

// Run starts a program with its output in dir/name.log.
func (p *processes) Run(ctx context.Context, name string, argv ...string) error {
	log, err := os.Create(filepath.Join(p.dir, name+".log"))
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	dieWithUs(cmd)
	if err := cmd.Start(); err != nil {
		_ = log.Close()
		return fmt.Errorf("start %s: %w", name, err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		_ = log.Close()
		close(done)
	}()
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-done:
		case <-time.After(3 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
	})
	context.AfterFunc(ctx, stop)
	p.mu.Lock()
	p.stops = append(p.stops, stop)
	p.mu.Unlock()
	return nil
}

// stopAll ends everything in reverse order.
func (p *processes) stopAll() {
	p.mu.Lock()
	stops := p.stops
	p.stops = nil
	p.mu.Unlock()
	for i := len(stops) - 1; i >= 0; i-- {
		stops[i]()
	}
}
