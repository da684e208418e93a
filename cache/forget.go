package cache

import "math/bits"

// Forget makes clean data of an LU leave the n slots from the given one on, and
// returns the slot to go on with: the number of slots at the end. Blocks that are
// dirty in part keep that part. The LU must not be in use.
func (p *Partition) Forget(lu, from, n uint32) (next uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.verify()
	end := min(from+n, uint32(len(p.blocks)))
	for slot := from; slot < end; slot++ {
		b := &p.blocks[slot]
		switch {
		case b.state != stateResident || b.lu != lu || !b.idle():
		case b.dirty == 0:
			p.evict(slot)
		default:
			p.publishValid(b, b.dirty)
		}
	}
	return end
}

// Slots returns how many blocks the partition has room for.
func (p *Partition) Slots() uint32 { return uint32(len(p.blocks)) }

// DirtyEnd returns the byte of LU lu behind its last dirty sub-block, 0 if
// nothing is dirty.
func (p *Partition) DirtyEnd(lu uint32) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	slot := p.dirtyBefore(Key{LU: lu + 1})
	if slot == NoSlot || p.blocks[slot].lu != lu {
		return 0
	}
	b := &p.blocks[slot]
	return (b.number*uint64(p.subs) + uint64(bits.Len64(b.dirty))) * p.sub
}
