// SPDX-License-Identifier: Apache-2.0

//go:build lab

package lab_test

import (
	"context"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/trainyard/trainyard/test/lab"
)

// testContext ends with the test, at Ctrl-C and after limit.
func testContext(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	t.Cleanup(stop)
	return ctx
}

// up builds a lab that ends with the test.
func up(ctx context.Context, t *testing.T, cfg lab.Config) *lab.Lab {
	t.Helper()
	cfg.Log = t.Output()
	l, err := lab.Up(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
