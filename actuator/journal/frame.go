// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// A record on disk is a frame:
//
//	"TYR" | format version, 1 byte | length of body, 4 | CRC32C of everything else, 4 | body
//	body: seq, 8 | epoch, 8 | flow version, 4 | now in ns since 1970, 8 | length of type, 1 | type | payload
//
// All numbers are little-endian. Magic, version, length and CRC keep their places in all versions, so that an old
// program can tell a newer record from a damaged one.
const (
	frameHead = 12
	bodyHead  = 8 + 8 + 4 + 8 + 1
	maxBody   = bodyHead + 255 + MaxPayload
)

var (
	magic      = []byte("TYR")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// appendFrame writes a record to the end of buf.
func appendFrame(buf []byte, r Record) []byte {
	start := len(buf)
	buf = append(buf, magic...)
	buf = append(buf, Format)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(bodyHead+len(r.Type)+len(r.Payload)))
	buf = append(buf, 0, 0, 0, 0)
	buf = binary.LittleEndian.AppendUint64(buf, r.Seq)
	buf = binary.LittleEndian.AppendUint64(buf, r.Epoch)
	buf = binary.LittleEndian.AppendUint32(buf, r.Flow)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(r.Now.UnixNano()))
	buf = append(buf, byte(len(r.Type)))
	buf = append(buf, r.Type...)
	buf = append(buf, r.Payload...)
	frame := buf[start:]
	binary.LittleEndian.PutUint32(frame[8:], frameCRC(frame))
	return buf
}

// frameCRC covers the whole frame but the checksum itself.
func frameCRC(frame []byte) uint32 {
	return crc32.Update(crc32.Checksum(frame[:8], castagnoli), castagnoli, frame[frameHead:])
}

// frameAt reads the frame at the beginning of data. size is 0 if there is no whole and sound frame.
func frameAt(data []byte) (r Record, format byte, size int) {
	if len(data) < frameHead || !bytes.HasPrefix(data, magic) {
		return Record{}, 0, 0
	}
	n := int(binary.LittleEndian.Uint32(data[4:]))
	if n < bodyHead || n > maxBody || len(data) < frameHead+n {
		return Record{}, 0, 0
	}
	frame := data[:frameHead+n]
	if binary.LittleEndian.Uint32(frame[8:]) != frameCRC(frame) {
		return Record{}, 0, 0
	}
	format = frame[3]
	if format != Format {
		return Record{}, format, len(frame) // sound, but not for us to read
	}
	b := frame[frameHead:]
	nt := int(b[bodyHead-1])
	if bodyHead+nt > len(b) {
		return Record{}, 0, 0
	}
	return Record{
		Seq: binary.LittleEndian.Uint64(b), Epoch: binary.LittleEndian.Uint64(b[8:]), Flow: binary.LittleEndian.Uint32(b[16:]),
		Now:  time.Unix(0, int64(binary.LittleEndian.Uint64(b[20:]))).UTC(),
		Type: string(b[bodyHead : bodyHead+nt]), Payload: bytes.Clone(b[bodyHead+nt:]),
	}, format, len(frame)
}

// parse reads the frames of one segment. good is the length of the sound beginning. An error says that what follows
// cannot be the torn end of an unfinished write: a sound frame comes after it, or it is of another version.
func parse(data []byte) (records []Record, good int, err error) {
	for good < len(data) {
		r, format, size := frameAt(data[good:])
		switch {
		case size == 0:
			if at := nextFrame(data, good+1); at >= 0 {
				return records, good, fmt.Errorf("bytes %d to %d: %w, and a sound record follows", good, at, ErrDamaged)
			}
			return records, good, nil
		case format > Format:
			return records, good, fmt.Errorf("byte %d: record of format %d, this program reads %d: %w", good, format, Format, ErrNewer)
		case format != Format:
			return records, good, fmt.Errorf("byte %d: record of format %d: %w", good, format, ErrDamaged)
		}
		records = append(records, r)
		good += size
	}
	return records, good, nil
}

// nextFrame finds the next sound frame, or -1.
func nextFrame(data []byte, from int) int {
	for from < len(data) {
		i := bytes.Index(data[from:], magic)
		if i < 0 {
			return -1
		}
		if _, _, size := frameAt(data[from+i:]); size > 0 {
			return from + i
		}
		from += i + 1
	}
	return -1
}
