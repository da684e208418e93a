package protect

import (
	"fmt"
	"log/slog"
	"strings"
)

// What recovery tells is bounded: so many lines, and so many ranges in each.
const (
	anewLines  = 64
	anewRanges = 16
)

// anew collects the blocks whose tuples recovery makes anew, in ascending order, and
// tells of them in one line for each run of regions that lie side by side.
type anew struct {
	log    *slog.Logger
	ranges []blockRange // of this run, merged; the first anewRanges
	blocks uint64       // of this run
	next   uint64       // behind the last of them
	parts  int          // ranges of this run, those that are not in ranges too
	last   int          // region that was looked at last

	sum    uint64 // of all runs
	lines  int
	untold uint64 // blocks of runs without a line
}

type blockRange struct{ first, count uint64 }

func (r blockRange) String() string { return fmt.Sprintf("%d+%d", r.first, r.count) }

// enter begins a region.
func (a *anew) enter(region int) {
	if region != a.last+1 {
		a.tell()
	}
	a.last = region
}

// add counts a block.
func (a *anew) add(lba uint64) {
	switch {
	case a.blocks == 0 || lba != a.next:
		if a.parts++; a.parts <= anewRanges {
			a.ranges = append(a.ranges, blockRange{first: lba, count: 1})
		}
	case a.parts <= anewRanges:
		a.ranges[len(a.ranges)-1].count++
	}
	a.blocks, a.next = a.blocks+1, lba+1
}

// tell ends a run.
func (a *anew) tell() {
	if a.blocks == 0 {
		return
	}
	a.sum += a.blocks
	if a.lines++; a.lines > anewLines {
		a.untold += a.blocks
	} else {
		a.log.Warn("protection information of blocks that were being written, or that the medium has damaged meanwhile, was made anew after a crash",
			"first", a.ranges[0].first, "blocks", a.blocks, "lbas", a.names())
	}
	a.ranges, a.blocks, a.parts = a.ranges[:0], 0, 0
}

// names are the ranges as first LBA and count.
func (a *anew) names() string {
	var out []string
	for _, r := range a.ranges {
		out = append(out, r.String())
	}
	if more := a.parts - len(a.ranges); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, " ")
}

// end tells of what is left.
func (a *anew) end() {
	a.tell()
	if a.untold > 0 {
		a.log.Warn("protection information of further blocks was made anew after a crash", "runs", a.lines-anewLines, "blocks", a.untold)
	}
}
