// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// MemStore is a journal in memory, for tests and simulations. It outlives its users: opening it again shows the same.
type MemStore struct {
	mu      sync.Mutex
	records []Record
	state   []byte
	from    int // index of the first record after the newest checkpoint
	epoch   uint64
	blobs   map[string][]byte

	// Fail is asked before each Append and Checkpoint, if set; an error is what the caller gets. Set it before use.
	Fail func(records []Record) error
}

// NewMem returns an empty journal.
func NewMem() *MemStore { return &MemStore{blobs: map[string][]byte{}} }

// Load implements Store.
func (s *MemStore) Load(context.Context) (Loaded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := Loaded{State: s.state, Seq: uint64(len(s.records)), Epoch: s.epoch}
	for _, r := range s.records[s.from:] {
		if r.Type != TypeCheckpoint {
			l.Records = append(l.Records, r)
		}
	}
	return l, nil
}

// Append implements Store.
func (s *MemStore) Append(_ context.Context, expectedSeq, epoch uint64, records []Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.append(expectedSeq, epoch, records)
}

func (s *MemStore) append(expectedSeq, epoch uint64, records []Record) error {
	if epoch < s.epoch || expectedSeq != uint64(len(s.records)) {
		return fmt.Errorf("append after record %d in epoch %d, the journal is at %d in %d: %w", expectedSeq, epoch, len(s.records), s.epoch, ErrFenced)
	}
	if err := checkRecords(records); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	if s.Fail != nil {
		if err := s.Fail(records); err != nil {
			return err
		}
	}
	for _, r := range records {
		r.Seq, r.Epoch, r.Payload = uint64(len(s.records))+1, epoch, slices.Clone(r.Payload)
		s.records = append(s.records, r)
	}
	if len(records) > 0 {
		s.epoch = epoch
	}
	return nil
}

// Checkpoint implements Store.
func (s *MemStore) Checkpoint(_ context.Context, expectedSeq, epoch uint64, flow uint32, now time.Time, state []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := blobName(state)
	payload, err := json.Marshal(checkpoint{name, expectedSeq})
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := s.append(expectedSeq, epoch, []Record{{Flow: flow, Now: now, Type: TypeCheckpoint, Payload: payload}}); err != nil {
		return err
	}
	s.blobs[name], s.state, s.from = slices.Clone(state), slices.Clone(state), len(s.records)
	return nil
}

// PutBlob implements Store.
func (s *MemStore) PutBlob(_ context.Context, data []byte) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := blobName(data)
	s.blobs[name] = slices.Clone(data)
	return name, nil
}

// Blob implements Store.
func (s *MemStore) Blob(_ context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.blobs[name]
	if !ok {
		return nil, fmt.Errorf("read blob %q: there is none", name)
	}
	return slices.Clone(data), nil
}

// Close implements Store.
func (s *MemStore) Close() error { return nil }

// Records lists everything ever written, for tests.
func (s *MemStore) Records() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}
