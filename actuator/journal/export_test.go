// SPDX-License-Identifier: Apache-2.0

package journal

import "encoding/binary"

// AsNewerFormat turns the last record of a segment into a sound one of the next format.
func AsNewerFormat(b []byte) []byte {
	at := 0
	for next := 0; next < len(b); {
		at = next
		_, _, size := frameAt(b[at:])
		next += size
	}
	frame := b[at:]
	frame[3] = Format + 1
	binary.LittleEndian.PutUint32(frame[8:], frameCRC(frame))
	return b
}
