// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFileLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	a, b := NewFileLease(path), NewFileLease(path)
	last, err := a.Acquire(at, 1)
	if err != nil || !last.IsZero() {
		t.Fatalf("the first lease: last %v, error %v", last, err)
	}
	if _, err := b.Acquire(at, 2); err == nil || !strings.Contains(err.Error(), "holds it") {
		t.Errorf("a second holder: %v", err)
	}
	if err := a.Renew(at.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	last, err = b.Acquire(at.Add(time.Minute), 2)
	if err != nil || !last.Equal(at.Add(time.Second)) {
		t.Errorf("the next holder: last %v, error %v", last, err)
	}
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if last, err = a.Acquire(at, 3); err != nil || !last.IsZero() {
		t.Errorf("an unreadable lease: last %v, error %v", last, err)
	}
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestStopFileOnDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stop")
	look := StopFile(path)
	for _, c := range []struct {
		text string
		want StopSwitch
	}{{"-", StopSwitch{}}, {"", StopSwitch{Present: true}}, {"lunch\n", StopSwitch{Present: true}}, {"withdraw\n", StopSwitch{Present: true, Withdraw: true}}} {
		if c.text != "-" {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := look(); err != nil || got != c.want {
			t.Errorf("%q: %+v, %v", c.text, got, err)
		}
	}
	if _, err := StopFile(t.TempDir())(); err == nil {
		t.Error("a stop file that cannot be read is no error")
	}
}

// The permit asks both clocks, and what is over stays over.
func TestPermit(t *testing.T) {
	now := time.Now()
	p := NewPermit(func() time.Time { return now }, 10*time.Second)
	if p.Valid(now) == nil {
		t.Error("valid before it was granted")
	}
	p.grant(1)
	start := now
	now = start.Add(9 * time.Second)
	if err := p.renew(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(10*time.Second - time.Nanosecond)
	if err := p.Valid(now); err != nil || p.left() != time.Nanosecond {
		t.Errorf("%v, %v left", err, p.left())
	}
	now = now.Add(time.Nanosecond)
	if p.Valid(now) == nil || p.renew() == nil || p.left() != 0 {
		t.Error("valid at its very end")
	}
	p.grant(2) // the next run
	now = now.Round(0).Add(-time.Hour)
	if err := p.Valid(now); err != nil {
		t.Errorf("a wall clock that was set back: %v", err) // the monotonic clock would tell; this one has none
	}
}
