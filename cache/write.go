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
	// Keep are sub-blocks that must be copied from slot Old to Slot, before the
	// write itself, because Old is in use and Slot is its fresh copy.
	Keep uint64
	Old  uint32

	beyond uint64 // of Dirty: the write covers them only in part
	around uint32 // counter of a Bypass
}

// WriteOptions say what a write may do.
type WriteOptions struct {
	// Enter lets an absent block enter the cache without asking the admission
	// policy.
	Enter bool
	// Fresh writes to a fresh copy of the block, rather than wait, if responses
	// refer to what is to be overwritten and the block is clean.
	Fresh bool
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
// fill of the block begins that could miss the write.
func (p *Partition) BeginWrite(k Key, touched, whole uint64, o WriteOptions, w *Waiter) Grant {
	h := k.hash()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.verify()
	slot := p.index.find(p.blocks, k, h)
	if slot == NoSlot {
		return p.writeAbsent(k, h, touched, whole, o)
	}
	b := &p.blocks[slot]
	inUse := touched & b.pinned
	switch {
	case touched&^whole&p.harmed(slot) != 0:
		return Grant{Outcome: Harmed, Slot: NoSlot, Old: NoSlot}
	case touched&(b.busy|b.flushing) != 0 || inUse != 0 && !o.Fresh:
	case inUse == 0:
		p.touch(slot)
		p.hit(k)
		return p.grantWrite(slot, touched, whole)
	case b.dirty == 0 && b.busy == 0:
		if g, ok := p.replace(slot, k, h, touched, whole); ok {
			p.hit(k)
			return g
		}
	}
	p.wait(slot, touched, true, w)
	return Grant{Outcome: Wait}
}

func (p *Partition) writeAbsent(k Key, h uint32, touched, whole uint64, o WriteOptions) Grant {
	counter := h % aroundCounters
	if (o.Enter || p.admit(k)) && p.around[counter] == 0 {
		if slot := p.alloc(k, h); slot != NoSlot {
			return p.grantWrite(slot, touched, whole)
		}
	}
	return p.bypass(counter, touched)
}

func (p *Partition) bypass(counter uint32, mask uint64) Grant {
	p.around[counter]++
	p.stats.Bypassed++
	return Grant{Outcome: Bypass, Slot: NoSlot, Old: NoSlot, Mask: mask, around: counter}
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
	return Grant{Outcome: Granted, Slot: slot, Mask: touched, Dirty: touched & b.dirty, Missing: missing, Old: NoSlot, beyond: touched & b.dirty &^ whole}
}

// replace puts a clean block in use aside and claims a fresh copy of it. It
// fails if there is no slot for it.
func (p *Partition) replace(old uint32, k Key, h uint32, touched, whole uint64) (Grant, bool) {
	if p.free == NoSlot && !p.makeRoom(k) {
		return Grant{}, false
	}
	keep := p.blocks[old].valid &^ whole
	p.detach(old, k, keep)
	slot := p.enter(k, h)
	p.stats.Copies++
	p.claim(&p.blocks[slot], touched|keep)
	return Grant{Outcome: Granted, Slot: slot, Mask: touched, Missing: touched &^ whole &^ keep, Keep: keep, Old: old}, true
}

// detach takes a block out of the index that lives on as long as it is pinned,
// with one more pin for the copy of keep. Whoever waits for its pins goes on
// waiting for them.
func (p *Partition) detach(slot uint32, k Key, keep uint64) {
	p.unlink(slot, k, false)
	b := &p.blocks[slot]
	b.pin(keep)
	b.setAside()
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
	all := g.Mask | g.Keep
	p.unclaim(b, all)
	switch end {
	case Clean:
		p.setClean(g.Slot, g.Mask&^g.beyond)
		b.valid |= all &^ g.Missing
	case Dirty:
		p.heal(g.Slot, g.Mask)
		p.setDirty(g.Slot, g.Mask)
		b.valid |= all
	}
	chain := p.settle(g.Slot, p.wake(g.Slot, all, nil, nil))
	if g.Old != NoSlot {
		chain = join(chain, p.unpin(g.Old, &p.blocks[g.Old]))
	}
	return chain
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
	return Grant{Outcome: Granted, Slot: slot, Mask: mask, Old: NoSlot}
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
