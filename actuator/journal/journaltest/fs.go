// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/trainyard/trainyard/actuator/journal"
)

// ErrCrash is what every operation returns after the machine went down.
var ErrCrash = errors.New("the machine went down")

// FS is a file system in memory that knows what would be on disk after a crash: bytes that were not synced may be
// missing, and so may names whose directory was not.
type FS struct {
	// Before is asked before each operation, if set: "write", "sync", "create", "rename", "remove", "truncate", "syncdir",
	// "read". An error is what the caller gets; ErrCrash stops the machine. A write that fails may have written half.
	Before func(op, name string) error

	mu      sync.Mutex
	names   map[string]*node // as processes see them
	durable map[string]*node // as the disk has them
	locks   map[string]bool
	down    bool
	ops     int
}

type node struct {
	data   []byte
	synced []byte
}

// NewFS returns an empty file system.
func NewFS() *FS {
	return &FS{names: map[string]*node{}, durable: map[string]*node{}, locks: map[string]bool{}}
}

// Ops is how many operations were asked for so far.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// Restart brings the machine up again. Of the bytes that were written but not synced, keep decides how many survive.
func (f *FS) Restart(keep func(unsynced int) int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.Before, f.locks = false, nil, map[string]bool{}
	f.names = maps.Clone(f.durable)
	for _, n := range f.names {
		switch grown := len(n.data) - len(n.synced); {
		case grown > 0:
			n.data = slices.Clone(n.data[:len(n.synced)+keep(grown)])
		case grown < 0:
			n.data = slices.Clone(n.synced)
		}
		n.synced = slices.Clone(n.data)
	}
}

// Corrupt changes a file behind everybody's back.
func (f *FS) Corrupt(name string, change func([]byte) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.names[name]
	n.data = change(slices.Clone(n.data))
	n.synced = slices.Clone(n.data)
}

// Files lists the names of all files that end in suffix.
func (f *FS) Files(suffix string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.names)), func(n string) bool { return !strings.HasSuffix(n, suffix) })
}

// Bytes is the content of a file.
func (f *FS) Bytes(name string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.names[name].data)
}

// op asks Before; the lock is held.
func (f *FS) op(op, name string) error {
	if f.down {
		return ErrCrash
	}
	f.ops++
	if f.Before == nil {
		return nil
	}
	err := f.Before(op, name)
	if errors.Is(err, ErrCrash) {
		f.down = true
	}
	return err
}

// MkdirAll implements journal.FS. Directories need no memory here.
func (f *FS) MkdirAll(string) error { return nil }

// ReadDir implements journal.FS.
func (f *FS) ReadDir(dir string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.op("read", dir); err != nil {
		return nil, err
	}
	var names []string
	for n := range f.names {
		if filepath.Dir(n) == dir {
			names = append(names, filepath.Base(n))
		}
	}
	slices.Sort(names)
	return names, nil
}

// ReadFile implements journal.FS.
func (f *FS) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.op("read", name); err != nil {
		return nil, err
	}
	n, ok := f.names[name]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	return slices.Clone(n.data), nil
}

// Create implements journal.FS.
func (f *FS) Create(name string) (journal.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.op("create", name); err != nil {
		return nil, err
	}
	if _, ok := f.names[name]; ok {
		return nil, fmt.Errorf("create %s: %w", name, fs.ErrExist)
	}
	n := &node{}
	f.names[name] = n
	return &file{f, name, n}, nil
}

// Append implements journal.FS.
func (f *FS) Append(name string) (journal.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.op("append", name); err != nil {
		return nil, err
	}
	n, ok := f.names[name]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return &file{f, name, n}, nil
}

// Truncate implements journal.FS; it is durable, as journal.OS makes it.
func (f *FS) Truncate(name string, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.op("truncate", name); err != nil {
		return err
	}
	n, ok := f.names[name]
	if !ok {
		return fmt.Errorf("truncate %s: %w", name, fs.ErrNotExist)
	}
	n.data = n.data[:size]
	n.synced = slices.Clone(n.data)
	return nil
}

// Rename implements journal.FS.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.op("rename", to); err != nil {
		return err
	}
	n, ok := f.names[from]
	if !ok {
		return fmt.Errorf("rename %s: %w", from, fs.ErrNotExist)
	}
	delete(f.names, from)
	f.names[to] = n
	return nil
}

// Remove implements journal.FS.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.op("remove", name); err != nil {
		return err
	}
	if _, ok := f.names[name]; !ok {
		return fmt.Errorf("remove %s: %w", name, fs.ErrNotExist)
	}
	delete(f.names, name)
	return nil
}

// SyncDir implements journal.FS.
func (f *FS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.op("syncdir", dir); err != nil {
		return err
	}
	for n := range f.durable {
		if filepath.Dir(n) == dir && f.names[n] == nil {
			delete(f.durable, n)
		}
	}
	for n, nd := range f.names {
		if filepath.Dir(n) == dir {
			f.durable[n] = nd
		}
	}
	return nil
}

// Lock implements journal.FS.
func (f *FS) Lock(name string) (io.Closer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.locks[name] {
		return nil, fmt.Errorf("lock %s: held", name)
	}
	f.locks[name] = true
	return closer(func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.locks, name)
		return nil
	}), nil
}

type closer func() error

func (c closer) Close() error { return c() }

type file struct {
	f    *FS
	name string
	n    *node
}

func (h *file) Write(p []byte) (int, error) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if err := h.f.op("write", h.name); err != nil {
		half := len(p) / 2
		h.n.data = append(h.n.data, p[:half]...)
		return half, err
	}
	h.n.data = append(h.n.data, p...)
	return len(p), nil
}

func (h *file) Sync() error {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if err := h.f.op("sync", h.name); err != nil {
		return err
	}
	h.n.synced = slices.Clone(h.n.data)
	return nil
}

func (h *file) Close() error { return nil }
