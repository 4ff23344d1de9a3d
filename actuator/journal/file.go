// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// FileStore is a journal in one directory:
//
//	lock                    held while a process has it open
//	seg-<first seq>.log     frames; a checkpoint begins a new segment
//	blobs/<sha256>          states and pictures
type FileStore struct {
	dir  string
	fs   FS
	lock io.Closer

	mu       sync.Mutex
	loaded   bool
	seq      uint64
	epoch    uint64
	readOnly error
	broken   error
	segment  string // name of the one being written; "" = a new one is begun by the next record
	file     File
	size     int64           // sound bytes of the segment
	recent   map[string]bool // blobs put since the last pruning: the record that names one may still come

	// SegmentBytes is the size after which a new segment is begun. Set it before the first Append.
	SegmentBytes int64
	// Keep is how many segments before the newest checkpoint are kept for people to read. Set it before the first Append.
	Keep int
}

// OpenDir opens, and if need be makes, a journal in a directory of the real file system.
func OpenDir(dir string) (*FileStore, error) { return Open(dir, OS{}) }

// Open opens a journal on a file system and takes its lock.
func Open(dir string, fs FS) (*FileStore, error) {
	if err := fs.MkdirAll(filepath.Join(dir, "blobs")); err != nil {
		return nil, fmt.Errorf("make journal directory: %w", err)
	}
	lock, err := fs.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := fs.SyncDir(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("sync journal directory: %w", err), lock.Close())
	}
	return &FileStore{dir: dir, fs: fs, lock: lock, recent: map[string]bool{}, SegmentBytes: 16 << 20, Keep: 64}, nil
}

type checkpoint struct {
	Blob string `json:"blob"`
	Seq  uint64 `json:"seq"` // of the last record that the state includes
}

func segmentName(first uint64) string { return fmt.Sprintf("seg-%016x.log", first) }

// Load implements Store. A torn end is cut off the file, so that the next record follows the last sound one.
func (s *FileStore) Load(_ context.Context) (Loaded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.closeSegment(); err != nil {
		return Loaded{}, fmt.Errorf("load journal: %w", err)
	}
	names, err := s.segments()
	if err != nil {
		return Loaded{}, err
	}
	var l Loaded
	first, err := s.newestCheckpoint(names, &l)
	if err != nil {
		return Loaded{}, err
	}
	s.segment, s.size = "", 0
	s.read(names[first:], &l)
	if len(names) > 0 && l.Damage == nil && first == 0 && l.State == nil && (len(l.Records) == 0 || l.Records[0].Seq != 1) && l.Seq != 0 {
		l.Damage = fmt.Errorf("the journal does not begin with record 1 and has no sound checkpoint: %w", ErrDamaged)
	}
	if len(names) == 0 {
		l.Damage = s.foundNothing()
	}
	s.loaded, s.seq, s.epoch, s.readOnly, s.broken = true, l.Seq, l.Epoch, l.Damage, nil
	return l, nil
}

// foundNothing tells a new journal from one whose records are gone: the latter has blobs.
func (s *FileStore) foundNothing() error {
	blobs, err := s.fs.ReadDir(filepath.Join(s.dir, "blobs"))
	if err != nil {
		return fmt.Errorf("list blobs: %w", err)
	}
	if len(blobs) > 0 {
		return fmt.Errorf("there are %d blobs but no records: %w", len(blobs), ErrDamaged)
	}
	return nil
}

func (s *FileStore) segments() ([]string, error) {
	names, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list journal: %w", err)
	}
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, "seg-") || !strings.HasSuffix(n, ".log") })
	slices.Sort(names)
	return names, nil
}

// newestCheckpoint finds the newest segment that begins with a checkpoint whose state is sound.
func (s *FileStore) newestCheckpoint(names []string, l *Loaded) (int, error) {
	for i := len(names) - 1; i >= 0; i-- {
		data, err := s.fs.ReadFile(filepath.Join(s.dir, names[i]))
		if err != nil {
			return 0, fmt.Errorf("read journal: %w", err)
		}
		r, format, size := frameAt(data)
		if size == 0 || format != Format || r.Type != TypeCheckpoint {
			continue
		}
		var c checkpoint
		if err := json.Unmarshal(r.Payload, &c); err != nil {
			l.Notes = append(l.Notes, fmt.Sprintf("%s: checkpoint: %v", names[i], err))
			continue
		}
		state, err := s.blob(c.Blob)
		if err != nil {
			l.Notes = append(l.Notes, fmt.Sprintf("%s: checkpoint: %v", names[i], err))
			continue
		}
		l.State = state
		return i, nil
	}
	return 0, nil
}

