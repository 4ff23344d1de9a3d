// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lease is what keeps two processes apart.
type Lease interface {
	// Acquire takes the lease for an epoch, or says who holds it. last is when it was renewed before, by whomever.
	Acquire(now time.Time, epoch uint64) (last time.Time, err error)
	// Renew tells others that the holder lives.
	Renew(now time.Time) error
	// Release gives it back.
	Release() error
}

// FileLease is a lease on one machine: a file lock, which the kernel gives back when the process ends, and the time of
// the last renewal, from which a start learns how long nobody was there.
type FileLease struct {
	path string
	file *os.File
	held leaseFile
}

type leaseFile struct {
	Epoch   uint64    `json:"epoch"`
	PID     int       `json:"pid"`
	Renewed time.Time `json:"renewed"`
}

// NewFileLease names the file; Acquire makes it.
func NewFileLease(path string) *FileLease { return &FileLease{path: path} }

// Acquire implements Lease.
func (l *FileLease) Acquire(now time.Time, epoch uint64) (time.Time, error) {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return time.Time{}, fmt.Errorf("take the lease: %w", err)
	}
	var was leaseFile
	err = json.NewDecoder(f).Decode(&was)
	if lockErr := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); lockErr != nil {
		_ = f.Close()
		return time.Time{}, fmt.Errorf("take the lease: process %d holds it (%w)", was.PID, lockErr)
	}
	last := was.Renewed
	if err != nil {
		last = time.Time{} // a new file, or one that was not finished: unknown
	}
	l.file, l.held = f, leaseFile{epoch, os.Getpid(), now.UTC()}
	if err := l.write(); err != nil {
		return last, errors.Join(err, l.Release())
	}
	return last, nil
}

// Renew implements Lease.
func (l *FileLease) Renew(now time.Time) error {
	l.held.Renewed = now.UTC()
	return l.write()
}

func (l *FileLease) write() error {
	text, err := json.Marshal(l.held)
	if err != nil {
		return fmt.Errorf("write the lease: %w", err)
	}
	// Padded to one length and written at once: a reader sees the old one or the new one, never a mixture with a tail.
	line := fmt.Appendf(nil, "%-159s\n", text)
	if _, err := l.file.WriteAt(line, 0); err != nil {
		return fmt.Errorf("write the lease: %w", err)
	}
	return nil
}

// Release implements Lease.
func (l *FileLease) Release() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// StopFile looks for the stop switch at a path: present = stop; a first line "withdraw" = and take every route back. A
// file that cannot be looked at is an error, and an error blocks like a stop.
func StopFile(path string) func() (StopSwitch, error) {
	return func() (StopSwitch, error) {
		text, err := os.ReadFile(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return StopSwitch{}, nil
		case err != nil:
			return StopSwitch{}, fmt.Errorf("read the stop file: %w", err)
		}
		return StopSwitch{Present: true, Withdraw: len(text) >= 8 && string(text[:8]) == "withdraw"}, nil
	}
}
