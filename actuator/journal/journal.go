// SPDX-License-Identifier: Apache-2.0

// Package journal keeps what happened: records that are on disk before anybody relies on them, checkpoints of the
// state, and the large pictures that records point to. It knows nothing about incidents. When it cannot vouch for
// what it read, it says so and refuses to write: a program with a doubtful past acts on nothing.
package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Format is the version of the record format that this package writes.
const Format = 1

// MaxPayload bounds the payload of one record. Larger things are blobs that a record points to.
const MaxPayload = 64 << 10

// TypeCheckpoint is the type of the records that the store writes for itself; their payload names the blob of a state.
const TypeCheckpoint = "checkpoint"

// Record is one thing that happened.
type Record struct {
	Seq     uint64 // 1, 2, 3, ... without gaps; Append assigns it
	Epoch   uint64 // of the run that wrote it; Append assigns it
	Flow    uint32 // version of the rules that it was written under
	Now     time.Time
	Type    string // at most 255 bytes
	Payload []byte
}

// Loaded is everything that a program needs to go on.
type Loaded struct {
	State   []byte   // of the newest good checkpoint; nil = start from nothing
	Records []Record // after that checkpoint, in order
	Seq     uint64   // of the last good record; 0 = none
	Epoch   uint64   // the highest epoch seen
	Torn    string   // what was dropped from the end, in words; "" = nothing
	Notes   []string // what else a human should know, e.g. a checkpoint that could not be read and was not needed
	Damage  error    // why the past cannot be trusted; the store is read-only then
}

// Store is where a journal lives. Implementations pass journaltest.
type Store interface {
	// Load reads the journal. It may be called again at any time, and then shows what is durable.
	Load(ctx context.Context) (Loaded, error)
	// Append makes records durable: all of them in order, or (after a crash) a beginning of them. expectedSeq is the
	// sequence number of the last record that the caller knows; epoch is the caller's. ErrFenced says that somebody
	// else wrote since, or holds a later epoch.
	Append(ctx context.Context, expectedSeq, epoch uint64, records []Record) error
	// Checkpoint stores the state after expectedSeq, and one record of TypeCheckpoint that points to it.
	Checkpoint(ctx context.Context, expectedSeq, epoch uint64, flow uint32, now time.Time, state []byte) error
	// PutBlob makes data durable and returns its name, which follows from its content.
	PutBlob(ctx context.Context, data []byte) (string, error)
	// Blob reads a blob and checks its content against its name.
	Blob(ctx context.Context, name string) ([]byte, error)
	// Close gives the journal back.
	Close() error
}

// The errors that callers branch on.
var (
	// ErrFenced says that another writer has been here: this one must stop.
	ErrFenced = errors.New("fenced: another writer holds the journal")
	// ErrReadOnly says that the journal was damaged or is newer than this program.
	ErrReadOnly = errors.New("the journal is read-only")
	// ErrNewer says that a record was written by a newer program.
	ErrNewer = errors.New("written by a newer version")
	// ErrDamaged says that a record before the end cannot be read.
	ErrDamaged = errors.New("damaged")
	// ErrBroken says that an earlier write failed in a way after which nothing is certain but a new start.
	ErrBroken = errors.New("an earlier write failed: start again")
)

func checkRecords(records []Record) error {
	for i, r := range records {
		switch {
		case len(r.Payload) > MaxPayload:
			return fmt.Errorf("record %d of %d (%s): payload of %d bytes, at most %d", i+1, len(records), r.Type, len(r.Payload), MaxPayload)
		case r.Type == "" || len(r.Type) > 255:
			return fmt.Errorf("record %d of %d: type of %d bytes", i+1, len(records), len(r.Type))
		}
	}
	return nil
}
