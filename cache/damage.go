package cache

import "math/bits"

// A sub-block is damaged if its owner has found that its data are not what was stored
// there. What is clean leaves the cache then. What is dirty stays, for there is no other
// copy: it can neither be read nor be written in part, and no TakeDirty returns it,
// until it is overwritten as a whole or dropped. That lasts as long as the Partition:
// who attaches it is to look anew.

// harmed returns the damaged sub-blocks of a slot. The caller holds mu.
func (p *Partition) harmed(slot uint32) uint64 {
	if len(p.damaged) == 0 {
		return 0
	}
	return p.damaged[slot]
}

// heal ends the damage of sub-blocks that were overwritten or have left the cache.
func (p *Partition) heal(slot uint32, mask uint64) {
	left := p.harmed(slot) &^ mask
	if left != 0 {
		p.damaged[slot] = left
	} else if len(p.damaged) != 0 {
		delete(p.damaged, slot)
	}
}

// Damaged notes that sub-blocks of a slot that nobody changes meanwhile, because they
// are being flushed, pinned or not served yet, are damaged. It returns those that were
// dirty, and not known to be damaged before. The waiters can go on.
func (p *Partition) Damaged(slot uint32, mask uint64) (dirty uint64, chain *Waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.verify()
	b := &p.blocks[slot]
	mask &= b.valid &^ b.busy
	dirty = mask & b.dirty &^ p.harmed(slot)
	if dirty != 0 {
		if p.damaged == nil {
			p.damaged = map[uint32]uint64{}
		}
		p.damaged[slot] |= dirty
	}
	if clean := mask &^ b.dirty; clean != 0 {
		p.publishValid(b, b.valid&^clean)
		chain = p.settle(slot, nil)
	}
	return dirty, chain
}

// Examine pins all that a slot holds and nobody is changing, for a look at its data:
// Unpin follows. ok is false if there is nothing.
func (p *Partition) Examine(slot uint32) (k Key, mask uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.blocks[slot]
	mask = b.valid &^ (b.busy | p.harmed(slot))
	if b.state != stateResident || mask == 0 {
		return Key{}, 0, false
	}
	b.pin(mask)
	return b.key(), mask, true
}

// DamagedIn returns how many sub-blocks in the blocks [from, to) are damaged.
func (p *Partition) DamagedIn(from, to Key) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for slot, mask := range p.damaged {
		if k := p.blocks[slot].key(); !k.less(from) && k.less(to) {
			n += bits.OnesCount64(mask)
		}
	}
	return n
}
