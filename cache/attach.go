package cache

import (
	"cmp"
	"fmt"
	"slices"
)

// DirtySlot is what a journal says of a slot.
type DirtySlot struct {
	Slot uint32
	Key  Key
	Mask uint64 // the dirty sub-blocks, at least one
}

// Recovered says what Attach found.
type Recovered struct {
	Blocks  int // that are resident now
	Dropped int // records of clean data that contradicted others or themselves
}

// Attach takes over the partition that a process before this one left in mem, at
// whichever instruction it ended: clean blocks stay warm, and dirty is what the
// journal says is dirty. The data must be where they were. What was under way
// has not happened.
//
// A sub-block is kept as clean only if nothing speaks against it: its record says
// that it is valid and not dirty, and no other record is of the same block. Else
// it is dropped; what is dirty never is. Attach fails, and changes nothing, if
// dirty contradicts itself or c. A process that is killed in Attach leaves what
// another one can attach. LUs must have the numbers that they had; SetLU follows.
func Attach(c Config, mem []byte, dirty []DirtySlot) (*Partition, Recovered, error) {
	p, h, err := newPartition(c, mem)
	if err != nil {
		return nil, Recovered{}, err
	}
	if err := CheckDirty(c, dirty); err != nil {
		return nil, Recovered{}, err
	}
	r := recovery{Partition: p}
	if h.matches(c) {
		r.run(dirty)
	} else { // the process ended before it had made the partition
		clear(p.blocks)
		r.run(dirty)
		h.write(c)
	}
	return p, Recovered{Blocks: len(r.resident), Dropped: r.dropped}, nil
}

// CheckDirty returns why Attach would fail with a journal that says this.
func CheckDirty(c Config, dirty []DirtySlot) error {
	if err := c.checkDirty(dirty); err != nil {
		return fmt.Errorf("attach cache partition %d: %w", c.ID, err)
	}
	return nil
}

// checkDirty finds what cannot all be true.
func (c Config) checkDirty(dirty []DirtySlot) error {
	slots, keys, subs := map[uint32]bool{}, map[Key]bool{}, uint32(c.BlockSize/subBlock(c.BlockSize))
	for _, d := range dirty {
		switch {
		case int64(d.Slot) >= int64(c.Slots):
			return fmt.Errorf("slot %d is dirty: expected less than %d", d.Slot, c.Slots)
		case int64(d.Key.LU) >= int64(c.LUs):
			return fmt.Errorf("slot %d belongs to LU %d: expected less than %d", d.Slot, d.Key.LU, c.LUs)
		case d.Mask == 0 || d.Mask&^ones(0, subs) != 0:
			return fmt.Errorf("slot %d has dirty sub-blocks %#x: expected some of %d", d.Slot, d.Mask, subs)
		case slots[d.Slot]:
			return fmt.Errorf("slot %d is dirty twice", d.Slot)
		case keys[d.Key]:
			return fmt.Errorf("block %d of LU %d is dirty in two slots", d.Key.Block, d.Key.LU)
		}
		slots[d.Slot], keys[d.Key] = true, true
	}
	return nil
}

// recovery makes a partition of the journal and the block records; nothing else
// of the memory is believed.
type recovery struct {
	*Partition
	resident []uint32
	dropped  int
}

func (r *recovery) run(dirty []DirtySlot) {
	clear(r.index.buckets)
	kept := make([]bool, len(r.blocks))
	for i := range dirty {
		r.restore(&dirty[i])
		r.keep(dirty[i].Slot)
		kept[dirty[i].Slot] = true
	}
	for slot := range r.blocks {
		if !kept[slot] {
			r.judge(uint32(slot), kept)
		}
	}
	r.reverseFree()
	r.resident = slices.DeleteFunc(r.resident, r.doubtful)
	slices.SortFunc(r.resident, func(x, y uint32) int {
		return cmp.Compare(r.blocks[x].stamp, r.blocks[y].stamp)
	})
	for _, slot := range r.resident {
		r.readopt(slot)
	}
}

// reverseFree has the first free slot taken first, as in a new partition: blocks that come
// one after the other then follow each other in memory, and are lent together.
func (p *Partition) reverseFree() {
	last := NoSlot
	for slot := p.free; slot != NoSlot; {
		b := &p.blocks[slot]
		slot, b.next, last = b.next, last, slot
	}
	p.free = last
}

// keep takes a slot into the index.
func (r *recovery) keep(slot uint32) {
	r.index.insert(r.blocks[slot].key().hash(), slot)
	r.resident = append(r.resident, slot)
}

// restore makes a record say what the journal says. In any order of the stores
// a process that ends here leaves what restores to the same.
func (r *recovery) restore(d *DirtySlot) {
	b := &r.blocks[d.Slot]
	if b.state != stateResident || b.key() != d.Key {
		r.retract(d.Slot)
		r.publish(d.Slot, d.Key)
	}
	r.forget(b, b.valid&^b.dirty&ones(0, r.subs)|d.Mask)
	r.publishDirty(b, d.Mask)
	b.assigned = 1
}

// judge keeps a record of clean data, or frees its slot. Of several clean records
// of a block none can be trusted; kept are those that are dirty.
func (r *recovery) judge(slot uint32, kept []bool) {
	b := &r.blocks[slot]
	clean := b.valid &^ b.dirty
	k := b.key()
	switch {
	case b.state == stateFree || b.state == stateResident && clean == 0:
		r.release(slot)
		return
	case b.state != stateResident || int64(k.LU) >= int64(len(r.lus)) || clean&^ones(0, r.subs) != 0:
		r.drop(slot)
		return
	}
	other := r.index.find(r.blocks, k, k.hash())
	if other != NoSlot {
		r.drop(slot)
		if !kept[other] { // it stays in the index, so that a third one is found too
			r.publishValid(&r.blocks[other], 0)
		}
		return
	}
	r.forget(b, clean)
	r.publishDirty(b, 0)
	r.keep(slot)
}

// doubtful frees the slot of a block that came to hold nothing.
func (r *recovery) doubtful(slot uint32) bool {
	b := &r.blocks[slot]
	if b.valid != 0 {
		return false
	}
	r.index.remove(b.key().hash(), slot)
	r.drop(slot)
	return true
}

// drop frees a slot whose record contradicts something.
func (r *recovery) drop(slot uint32) {
	r.dropped++
	r.release(slot)
}

// forget leaves of a record what it says for good. The valid mask comes first: a
// dirty bit that the journal does not have must not become a clean one.
func (r *recovery) forget(b *block, valid uint64) {
	r.publishValid(b, valid)
	b.busy, b.pinned, b.flushing, b.wanted, b.pins, b.assigned = 0, 0, 0, 0, 0, 0
}

// readopt makes a record a block again, the oldest first.
func (r *recovery) readopt(slot uint32) {
	b := &r.blocks[slot]
	k := b.key()
	r.lus[k.LU].adopt(r.Partition, slot, k)
	r.clock = max(r.clock, b.stamp)
	if b.dirty != 0 {
		r.order.insert(k)
		r.countDirty(k.LU, b.dirty)
	}
}
