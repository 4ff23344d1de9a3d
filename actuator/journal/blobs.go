// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
)

// pruneBatch is how many segments too many there must be before old ones are removed, since finding the blobs that
// nobody names any more reads all others.
const pruneBatch = 16

// prune removes segments that nobody needs for a start and few people will read, and the blobs that only they name. The
// newest checkpoint and the one before it stay in any case.
func (s *FileStore) prune() error {
	names, err := s.segments()
	if err != nil {
		return err
	}
	keep := max(s.Keep, 2)
	if len(names) <= keep+pruneBatch {
		return nil
	}
	for _, name := range names[:len(names)-keep] {
		if err := s.fs.Remove(filepath.Join(s.dir, name)); err != nil {
			return fmt.Errorf("remove old segment: %w", err)
		}
	}
	return s.pruneBlobs(names[len(names)-keep:])
}

// blobNames finds what may be the name of a blob.
var blobNames = regexp.MustCompile(`[0-9a-f]{64}`)

// pruneBlobs removes the blobs that neither a record nor a state that a record names mentions.
func (s *FileStore) pruneBlobs(segments []string) error {
	named := map[string]bool{}
	for _, seg := range segments {
		data, err := s.fs.ReadFile(filepath.Join(s.dir, seg))
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		for _, n := range blobNames.FindAll(data, -1) {
			named[string(n)] = true
		}
		// A segment begins with a checkpoint; its state may name pictures of incidents that are older than the segment.
		var c checkpoint
		if r, _, size := frameAt(data); size > 0 && r.Type == TypeCheckpoint && json.Unmarshal(r.Payload, &c) == nil {
			if state, err := s.blob(c.Blob); err == nil {
				for _, n := range blobNames.FindAll(state, -1) {
					named[string(n)] = true
				}
			}
		}
	}
	dir := filepath.Join(s.dir, "blobs")
	blobs, err := s.fs.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list blobs: %w", err)
	}
	for _, b := range blobs {
		if !named[b] && !s.recent[b] {
			if err := s.fs.Remove(filepath.Join(dir, b)); err != nil {
				return fmt.Errorf("remove old blob: %w", err)
			}
		}
	}
	s.recent = map[string]bool{}
	return nil
}

// PutBlob implements Store.
func (s *FileStore) PutBlob(_ context.Context, data []byte) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly != nil {
		return "", fmt.Errorf("put blob: %w: %w", ErrReadOnly, s.readOnly)
	}
	return s.putBlob(data)
}

func (s *FileStore) putBlob(data []byte) (string, error) {
	name := blobName(data)
	s.recent[name] = true
	dir := filepath.Join(s.dir, "blobs")
	if _, err := s.blob(name); err == nil {
		return name, nil
	}
	tmp := filepath.Join(dir, name+".tmp")
	_ = s.fs.Remove(tmp) // of a start that crashed
	f, err := s.fs.Create(tmp)
	if err != nil {
		return "", fmt.Errorf("put blob: %w", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.fs.Rename(tmp, filepath.Join(dir, name))
	}
	if err == nil {
		err = s.fs.SyncDir(dir)
	}
	if err != nil {
		return "", fmt.Errorf("put blob: %w", err)
	}
	return name, nil
}

// Blob implements Store.
func (s *FileStore) Blob(_ context.Context, name string) ([]byte, error) { return s.blob(name) }

func (s *FileStore) blob(name string) ([]byte, error) {
	if !isBlobName(name) {
		return nil, fmt.Errorf("blob %q: not a name", name)
	}
	data, err := s.fs.ReadFile(filepath.Join(s.dir, "blobs", name))
	if err != nil {
		return nil, fmt.Errorf("read blob: %w", err)
	}
	if blobName(data) != name {
		return nil, fmt.Errorf("blob %s: %w: its content is another", name[:12], ErrDamaged)
	}
	return data, nil
}

func blobName(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func isBlobName(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == 2*sha256.Size
}
