package cache

// Outcome is what a partition says to a request.
type Outcome uint8

// The outcomes.
const (
	// Hit: the sub-blocks are pinned in Slot; copy or send them, then Unpin.
	Hit Outcome = iota
	// Fill: the caller has claimed Mask of Slot and fills it from the backing
	// store, then EndFill.
	Fill
	// Granted: the caller has a claim for a write or a drop; it ends with
	// EndWrite or EndDrop.
	Granted
	// Wait: the waiter has been queued; ask again when it is handed back.
	Wait
	// Bypass: the block is not resident and does not become so now: go to the
	// backing store. A write still ends with EndWrite, a drop with EndDrop.
	Bypass
	// Done: there is nothing to do.
	Done
	// Harmed: some of it is damaged (see Partition.Damaged), and there is no claim.
	Harmed
)

// Result is the answer to a read.
type Result struct {
	Outcome Outcome
	Slot    uint32 // of Hit and Fill
	Mask    uint64 // of Fill: the sub-blocks to fill
}

// Read asks for the sub-blocks want of block k.
//
// What is missing is filled by the first who asks and waited for by all others,
// each of whom asks again afterwards. A fill may be for less than want, if the
// rest is being filled already. The LU's admission policy hears of every Hit and
// of every miss of an absent block.
func (p *Partition) Read(k Key, want uint64, w *Waiter) Result {
	h := k.hash()
	p.mu.Lock()
	slot := p.index.find(p.blocks, k, h)
	var r Result
	if slot != NoSlot {
		r = p.readResident(slot, want, w)
		if r.Outcome == Hit {
			p.hit(k)
		}
	} else {
		p.missed(k.LU)
		r = p.readAbsent(k, h, want, p.admit(k))
	}
	p.verify()
	p.mu.Unlock()
	return r
}

// Prefetch claims of the sub-blocks want what is missing, without asking or
// telling the admission policy, and without waiting: for readahead and for blocks
// that the policy has chosen. The outcome is Fill, or Done if there is nothing
// to fill, or Bypass if there is no room.
func (p *Partition) Prefetch(k Key, want uint64) Result {
	h := k.hash()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.verify()
	slot := p.index.find(p.blocks, k, h)
	if slot == NoSlot {
		return p.readAbsent(k, h, want, true)
	}
	b := &p.blocks[slot]
	open := want &^ (b.valid | b.busy | b.pinned | b.wanted)
	if open == 0 {
		return Result{Outcome: Done}
	}
	p.claim(b, open)
	return Result{Fill, slot, open}
}

func (p *Partition) readResident(slot uint32, want uint64, w *Waiter) Result {
	b := &p.blocks[slot]
	missing := want &^ b.valid
	open := missing &^ b.busy
	switch {
	case want&p.harmed(slot) != 0:
		return Result{Outcome: Harmed}
	case want&b.wanted != 0 || open&b.pinned != 0 || open == 0 && want&b.busy != 0:
		p.wait(slot, want, false, w)
		return Result{Outcome: Wait}
	case open != 0:
		p.missed(b.lu)
		p.touch(slot)
		p.claim(b, open)
		return Result{Fill, slot, open}
	}
	p.found(b.lu)
	p.touch(slot)
	b.pin(want)
	return Result{Outcome: Hit, Slot: slot}
}

func (p *Partition) readAbsent(k Key, h uint32, want uint64, admit bool) Result {
	slot := NoSlot
	if admit && p.around[h%aroundCounters] == 0 {
		slot = p.alloc(k, h)
	}
	if slot == NoSlot {
		p.stats.Bypassed++
		return Result{Outcome: Bypass}
	}
	p.claim(&p.blocks[slot], want)
	return Result{Fill, slot, want}
}

func (b *block) pin(mask uint64) {
	b.pins++
	b.pinned |= mask
}

// EndFill ends the fill of mask; with err nil the data are in place. If pin is
// wholly valid then, it is pinned and the first result is true: the caller need
// not ask again. The waiters can go on.
func (p *Partition) EndFill(slot uint32, mask, pin uint64, err error) (bool, *Waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.verify()
	b := &p.blocks[slot]
	p.unclaim(b, mask)
	pinned := false
	if err == nil {
		b.valid |= mask
		if pinned = pin != 0 && pin&^b.valid == 0 && pin&(b.busy|b.wanted|p.harmed(slot)) == 0; pinned {
			b.pin(pin)
		}
	} else {
		p.stats.FillFails++
	}
	return pinned, p.settle(slot, p.wake(slot, mask, err, nil))
}

// Unpin lets go of one pin of a slot. The waiters can go on.
func (p *Partition) Unpin(slot uint32) *Waiter {
	p.mu.Lock()
	b := &p.blocks[slot]
	chain := p.unpin(slot, b)
	p.verify()
	p.mu.Unlock()
	return chain
}

func (p *Partition) unpin(slot uint32, b *block) *Waiter {
	if b.pins == 0 {
		panic("cache: a slot without pins was unpinned")
	}
	if b.pins--; b.pins != 0 {
		return nil
	}
	mask := b.pinned
	b.pinned = 0
	chain := p.wake(slot, mask, nil, nil)
	if b.valid == 0 {
		chain = p.settle(slot, chain)
	}
	return chain
}
