package cache

// TryRead pins the sub-blocks want of block k, as a Hit of Read does, if all of
// them are there and nobody changes them or waits to. Else it changes nothing,
// and Read says more.
func (p *Partition) TryRead(k Key, want uint64) (slot uint32, ok bool) {
	h := k.hash()
	p.mu.Lock()
	slot, ok = p.tryRead(k, h, want)
	p.mu.Unlock()
	return slot, ok
}

func (p *Partition) tryRead(k Key, h uint32, want uint64) (slot uint32, ok bool) {
	slot = p.index.find(p.blocks, k, h)
	if slot == NoSlot || !p.hitIn(slot, k, want) {
		return NoSlot, false
	}
	return slot, true
}

// TryReadIn is TryRead of block k where that is in slot, and false where it is elsewhere.
func (p *Partition) TryReadIn(slot uint32, k Key, want uint64) bool {
	if slot >= uint32(len(p.blocks)) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.blocks[slot]
	return b.state == stateResident && b.key() == k && p.hitIn(slot, k, want)
}

func (p *Partition) hitIn(slot uint32, k Key, want uint64) bool {
	b := &p.blocks[slot]
	if want&^b.valid != 0 || want&(b.busy|b.wanted|p.harmed(slot)) != 0 {
		return false
	}
	p.found(k.LU)
	p.touch(slot)
	b.pin(want)
	p.hit(k)
	return true
}

// NextDirty returns the first block of [from, to) that has dirty sub-blocks, and
// which these are: none if there is no such block.
func (p *Partition) NextDirty(from, to Key) (Key, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slot := p.dirtyFrom(from)
	if slot == NoSlot || !p.blocks[slot].key().less(to) {
		return Key{}, 0
	}
	return p.blocks[slot].key(), p.blocks[slot].dirty
}

// Ones returns the mask that an extent covers.
func (e *Extent) Ones() uint64 { return e.mask }
