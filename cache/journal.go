package cache

// Journal keeps which sub-blocks are dirty where it outlives the process. All
// methods are called under the partition's lock and only change memory. Slots
// are the partition's.
//
// INVARIANT: between two calls of the partition's methods the journal says of
// each slot what the slot's record says. Within one the journal is ahead, and it
// is what Attach believes.
type Journal interface {
	// Assign makes the slot that of a block, before the first of its sub-blocks
	// becomes dirty. Nothing of the slot is dirty.
	Assign(slot, lu uint32, block uint64)
	// MarkDirty marks sub-blocks as newer than the backing store.
	MarkDirty(slot uint32, mask uint64)
	// MarkClean takes marks away: the backing store has the data, or they are
	// gone.
	MarkClean(slot uint32, mask uint64)
}

// logDirty tells the journal first. A slot belongs to its block from the first
// time that it becomes dirty until it is another block's.
func (p *Partition) logDirty(slot uint32, mask uint64) {
	if p.journal == nil {
		return
	}
	b := &p.blocks[slot]
	if b.assigned == 0 {
		p.journal.Assign(slot, b.lu, b.number)
		b.assigned = 1
	}
	p.journal.MarkDirty(slot, mask)
}