// read parses the segments in order and leaves the store at the end of the last one.
func (s *FileStore) read(names []string, l *Loaded) {
	var next uint64 // expected; 0 = any
	for i, name := range names {
		data, err := s.fs.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			l.Damage = fmt.Errorf("read %s: %w", name, err)
			return
		}
		records, good, err := parse(data)
		last := i == len(names)-1
		if err == nil && good < len(data) && !last {
			err = fmt.Errorf("byte %d of %d: %w, and another segment follows", good, len(data), ErrDamaged)
		}
		for _, r := range records {
			if next != 0 && r.Seq != next {
				l.Damage = fmt.Errorf("%s: record %d where %d was expected: %w", name, r.Seq, next, ErrDamaged)
				return
			}
			next = r.Seq + 1
			l.Seq, l.Epoch = r.Seq, max(l.Epoch, r.Epoch)
			if r.Type != TypeCheckpoint {
				l.Records = append(l.Records, r)
			}
		}
		if err != nil {
			l.Damage = fmt.Errorf("%s: %w", name, err)
			return
		}
		if !last {
			continue
		}
		if good < len(data) {
			l.Torn = fmt.Sprintf("%s: %d bytes after record %d: an unfinished write, dropped", name, len(data)-good, l.Seq)
			if err := s.fs.Truncate(filepath.Join(s.dir, name), int64(good)); err != nil {
				l.Damage = fmt.Errorf("cut the torn end of %s: %w", name, err)
				return
			}
		}
		s.segment, s.size = name, int64(good)
	}
}

// Append implements Store: one write, one fsync.
func (s *FileStore) Append(_ context.Context, expectedSeq, epoch uint64, records []Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.append(expectedSeq, epoch, records, false)
}

func (s *FileStore) writable(expectedSeq, epoch uint64) error {
	switch {
	case !s.loaded:
		return fmt.Errorf("append: the journal was not loaded: %w", ErrReadOnly)
	case s.readOnly != nil:
		return fmt.Errorf("append: %w: %w", ErrReadOnly, s.readOnly)
	case s.broken != nil:
		return fmt.Errorf("append: %w: %w", ErrBroken, s.broken)
	case epoch < s.epoch || expectedSeq != s.seq:
		return fmt.Errorf("append after record %d in epoch %d, the journal is at %d in %d: %w", expectedSeq, epoch, s.seq, s.epoch, ErrFenced)
	}
	return nil
}

func (s *FileStore) append(expectedSeq, epoch uint64, records []Record, newSegment bool) error {
	if err := s.writable(expectedSeq, epoch); err != nil {
		return err
	}
	if err := checkRecords(records); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	if len(records) == 0 {
		return nil
	}
	if newSegment || s.size >= s.SegmentBytes {
		if err := s.closeSegment(); err != nil {
			return err
		}
		s.segment, s.size = "", 0
	}
	if err := s.openSegment(); err != nil {
		return err
	}
	var buf []byte
	for i, r := range records {
		r.Seq, r.Epoch = s.seq+uint64(i)+1, epoch
		buf = appendFrame(buf, r)
	}
	if _, err := s.file.Write(buf); err != nil {
		return s.takeBack(fmt.Errorf("write %s: %w", s.segment, err))
	}
	if err := s.file.Sync(); err != nil {
		// After a failed fsync nobody knows what the disk has; the pages may be marked clean. Only reading it anew tells.
		s.broken = err
		return fmt.Errorf("fsync %s: %w", s.segment, err)
	}
	s.seq, s.epoch, s.size = s.seq+uint64(len(records)), epoch, s.size+int64(len(buf))
	return nil
}

// takeBack cuts off what a failed write (a full disk) left behind, so that the journal stays usable once there is room.
func (s *FileStore) takeBack(cause error) error {
	name := s.segment
	err := s.closeSegment()
	if err == nil {
		err = s.fs.Truncate(filepath.Join(s.dir, name), s.size)
	}
	if err != nil {
		s.broken = errors.Join(cause, fmt.Errorf("take the unfinished write back: %w", err))
		return s.broken
	}
	return cause
}

func (s *FileStore) openSegment() error {
	if s.file != nil {
		return nil
	}
	if s.segment != "" {
		f, err := s.fs.Append(filepath.Join(s.dir, s.segment))
		if err != nil {
			return fmt.Errorf("open segment: %w", err)
		}
		s.file = f
		return nil
	}
	name := segmentName(s.seq + 1)
	f, err := s.fs.Create(filepath.Join(s.dir, name))
	if err != nil { // one may be left of a start that crashed before its first record
		if g, aerr := s.fs.Append(filepath.Join(s.dir, name)); aerr == nil {
			if terr := s.fs.Truncate(filepath.Join(s.dir, name), 0); terr == nil {
				f, err = g, nil
			} else {
				_ = g.Close()
			}
		}
	}
	if err != nil {
		return fmt.Errorf("begin segment: %w", err)
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		_ = f.Close()
		return fmt.Errorf("begin segment: sync directory: %w", err)
	}
	s.file, s.segment, s.size = f, name, 0
	return nil
}

func (s *FileStore) closeSegment() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	if err != nil {
		return fmt.Errorf("close %s: %w", s.segment, err)
	}
	return nil
}

// Checkpoint implements Store.
func (s *FileStore) Checkpoint(_ context.Context, expectedSeq, epoch uint64, flow uint32, now time.Time, state []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(expectedSeq, epoch); err != nil {
		return err
	}
	name, err := s.putBlob(state)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(checkpoint{name, expectedSeq})
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	err = s.append(expectedSeq, epoch, []Record{{Flow: flow, Now: now, Type: TypeCheckpoint, Payload: payload}}, true)
	if err != nil {
		return err
	}
	return s.prune()
}

// Close implements Store.
func (s *FileStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = false
	return errors.Join(s.closeSegment(), s.lock.Close())
}
