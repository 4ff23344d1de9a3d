// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// FS is what the file store needs of a file system; tests put one in that crashes, fills up and goes bad.
type FS interface {
	MkdirAll(dir string) error
	ReadDir(dir string) ([]string, error) // names in order; a directory that is not there is empty
	ReadFile(name string) ([]byte, error)
	Create(name string) (File, error) // for writing; an error if it is there
	Append(name string) (File, error) // for writing at the end of a file that is there
	Truncate(name string, size int64) error
	Rename(from, to string) error
	Remove(name string) error
	SyncDir(dir string) error
	Lock(name string) (io.Closer, error) // exclusive, until closed or the process ends
}

// File is an open file.
type File interface {
	io.WriteCloser
	Sync() error
}

// OS is the real file system.
type OS struct{}

// MkdirAll makes a directory and those above it, for the owner only: journals hold what labels say.
func (OS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

// ReadDir lists the names in a directory.
func (OS) ReadDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// ReadFile reads a whole file.
func (OS) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

// Create makes a new file.
func (OS) Create(name string) (File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// Append opens a file for writing at its end.
func (OS) Append(name string) (File, error) { return os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0) }

// Truncate cuts a file and makes the cut durable.
func (OS) Truncate(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Rename renames a file.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove removes a file.
func (OS) Remove(name string) error { return os.Remove(name) }

// SyncDir makes the entries of a directory durable.
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock takes an exclusive lock that ends with the process.
func (OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: another process holds it (%w)", filepath.Base(name), err)
	}
	return f, nil
}
