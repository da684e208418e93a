package cache

// Grant is the answer to BeginWrite and BeginDrop. The caller keeps it until the
// end of the claim.
type Grant struct {
	Outcome Outcome // Granted, Bypass, Wait or Harmed
	Slot    uint32
	Mask    uint64 // the claimed sub-blocks
	Dirty   uint64 // those of them that are newer than the backing store, and stay so until the end

	// Missing are claimed sub-blocks that the write covers only in part and
	// that are not valid: fill them from the backing store before copying if the
	// write is to end Dirty. One that ends Clean leaves them out.
	Missing uint64

	beyond uint64 // of Dirty: the write covers them only in part
	around uint32 // counter of a Bypass
}

// End is how a write ended.
type End uint8

// The ends of a write.
const (
	Clean  End = iota // the data are in the cache, but for what is Missing, and in the backing store; what was dirty beside them, in their sub-blocks, stays so
	Dirty             // the data are in the cache only
	Failed            // neither can be relied on; what was dirty before stays dirty
)

// BeginWrite claims the sub-blocks touched of block k for a write, of which it
// covers whole completely. Nobody reads, flushes or changes them until
// EndWrite; whoever reads them now (pins) or flushes them is waited for.
//
// With Bypass the caller writes to the backing store alone; until EndWrite no
// fill of the block begins that could miss the write. If enter is set, an absent
// block enters the cache without the admission policy being asked.
func (p *Partition) BeginWrite(k Key, touched, whole uint64, enter bool, w *Waiter) Grant {
	h := k.hash()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.verify()
	slot := p.index.find(p.blocks, k, h)
	if slot == NoSlot {
		return p.writeAbsent(k, h, touched, whole, enter)
	}
	b := &p.blocks[slot]
	switch {
	case touched&^whole&p.harmed(slot) != 0:
		return Grant{Outcome: Harmed, Slot: NoSlot}
	case touched&(b.busy|b.flushing|b.pinned) != 0:
		p.wait(slot, touched, true, w)
		return Grant{Outcome: Wait}
	}
	p.touch(slot)
	p.hit(k)
	return p.grantWrite(slot, touched, whole)
}

func (p *Partition) writeAbsent(k Key, h uint32, touched, whole uint64, enter bool) Grant {
	counter := h % aroundCounters
	if (enter || p.admit(k)) && p.around[counter] == 0 {
		if slot := p.alloc(k, h); slot != NoSlot {
			return p.grantWrite(slot, touched, whole)
		}
	}
	return p.bypass(counter, touched)
}

func (p *Partition) bypass(counter uint32, mask uint64) Grant {
	p.around[counter]++
	p.stats.Bypassed++
	return Grant{Outcome: Bypass, Slot: NoSlot, Mask: mask, around: counter}
}

// grantWrite claims touched. Clean sub-blocks are not valid meanwhile: a process
// that attaches the memory must not take a half-written one for the backing
// store's. Dirty ones remain: the caller sees to it that none is ever half-written
// in memory that outlives the process.
func (p *Partition) grantWrite(slot uint32, touched, whole uint64) Grant {
	b := &p.blocks[slot]
	missing := touched &^ whole &^ b.valid
	b.valid &^= touched &^ b.dirty
	p.claim(b, touched)
	return Grant{Outcome: Granted, Slot: slot, Mask: touched, Dirty: touched & b.dirty, Missing: missing, beyond: touched & b.dirty &^ whole}
}

// EndWrite ends a claim of BeginWrite. The waiters can go on.
func (p *Partition) EndWrite(g *Grant, end End) *Waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.verify()
	switch g.Outcome {
	case Bypass:
		p.around[g.around]--
		return nil
	case Harmed:
		return nil
	}
	b := &p.blocks[g.Slot]
	p.unclaim(b, g.Mask)
	switch end {
	case Clean:
		p.setClean(g.Slot, g.Mask&^g.beyond)
		b.valid |= g.Mask &^ g.Missing
	case Dirty:
		p.heal(g.Slot, g.Mask)
		p.setDirty(g.Slot, g.Mask)
		b.valid |= g.Mask
	}
	return p.settle(g.Slot, p.wake(g.Slot, g.Mask, nil, nil))
}

// BeginDrop claims the sub-blocks mask of block k, whose data are about to go
// or to change in the backing store behind the cache (UNMAP, WRITE SAME, copies
// within the store). Readers that have pins keep what they read.
func (p *Partition) BeginDrop(k Key, mask uint64, w *Waiter) Grant {
	h := k.hash()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.verify()
	slot := p.index.find(p.blocks, k, h)
	if slot == NoSlot {
		return p.bypass(h%aroundCounters, mask)
	}
	b := &p.blocks[slot]
	if mask&(b.busy|b.flushing) != 0 {
		p.wait(slot, mask, true, w)
		return Grant{Outcome: Wait}
	}
	b.valid &^= mask &^ b.dirty
	p.claim(b, mask)
	return Grant{Outcome: Granted, Slot: slot, Mask: mask}
}

// EndDrop ends a claim of BeginDrop. What was claimed has left the cache; dirty
// data leave it only if ok, for else they might be all that is left. The waiters
// can go on.
func (p *Partition) EndDrop(g *Grant, ok bool) *Waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.verify()
	if g.Outcome == Bypass {
		p.around[g.around]--
		return nil
	}
	b := &p.blocks[g.Slot]
	p.unclaim(b, g.Mask)
	if ok {
		b.valid &^= g.Mask
		p.setClean(g.Slot, g.Mask)
	}
	return p.settle(g.Slot, p.wake(g.Slot, g.Mask, nil, nil))
}
