// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/exporter/source"
	"github.com/trainyard/trainyard/exporter/source/sourcetest"
)

func TestFakeMachines(t *testing.T) {
	sourcetest.Run(t, func(root string) source.Source { return New(filepath.Join(root, "proc"), "n1", 4096) })
}

// Worked out by hand for the line
//
//	Node 0, zone Normal  10  5  2  1  0
//
// Free pages: 10*1 + 5*2 + 2*4 + 1*8 + 0*16 = 36; free blocks: 10+5+2+1+0 = 18.
//
// Unusable free index, (free - pages in blocks of that order and above) / free:
//
//	order 0: (36 - 36)/36 = 0
//	order 1: (36 - 26)/36 = 10/36
//	order 2: (36 - 16)/36 = 20/36
//	order 3: (36 -  8)/36 = 28/36
//	order 4: (36 -  0)/36 = 1
//
// Fragmentation index: a block of order 3 is free, so -1 up to order 3; at order 4 16 pages are wanted:
// 1 - (1 + 36/16)/18 = 1 - 3.25/18 = 0.819444...
func TestIndicesByHand(t *testing.T) {
	zones, err := parseBuddyinfo([]byte("Node 0, zone Normal  10  5  2  1  0\n"))
	if err != nil || len(zones) != 1 {
		t.Fatal(zones, err)
	}
	z := zones[0]
	if z.freePages() != 36 {
		t.Errorf("%d pages free, want 36", z.freePages())
	}
	for order, want := range []float64{0, 10. / 36, 20. / 36, 28. / 36, 1} {
		if got := z.unusableFreeIndex(order); math.Abs(got-want) > 1e-12 {
			t.Errorf("order %d: unusable free index is %v, want %v", order, got, want)
		}
	}
	for order, want := range []float64{-1, -1, -1, -1, 1 - 3.25/18} {
		if got := z.fragmentationIndex(order); math.Abs(got-want) > 1e-12 {
			t.Errorf("order %d: fragmentation index is %v, want %v", order, got, want)
		}
	}
	empty := zone{free: make([]uint64, 11)}
	if u, f := empty.unusableFreeIndex(9), empty.fragmentationIndex(9); u != 1 || f != 0 {
		t.Errorf("an empty zone has the indices %v and %v, want 1 and 0", u, f)
	}
}

func TestNothingToReadIsAbsent(t *testing.T) {
	if _, err := New(t.TempDir(), "n1", 4096).Read(t.Context()); err != source.ErrAbsent { //nolint:errorlint // exactly this
		t.Errorf("got %v", err)
	}
}

// Whatever the kernel writes, each index stays in its range, and the unusable index never falls with the order.
func FuzzBuddyinfo(f *testing.F) {
	f.Add([]byte("Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n"))
	f.Add([]byte("Node 0, zone DMA 1 0 1\nNode 1, zone   Normal >100000 3 2 1\n\nNode x, zone\n"))
	f.Add([]byte("Node 0, zone Normal 2147483647 2147483647 2147483647\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		zones, _ := parseBuddyinfo(text)
		for _, z := range zones {
			last := 0.0
			for order := range z.free {
				u, fr := z.unusableFreeIndex(order), z.fragmentationIndex(order)
				if !(u >= last-1e-9 && u <= 1) || !(fr == -1 || fr >= 0 && fr <= 1) {
					t.Fatalf("%+v order %d: unusable %v after %v, fragmentation %v", z, order, u, last, fr)
				}
				last = u
			}
		}
		New("", "n1", 4096).zones(zones)
	})
}
