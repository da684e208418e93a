package cache

import (
	"fmt"
	"math/bits"

	"lunar/internal/invariants"
)

// verifyLimit is the largest partition, in blocks, that is walked after every
// operation in a build with invariants.
const verifyLimit = 64

func (p *Partition) verify() {
	if !invariants.Enabled || len(p.blocks) > verifyLimit {
		return
	}
	if err := p.check(); err != nil {
		panic("invariant violated: " + err.Error())
	}
}

// Check walks the whole partition and returns the first contradiction: for
// tests and for a look at an attached partition.
func (p *Partition) Check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.check()
}

// census is what a walk over all blocks counts.
type census struct {
	free, inFlight, used int
	dirty                uint64
	perUnit              map[uint32]uint32
}

func (p *Partition) check() error {
	c := census{perUnit: map[uint32]uint32{}}
	for slot := range p.blocks {
		if err := p.checkBlock(uint32(slot), &c); err != nil {
			return fmt.Errorf("slot %d: %w", slot, err)
		}
	}
	listed := 0
	for slot := p.free; slot != NoSlot && listed <= len(p.blocks); slot = p.blocks[slot].next {
		listed++
	}
	switch {
	case c.free != listed || c.free != int(p.freeCount):
		return fmt.Errorf("%d blocks are free, %d listed, %d counted", c.free, listed, p.freeCount)
	case c.inFlight != int(p.inFlight):
		return fmt.Errorf("%d blocks are in flight, %d counted", c.inFlight, p.inFlight)
	case c.free+c.inFlight+c.used != len(p.blocks):
		return fmt.Errorf("%d free, %d in flight and %d used: expected %d blocks", c.free, c.inFlight, c.used, len(p.blocks))
	case c.dirty != p.dirty:
		return fmt.Errorf("%d sub-blocks are dirty, %d counted", c.dirty, p.dirty)
	}
	for i := range p.lus {
		if u := &p.lus[i]; u.used != c.perUnit[uint32(i)] {
			return fmt.Errorf("LU %d has %d blocks, %d counted", i, c.perUnit[uint32(i)], u.used)
		}
	}
	return p.checkOrder()
}

func (p *Partition) checkBlock(slot uint32, c *census) error {
	b := &p.blocks[slot]
	switch b.state {
	case stateFree:
		c.free++
		if *b != (block{next: b.next}) {
			return fmt.Errorf("a free block holds %+v", *b)
		}
		return nil
	case stateResident:
		c.perUnit[b.lu]++
		if p.index.find(p.blocks, b.key(), b.key().hash()) != slot {
			return fmt.Errorf("block %v is not found in the index", b.key())
		}
	}
	c.dirty += uint64(bits.OnesCount64(b.dirty))
	if b.busy != 0 {
		c.inFlight++
	} else {
		c.used++
	}
	switch {
	case b.dirty&^b.valid != 0 || b.flushing&^b.dirty != 0 || b.busy&b.flushing != 0:
		return fmt.Errorf("valid %#x, dirty %#x, flushing %#x, busy %#x", b.valid, b.dirty, b.flushing, b.busy)
	case b.pins == 0 && b.pinned != 0:
		return fmt.Errorf("sub-blocks %#x are pinned by nobody", b.pinned)
	case b.valid == 0 && b.idle():
		return fmt.Errorf("block %v holds nothing and is not free", b.key())
	case b.idle() && p.waitsFor(slot):
		return fmt.Errorf("somebody waits for block %v, which is idle", b.key())
	}
	return nil
}

func (p *Partition) waitsFor(slot uint32) bool {
	for w := p.waits[slot%waitLists].head; w != nil; w = w.next {
		if w.slot == slot {
			return true
		}
	}
	return false
}

// checkOrder compares the order of dirty blocks with the blocks.
func (p *Partition) checkOrder() error {
	want := 0
	for slot := range p.blocks {
		if p.blocks[slot].dirty != 0 {
			want++
		}
	}
	found := 0
	for slot := p.dirtyFrom(Key{}); slot != NoSlot; found++ {
		k := p.blocks[slot].key()
		if p.blocks[slot].dirty == 0 || found > want {
			return fmt.Errorf("slot %d is in the order of dirty blocks", slot)
		}
		slot = p.dirtyFrom(Key{k.LU, k.Block + 1})
	}
	if found != want {
		return fmt.Errorf("%d blocks in the order of dirty blocks, expected %d", found, want)
	}
	return nil
}
