// SPDX-License-Identifier: Apache-2.0

// Package journaltest holds what every journal.Store must pass, and a file system that crashes on demand.
package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/journal"
)

// Record makes a record whose payload says its number.
func Record(i int) journal.Record {
	return journal.Record{Flow: 1, Now: time.Unix(int64(i), 123456000).UTC(), Type: "test", Payload: fmt.Appendf(nil, "record %d", i)}
}

// Run checks a store. open opens the same journal again each time it is called; the one before was closed.
func Run(t *testing.T, open func(t *testing.T) journal.Store) {
	ctx := context.Background()
	s := open(t)
	load := func(want uint64) journal.Loaded {
		t.Helper()
		l, err := s.Load(ctx)
		if err != nil || l.Damage != nil || l.Seq != want {
			t.Fatalf("load: seq %d, damage %v, error %v; want seq %d", l.Seq, l.Damage, err, want)
		}
		return l
	}
	if l := load(0); l.State != nil || l.Records != nil || l.Epoch != 0 {
		t.Fatalf("a new journal holds %+v", l)
	}
	if err := s.Append(ctx, 0, 1, []journal.Record{Record(1), Record(2)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(ctx, 2, 1, nil); err != nil {
		t.Fatal("nothing to append:", err)
	}

	// Fences.
	for name, err := range map[string]error{
		"too early": s.Append(ctx, 1, 1, []journal.Record{Record(9)}), "too late": s.Append(ctx, 3, 1, []journal.Record{Record(9)}),
		"older epoch": s.Append(ctx, 2, 0, []journal.Record{Record(9)}),
		"checkpoint":  s.Checkpoint(ctx, 1, 1, 1, time.Unix(0, 0), []byte("x")),
	} {
		if !errors.Is(err, journal.ErrFenced) {
			t.Errorf("%s: %v, want ErrFenced", name, err)
		}
	}
	if err := s.Append(ctx, 2, 2, []journal.Record{Record(3)}); err != nil {
		t.Fatal("a later epoch:", err)
	}
	if err := s.Append(ctx, 3, 1, []journal.Record{Record(9)}); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the epoch before: %v", err)
	}

	// Bounds.
	big := Record(9)
	big.Payload = make([]byte, journal.MaxPayload+1)
	if err := s.Append(ctx, 3, 2, []journal.Record{Record(9), big}); err == nil {
		t.Error("a payload that is too large was accepted")
	}
	big.Payload = make([]byte, journal.MaxPayload)
	if err := s.Append(ctx, 3, 2, []journal.Record{big}); err != nil {
		t.Error("the largest payload:", err)
	}

	// What was written is read, in this run and in the next.
	for range 2 {
		l := load(4)
		if l.Epoch != 2 || len(l.Records) != 4 {
			t.Fatalf("epoch %d, %d records", l.Epoch, len(l.Records))
		}
		for i, r := range l.Records[:3] {
			want := Record(i + 1)
			if r.Seq != uint64(i+1) || !bytes.Equal(r.Payload, want.Payload) || !r.Now.Equal(want.Now) || r.Type != want.Type || r.Flow != 1 {
				t.Errorf("record %d: %+v", i+1, r)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t)
	}
	load(4)

	// A checkpoint replaces what comes before it.
	if err := s.Checkpoint(ctx, 4, 2, 1, time.Unix(5, 0), []byte("the state")); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(ctx, 5, 3, []journal.Record{Record(6)}); err != nil {
		t.Fatal(err)
	}
	if l := load(6); string(l.State) != "the state" || len(l.Records) != 1 || l.Records[0].Seq != 6 {
		t.Fatalf("after a checkpoint: state %q, %d records", l.State, len(l.Records))
	}

	// Blobs.
	name, err := s.PutBlob(ctx, []byte("a picture"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.PutBlob(ctx, []byte("a picture")); err != nil || again != name {
		t.Errorf("the same content: %q, %v", again, err)
	}
	if data, err := s.Blob(ctx, name); err != nil || string(data) != "a picture" {
		t.Errorf("blob: %q, %v", data, err)
	}
	for _, bad := range []string{"", "../lock", "00", name[:len(name)-1] + "g"} {
		if _, err := s.Blob(ctx, bad); err == nil {
			t.Errorf("blob %q was found", bad)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
