// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"fmt"
	"time"
)

// CutLink pulls the cable between two devices: both ends lose carrier at once.
func (l *Lab) CutLink(a, b string) error { return l.setCable(a, b, false) }

// RestoreLink plugs it in again.
func (l *Lab) RestoreLink(a, b string) error { return l.setCable(a, b, true) }

// FlapLink cuts and restores a cable n times, each state lasting half of every; it ends restored.
func (l *Lab) FlapLink(ctx context.Context, a, b string, n int, every time.Duration) error {
	for range n {
		if err := l.CutLink(a, b); err != nil {
			return err
		}
		cutShort := sleep(ctx, every/2)
		if err := l.RestoreLink(a, b); err != nil {
			return err
		}
		if cutShort != nil {
			return cutShort
		}
		if err := sleep(ctx, every/2); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (l *Lab) setCable(a, b string, up bool) error {
	c, ok := l.Cable(a, b)
	if !ok {
		return fmt.Errorf("no cable between %s and %s", a, b)
	}
	for _, end := range []portKey{{c.A, c.APort}, {c.B, c.BPort}} {
		p, link, err := l.link(end.place, end.port)
		if err != nil {
			return err
		}
		if up {
			err = p.handle.LinkSetUp(link)
		} else {
			err = p.handle.LinkSetDown(link)
		}
		if err != nil {
			return fmt.Errorf("cable %s - %s: %w", a, b, err)
		}
	}
	if h, ok := l.Host(c.B); ok && up { // the kernel forgot the routes of a device that went down
		return l.hostRoutes(h)
	}
	return nil
}
