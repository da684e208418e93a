package cache

import "sync/atomic"

// What another process may find after a crash is stored in an order that makes
// every prefix of the stores consistent; the atomic stores keep the compiler
// from changing it.

// publish makes a free slot the resident, empty block k.
func (p *Partition) publish(slot uint32, k Key) {
	b := &p.blocks[slot]
	*b = block{number: k.Block, lu: k.LU, prev: NoSlot, next: NoSlot}
	atomic.StoreUint32(&b.state, stateResident)
}

// publishDirty stores the dirty mask before anything that follows.
func (p *Partition) publishDirty(b *block, mask uint64) { atomic.StoreUint64(&b.dirty, mask) }

// publishValid does the same with the valid mask.
func (p *Partition) publishValid(b *block, mask uint64) { atomic.StoreUint64(&b.valid, mask) }

// retract empties a slot; the record is nobody's before it is taken apart.
func (p *Partition) retract(slot uint32) {
	b := &p.blocks[slot]
	atomic.StoreUint32(&b.state, stateFree)
	*b = block{}
}
