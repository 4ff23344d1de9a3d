// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// permanent marks an error after which waiting is useless.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// waitFor asks again and again until ok returns nil, the time is over or ctx ends; it then returns ok's last error.
func waitFor(ctx context.Context, limit time.Duration, ok func() error) error {
	deadline := time.Now().Add(limit)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := ok()
		if err == nil {
			return nil
		}
		if errors.As(err, new(permanent)) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", limit, err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}
