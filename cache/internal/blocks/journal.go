package blocks

import (
	"fmt"

	"lunar/cache/internal/volumes"
	"lunar/cache/segment"
)

// journal is what a partition writes in the segment's. Volumes are told by their
// identities there.
type journal struct {
	*segment.Journal
	table volumes.Table
	base  uint32 // of the partition's slots
}

// Assign implements cache.Journal.
func (j *journal) Assign(slot, lu uint32, block uint64) {
	if err := j.Journal.Assign(j.base+slot, j.table.Row(lu).ID(), block); err != nil {
		panic(fmt.Sprintf("slot %d: %v", slot, err)) // or data of two blocks would be taken for those of one
	}
}

// MarkDirty implements cache.Journal.
func (j *journal) MarkDirty(slot uint32, mask uint64) { j.Journal.MarkDirty(j.base+slot, mask) }

// MarkClean implements cache.Journal.
func (j *journal) MarkClean(slot uint32, mask uint64) { j.Journal.MarkClean(j.base+slot, mask) }
