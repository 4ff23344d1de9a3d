// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/journal"
	"github.com/trainyard/trainyard/actuator/journal/journaltest"
)

var ctx = context.Background()

func TestFileStoreOnDisk(t *testing.T) {
	dir := t.TempDir()
	journaltest.Run(t, func(t *testing.T) journal.Store {
		s, err := journal.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
	info, err := os.Stat(filepath.Join(dir, "seg-0000000000000001.log"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("segment: %v, %v", info, err)
	}
}

func TestFileStoreSmallSegments(t *testing.T) {
	fs := journaltest.NewFS()
	journaltest.Run(t, func(t *testing.T) journal.Store {
		s := open(t, fs)
		s.SegmentBytes = 1
		return s
	})
}

func TestMemStore(t *testing.T) {
	s := journal.NewMem()
	journaltest.Run(t, func(*testing.T) journal.Store { return s })
}

func open(t *testing.T, fs *journaltest.FS) *journal.FileStore {
	t.Helper()
	s, err := journal.Open("/j", fs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	s, err := journal.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := journal.OpenDir(dir); err == nil || !strings.Contains(err.Error(), "another process holds it") {
		t.Errorf("a second open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = journal.OpenDir(dir); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
}

// write appends n records one by one and returns the file.
func write(t *testing.T, fs *journaltest.FS, n int) (segment string) {
	t.Helper()
	s := open(t, fs)
	defer func() { _ = s.Close() }()
	if _, err := s.Load(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := s.Append(ctx, uint64(i), 1, []journal.Record{journaltest.Record(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	return fs.Files(".log")[0]
}

// sound checks that the journal holds exactly records 1..n, and goes on after them.
func sound(t *testing.T, fs *journaltest.FS, n int) journal.Loaded {
	t.Helper()
	s := open(t, fs)
	defer func() { _ = s.Close() }()
	l, err := s.Load(ctx)
	if err != nil || l.Damage != nil || int(l.Seq) != n || len(l.Records) != n {
		t.Fatalf("seq %d, %d records, damage %v, error %v; want %d", l.Seq, len(l.Records), l.Damage, err, n)
	}
	if err := s.Append(ctx, uint64(n), 1, []journal.Record{journaltest.Record(n + 1)}); err != nil {
		t.Fatal(err)
	}
	again, err := s.Load(ctx)
	if err != nil || again.Damage != nil || int(again.Seq) != n+1 || again.Torn != "" {
		t.Fatalf("after going on: seq %d, torn %q, damage %v, error %v", again.Seq, again.Torn, again.Damage, err)
	}
	return l
}

// Cut at every byte: whole records stay, the torn one is dropped and told, and the journal goes on.
func TestCutAtEveryByte(t *testing.T) {
	const records = 3
	fs := journaltest.NewFS()
	name := write(t, fs, records)
	whole := fs.Bytes(name)
	size := len(whole) / records
	for cut := 0; cut <= len(whole); cut++ {
		fs := journaltest.NewFS()
		write(t, fs, records)
		fs.Corrupt(name, func(b []byte) []byte { return b[:cut] })
		l := sound(t, fs, cut/size)
		if torn := cut%size != 0; (l.Torn != "") != torn {
			t.Fatalf("cut at %d of %d: torn %q", cut, len(whole), l.Torn)
		}
	}
}

// Flip every bit: before the last record it is damage, and nothing is written any more; in the last record it cannot be
// told from an unfinished write, and is dropped and told. Never is a wrong record believed.
func TestFlipEveryBit(t *testing.T) {
	const records = 3
	fs := journaltest.NewFS()
	name := write(t, fs, records)
	whole := fs.Bytes(name)
	last := len(whole) - len(whole)/records
	for bit := range 8 * len(whole) {
		fs := journaltest.NewFS()
		write(t, fs, records)
		fs.Corrupt(name, func(b []byte) []byte { b[bit/8] ^= 1 << (bit % 8); return b })
		if bit/8 >= last {
			if l := sound(t, fs, records-1); l.Torn == "" {
				t.Fatalf("bit %d: dropped in silence", bit)
			}
			continue
		}
		s := open(t, fs)
		l, err := s.Load(ctx)
		if err != nil || !errors.Is(l.Damage, journal.ErrDamaged) {
			t.Fatalf("bit %d: damage %v, error %v", bit, l.Damage, err)
		}
		if err := s.Append(ctx, l.Seq, 1, []journal.Record{journaltest.Record(9)}); !errors.Is(err, journal.ErrReadOnly) {
			t.Fatalf("bit %d: append: %v", bit, err)
		}
		if _, err := s.PutBlob(ctx, []byte("x")); !errors.Is(err, journal.ErrReadOnly) {
			t.Fatalf("bit %d: put blob: %v", bit, err)
		}
		_ = s.Close()
	}
}

// A sound record of a newer format is no damage and no torn end: the program is too old.
func TestNewerFormat(t *testing.T) {
	fs := journaltest.NewFS()
	name := write(t, fs, 2)
	fs.Corrupt(name, journal.AsNewerFormat)
	s := open(t, fs)
	l, err := s.Load(ctx)
	if err != nil || !errors.Is(l.Damage, journal.ErrNewer) || l.Seq != 1 {
		t.Fatalf("seq %d, damage %v, error %v", l.Seq, l.Damage, err)
	}
}

func TestMissingRecords(t *testing.T) {
	fs := journaltest.NewFS()
	s := open(t, fs)
	s.SegmentBytes = 1 // each record in a segment of its own
	if _, err := s.Load(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := s.Append(ctx, uint64(i), 1, []journal.Record{journaltest.Record(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	blob, err := s.PutBlob(ctx, []byte("a picture"))
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	files := fs.Files(".log")
	damaged := func(what string) {
		t.Helper()
		s := open(t, fs)
		defer func() { _ = s.Close() }()
		if l, err := s.Load(ctx); err != nil || !errors.Is(l.Damage, journal.ErrDamaged) {
			t.Errorf("%s: damage %v, error %v", what, l.Damage, err)
		}
	}
	if err := fs.Remove(files[1]); err != nil {
		t.Fatal(err)
	}
	damaged("a segment in the middle is gone")
	if err := fs.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	damaged("the beginning is gone")
	for _, f := range files[2:] {
		if err := fs.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	damaged("all records are gone, the pictures are there")
	fs.Corrupt("/j/blobs/"+blob, func(b []byte) []byte { b[0] ^= 1; return b })
	s = open(t, fs)
	if _, err := s.Blob(ctx, blob); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("a changed picture: %v", err)
	}
}

// A checkpoint that cannot be read is not needed as long as the records before it are there.
func TestCheckpointFallsBack(t *testing.T) {
	fs := journaltest.NewFS()
	write(t, fs, 2)
	s := open(t, fs)
	if _, err := s.Load(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(ctx, 2, 1, 1, time.Unix(3, 0), []byte("the state")); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	for _, f := range fs.Files("") {
		if strings.Contains(f, "/blobs/") {
			fs.Corrupt(f, func(b []byte) []byte { return b[1:] })
		}
	}
	s = open(t, fs)
	l, err := s.Load(ctx)
	if err != nil || l.Damage != nil || l.State != nil || len(l.Records) != 2 || len(l.Notes) == 0 || l.Seq != 3 {
		t.Fatalf("%+v, %v", l, err)
	}
}

// The only record is a checkpoint, and its state is damaged: nothing is known.
func TestOnlyADamagedCheckpoint(t *testing.T) {
	fs := journaltest.NewFS()
	write(t, fs, 2)
	s := open(t, fs)
	if _, err := s.Load(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(ctx, 2, 1, 1, time.Unix(3, 0), []byte("the state")); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if err := fs.Remove(fs.Files(".log")[0]); err != nil {
		t.Fatal(err)
	}
	for _, f := range fs.Files("") {
		if strings.Contains(f, "/blobs/") {
			fs.Corrupt(f, func(b []byte) []byte { return b[1:] })
		}
	}
	s = open(t, fs)
	if l, err := s.Load(ctx); err != nil || !errors.Is(l.Damage, journal.ErrDamaged) {
		t.Fatalf("%+v, %v", l, err)
	}
}

// Old segments go, and with them the blobs that only they name; what a state names stays.
func TestPrune(t *testing.T) {
	fs := journaltest.NewFS()
	s := open(t, fs)
	s.Keep = 3
	if _, err := s.Load(ctx); err != nil {
		t.Fatal(err)
	}
	put := func(what string) string {
		name, err := s.PutBlob(ctx, []byte(what))
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	old, standing := put("a picture of an incident that is forgotten"), put("a picture that the state needs")
	seq := uint64(0)
	for i := range 40 {
		r := journaltest.Record(i)
		if i == 0 {
			r.Payload = []byte(old + standing)
		}
		if err := s.Append(ctx, seq, 1, []journal.Record{r}); err != nil {
			t.Fatal(err)
		}
		if err := s.Checkpoint(ctx, seq+1, 1, 1, time.Unix(int64(i), 0), []byte("state "+standing+fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		seq += 2
	}
	if n := len(fs.Files(".log")); n > 3+16 {
		t.Errorf("%d segments", n)
	}
	if _, err := s.Blob(ctx, old); err == nil {
		t.Error("a blob that nobody names is still there")
	}
	if _, err := s.Blob(ctx, standing); err != nil {
		t.Error(err)
	}
	if l, err := s.Load(ctx); err != nil || l.Damage != nil || l.Seq != seq || string(l.State) != "state "+standing+"39" {
		t.Errorf("%+v, %v", l, err)
	}
}

// scenario writes records, a checkpoint, a blob and more records, and says how many were acknowledged.
func scenario(fs *journaltest.FS) (acked uint64, err error) {
	s, err := journal.Open("/j", fs)
	if err != nil {
		return 0, err
	}
	if _, err := s.Load(ctx); err != nil {
		return 0, err
	}
	put := func(n int) error {
		var rs []journal.Record
		for i := range n {
			rs = append(rs, journaltest.Record(int(acked)+i+1))
		}
		if err := s.Append(ctx, acked, 1, rs); err != nil {
			return err
		}
		acked += uint64(n)
		return nil
	}
	if err := errors.Join(put(1), put(2)); err != nil {
		return acked, err
	}
	if _, err := s.PutBlob(ctx, []byte("a picture")); err != nil {
		return acked, err
	}
	if err := s.Checkpoint(ctx, acked, 1, 1, time.Unix(9, 0), fmt.Appendf(nil, "state %d", acked)); err != nil {
		return acked, err
	}
	acked++
	return acked, put(2)
}

// The machine goes down at every operation, and loses nothing, some or all of what was not synced: whatever was
// acknowledged is there, in order, and the journal goes on.
func TestCrashAtEveryOperation(t *testing.T) {
	whole := journaltest.NewFS()
	if _, err := scenario(whole); err != nil {
		t.Fatal(err)
	}
	points := whole.Ops()
	for name, keep := range map[string]func(int) int{
		"nothing": func(int) int { return 0 }, "half": func(n int) int { return n / 2 }, "all": func(n int) int { return n },
	} {
		hit := 0
		for k := 1; k <= points; k++ {
			fs := journaltest.NewFS()
			n := 0
			fs.Before = func(string, string) error {
				if n++; n == k {
					return journaltest.ErrCrash
				}
				return nil
			}
			acked, err := scenario(fs)
			if err != nil {
				hit++
			}
			fs.Restart(keep)
			s := open(t, fs)
			l, err := s.Load(ctx)
			if err != nil || l.Damage != nil {
				t.Fatalf("crash at %d of %d, %s kept: damage %v, error %v", k, points, name, l.Damage, err)
			}
			if l.Seq < acked {
				t.Fatalf("crash at %d, %s kept: %d records acknowledged, %d there", k, name, acked, l.Seq)
			}
			if len(l.State) > 0 && string(l.State) != "state 3" {
				t.Fatalf("crash at %d: state %q", k, l.State)
			}
			for _, r := range l.Records {
				if !bytes.HasPrefix(r.Payload, []byte("record ")) {
					t.Fatalf("crash at %d: record %q", k, r.Payload)
				}
			}
			if err := s.Append(ctx, l.Seq, 1, []journal.Record{journaltest.Record(99)}); err != nil {
				t.Fatalf("crash at %d, %s kept: going on: %v", k, name, err)
			}
		}
		if hit != points {
			t.Errorf("%s kept: %d crash points hit, %d operations", name, hit, points)
		}
	}
	t.Logf("%d operations, each crashed three ways", points)
}

// A full disk takes nothing back that was acknowledged, and the journal goes on once there is room.
func TestFullDisk(t *testing.T) {
	fs := journaltest.NewFS()
	s := open(t, fs)
	if _, err := s.Load(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(ctx, 0, 1, []journal.Record{journaltest.Record(1)}); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	fs.Before = func(op, _ string) error {
		if op == "write" {
			return full
		}
		return nil
	}
	for range 3 {
		if err := s.Append(ctx, 1, 1, []journal.Record{journaltest.Record(2)}); !errors.Is(err, full) {
			t.Fatal(err)
		}
	}
	if _, err := s.PutBlob(ctx, []byte("x")); !errors.Is(err, full) {
		t.Fatal(err)
	}
	fs.Before = nil
	if err := s.Append(ctx, 1, 1, []journal.Record{journaltest.Record(2)}); err != nil {
		t.Fatal("there is room again:", err)
	}
	_ = s.Close()
	sound(t, fs, 2)
}

// After a failed fsync nobody knows what is on disk: the journal is closed for writing until it is read again.
func TestFailedSync(t *testing.T) {
	fs := journaltest.NewFS()
	s := open(t, fs)
	if _, err := s.Load(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(ctx, 0, 1, []journal.Record{journaltest.Record(1)}); err != nil {
		t.Fatal(err)
	}
	fs.Before = func(op, _ string) error {
		if op == "sync" {
			return errors.New("input/output error")
		}
		return nil
	}
	if err := s.Append(ctx, 1, 1, []journal.Record{journaltest.Record(2)}); err == nil {
		t.Fatal("a failed fsync was acknowledged")
	}
	fs.Before = nil
	if err := s.Append(ctx, 1, 1, []journal.Record{journaltest.Record(2)}); !errors.Is(err, journal.ErrBroken) {
		t.Fatal(err)
	}
	l, err := s.Load(ctx)
	if err != nil || l.Damage != nil || l.Seq < 1 {
		t.Fatal(l, err)
	}
	if err := s.Append(ctx, l.Seq, 1, []journal.Record{journaltest.Record(3)}); err != nil {
		t.Fatal(err)
	}
}

func FuzzLoad(f *testing.F) {
	fs := journaltest.NewFS()
	s, err := journal.Open("/j", fs)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := s.Load(ctx); err != nil {
		f.Fatal(err)
	}
	if err := s.Append(ctx, 0, 1, []journal.Record{journaltest.Record(1), journaltest.Record(2)}); err != nil {
		f.Fatal(err)
	}
	name := fs.Files(".log")[0]
	f.Add(fs.Bytes(name))
	f.Fuzz(func(t *testing.T, data []byte) {
		fs := journaltest.NewFS()
		file, err := fs.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(data); err != nil {
			t.Fatal(err)
		}
		s, err := journal.Open("/j", fs)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Load(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range l.Records {
			if i > 0 && r.Seq != l.Records[i-1].Seq+1 {
				t.Fatalf("record %d after %d", r.Seq, l.Records[i-1].Seq)
			}
		}
	})
}
