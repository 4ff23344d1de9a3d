// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// zone is one line of /proc/buddyinfo: free[i] blocks of 2^i pages are free.
type zone struct {
	numaNode int
	name     string
	free     []uint64
	capped   bool // a count was given as ">N": at least N, taken as N
}

// maxOrders bounds the columns of a line: kernels have 10 to 14, and 2^32 pages are more memory than exists.
const maxOrders = 32

// parseBuddyinfo reads lines like "Node 0, zone   Normal  12  3 ...". Each line stands alone: one that cannot be
// understood is named in the error and the others are given. Any number of orders will do, since it is a matter of
// how the kernel was built.
func parseBuddyinfo(text []byte) ([]zone, error) {
	var zones []zone
	var problems []error
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		z, err := parseLine(lines.Text())
		key := fmt.Sprintf("%d %s", z.numaNode, z.name)
		if err == nil && seen[key] {
			err = fmt.Errorf("node %d zone %s stands twice", z.numaNode, z.name)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("buddyinfo line %d: %w", n, err))
			continue
		}
		seen[key] = true
		zones = append(zones, z)
	}
	if err := lines.Err(); err != nil {
		problems = append(problems, fmt.Errorf("buddyinfo: %w", err))
	}
	return zones, errors.Join(problems...)
}

func parseLine(line string) (zone, error) {
	f := strings.Fields(strings.ReplaceAll(line, ",", " "))
	if len(f) < 5 || f[0] != "Node" || f[2] != "zone" {
		return zone{}, fmt.Errorf("want \"Node N, zone NAME COUNT...\", have %.60q", line)
	}
	node, err := strconv.ParseUint(f[1], 10, 16)
	if err != nil {
		return zone{}, fmt.Errorf("node %.20q is not a number", f[1])
	}
	z := zone{numaNode: int(node), name: strings.ToValidUTF8(f[3], "\uFFFD")}
	counts := f[4:]
	if len(counts) > maxOrders {
		return zone{}, fmt.Errorf("%d orders, at most %d make sense", len(counts), maxOrders)
	}
	for _, c := range counts {
		digits, capped := strings.CutPrefix(c, ">")
		v, err := strconv.ParseUint(digits, 10, 63-maxOrders) // so that counts times 2^order cannot overflow
		if err != nil {
			return zone{}, fmt.Errorf("count %.20q is not a number of blocks", c)
		}
		z.free = append(z.free, v)
		z.capped = z.capped || capped
	}
	return z, nil
}

// freePages is how many pages are free in the zone.
func (z zone) freePages() uint64 {
	var sum uint64
	for order, n := range z.free {
		sum += n << order
	}
	return sum
}

// unusableFreeIndex is the share of the zone's free memory that lies in blocks smaller than 2^order pages: 0 if an
// allocation of that order can use all of it, 1 if none, and 1 if nothing is free. The kernel shows the same figure,
// in thousandths, only with CONFIG_DEBUG_FS (mm/vmstat.c, unusable_free_index).
func (z zone) unusableFreeIndex(order int) float64 {
	free := z.freePages()
	if free == 0 {
		return 1
	}
	var usable uint64
	for o := order; o < len(z.free); o++ {
		usable += z.free[o] << o
	}
	return float64(free-usable) / float64(free)
}

// fragmentationIndex says why an allocation of 2^order pages would fail: -1 if a block is there and it would not
// fail, towards 0 for want of memory, towards 1 for fragmentation. The kernel starts compaction above 0.5
// (vm.extfrag_threshold) and defines the figure in mm/vmstat.c, __fragmentation_index:
//
//	1 - (1 + freePages/2^order) / freeBlocks
//
// in integers of thousandths, and 0 if nothing is free. With very few blocks the formula falls below 0: that is want
// of memory too, and is given as 0, so that -1 is the only negative value.
func (z zone) fragmentationIndex(order int) float64 {
	var blocks uint64
	for o, n := range z.free {
		if n > 0 && o >= order {
			return -1
		}
		blocks += n
	}
	if blocks == 0 {
		return 0
	}
	wanted := float64(uint64(1) << order)
	return max(0, 1-(1+float64(z.freePages())/wanted)/float64(blocks))
}
