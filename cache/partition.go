package cache

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"lunar/internal/invariants"
)

// Config describes a partition.
type Config struct {
	ID        uint32 // among the cache's partitions
	Slots     int    // blocks
	BlockSize int    // bytes
	LUs       int    // LU numbers are below this
	Journal   Journal
}

// Partition is one part of the cache: fully associative, with its own lock. The
// lock is held for bounded work only, never over I/O or a copy.
//
// INVARIANT: free + used + in flight == Slots, where in flight are the blocks
// with a claim on them and used are all others that hold data.
type Partition struct {
	mu      sync.Mutex
	journal Journal // nil: none
	blocks  []block
	index   index
	lus     []unit
	active  []uint32   // LUs that have blocks
	turn    uint32     // of donor
	clock   uint64     // accesses so far
	free    uint32     // head of the free list
	order   dirtyOrder // of dirty blocks

	waits   [waitLists]waitList
	waiting uint32
	around  [aroundCounters]uint32 // writes that go past the cache, by key hash

	freeCount, inFlight uint32
	dirty               uint64            // sub-blocks
	damaged             map[uint32]uint64 // of dirty sub-blocks, by slot; see Damaged
	sub                 uint64            // bytes per sub-block
	subs                uint32            // sub-blocks per block
	due                 atomic.Bool
	stats               Stats
}

// Stats are a partition's counters since it was made, and its state.
type Stats struct {
	Hits      uint64 // reads that found all they wanted
	Misses    uint64 // reads that did not, waits not counted
	Bypassed  uint64 // reads and writes that went past the cache
	Waits     uint64 // waiters that were queued
	Evictions uint64 // blocks that made room
	FillFails uint64 // fills that ended with an error

	Free, Used, InFlight int    // blocks
	DirtyBytes           uint64 // waiting for the backing store
}

// NewPartition makes an empty partition. Its metadata lie in mem, which must be
// MetadataSize bytes, aligned to 8, and zeroed if fresh pages are to stay
// untouched until used; nil: in memory of its own.
func NewPartition(c Config, mem []byte) (*Partition, error) {
	p, h, err := newPartition(c, mem)
	if err != nil {
		return nil, err
	}
	h.magic = 0 // nobody can attach a half-made partition
	clear(p.index.buckets)
	for slot := len(p.blocks) - 1; slot >= 0; slot-- {
		p.release(uint32(slot))
	}
	h.write(c)
	return p, nil
}

func newPartition(c Config, mem []byte) (*Partition, *header, error) {
	if _, err := NewGeometry(Layout{BlockSize: c.BlockSize, Neighbours: 1, Partitions: 1, Nodes: 1}); err != nil {
		return nil, nil, err
	}
	if c.LUs < 1 {
		return nil, nil, fmt.Errorf("cache partition for %d LUs: expected at least 1", c.LUs)
	}
	if mem == nil {
		mem = ownMemory(c.Slots)
	}
	h, blocks, buckets, err := view(mem, c.Slots)
	if err != nil {
		return nil, nil, err
	}
	p := &Partition{
		journal: c.Journal, blocks: blocks, index: newIndex(buckets), free: NoSlot, order: newDirtyOrder(),
		lus: make([]unit, c.LUs), active: make([]uint32, 0, c.LUs), sub: uint64(subBlock(c.BlockSize)), subs: uint32(c.BlockSize / subBlock(c.BlockSize)),
	}
	for i := range p.lus {
		p.lus[i].order = newLRUList(blocks)
	}
	return p, h, nil
}

// Stats returns the counters.
func (p *Partition) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Free, s.InFlight = int(p.freeCount), int(p.inFlight)
	s.Used = len(p.blocks) - s.Free - s.InFlight
	s.DirtyBytes = p.dirty * p.sub
	return s
}

// Usage returns the blocks that an LU has, and its dirty bytes.
func (p *Partition) Usage(lu uint32) (blocks int, dirtyBytes uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.lus[lu].used), p.lus[lu].dirty * p.sub
}

// release puts a slot that nobody refers to on the free list.
func (p *Partition) release(slot uint32) {
	p.retract(slot)
	p.blocks[slot].next = p.free
	p.free = slot
	p.freeCount++
}

// alloc returns a slot for block k, which enters the index, by evicting another
// block if need be; NoSlot if nothing can go now.
func (p *Partition) alloc(k Key, h uint32) uint32 {
	u := &p.lus[k.LU]
	if (p.free == NoSlot || u.max != 0 && u.used >= u.max) && !p.makeRoom(k) {
		return NoSlot
	}
	return p.enter(k, h)
}

// makeRoom evicts a block so that block k can enter.
func (p *Partition) makeRoom(k Key) bool {
	slot := p.victim(k)
	if slot == NoSlot {
		return false
	}
	p.stats.Evictions++
	p.evict(slot)
	return true
}

// enter makes a free slot block k.
func (p *Partition) enter(k Key, h uint32) uint32 {
	slot := p.free
	p.free = p.blocks[slot].next
	p.freeCount--
	p.publish(slot, k)
	p.index.insert(h, slot)
	p.lus[k.LU].adopt(p, slot, k)
	p.stamp(slot)
	return slot
}

// evict frees an idle, clean resident block.
func (p *Partition) evict(slot uint32) {
	k := p.blocks[slot].key()
	u := &p.lus[k.LU]
	p.unlink(slot, k, true)
	if u.admission != nil {
		u.admission.Evicted(k)
	}
	p.release(slot)
}

// unlink takes a resident block out of the index and its LU's order.
func (p *Partition) unlink(slot uint32, k Key, evicted bool) {
	p.index.remove(k.hash(), slot)
	p.lus[k.LU].disown(p, slot, evicted)
}

// stamp notes the time of a use.
func (p *Partition) stamp(slot uint32) {
	p.clock++
	p.blocks[slot].stamp = p.clock
}

func (p *Partition) touch(slot uint32) {
	p.stamp(slot)
	p.lus[p.blocks[slot].lu].order.Touch(slot)
}

// claim marks sub-blocks, at least one, as being changed.
func (p *Partition) claim(b *block, mask uint64) {
	invariants.Assert(mask != 0 && mask&b.busy == 0, "a claim covers free sub-blocks")
	if b.busy == 0 {
		p.inFlight++
	}
	b.busy |= mask
}

// unclaim ends a claim.
func (p *Partition) unclaim(b *block, mask uint64) {
	invariants.Assert(mask != 0 && mask&^b.busy == 0, "what ends is claimed")
	b.busy &^= mask
	if b.busy == 0 {
		p.inFlight--
	}
}

// settle frees a block that has come to hold nothing and that nobody refers to.
// Waiters of such a block wait for nothing: they are added to chain.
func (p *Partition) settle(slot uint32, chain *Waiter) *Waiter {
	b := &p.blocks[slot]
	if b.valid != 0 || !b.idle() {
		return chain
	}
	chain = p.wake(slot, ^uint64(0), nil, chain)
	p.unlink(slot, b.key(), false)
	p.release(slot)
	return chain
}

// setDirty marks sub-blocks as newer than the backing store. It comes before
// they are marked valid, so that new data never look clean to a process that
// attaches the memory; the journal, which that process believes, comes first.
func (p *Partition) setDirty(slot uint32, mask uint64) {
	b := &p.blocks[slot]
	if mask &^= b.dirty; mask == 0 {
		return
	}
	p.logDirty(slot, mask)
	if b.dirty == 0 {
		p.order.insert(b.key())
	}
	p.publishDirty(b, b.dirty|mask)
	p.countDirty(b.lu, mask)
}

// countDirty counts sub-blocks that have become dirty.
func (p *Partition) countDirty(lu uint32, mask uint64) {
	n := uint64(bits.OnesCount64(mask))
	p.dirty += n
	p.lus[lu].dirty += n
}

// setClean marks sub-blocks as equal to the backing store, or as gone. The
// journal comes first: what is dirty by the record alone is of no value.
func (p *Partition) setClean(slot uint32, mask uint64) {
	b := &p.blocks[slot]
	if mask &= b.dirty; mask == 0 {
		return
	}
	p.heal(slot, mask)
	if p.journal != nil {
		p.journal.MarkClean(slot, mask)
	}
	n := uint64(bits.OnesCount64(mask))
	p.dirty -= n
	p.lus[b.lu].dirty -= n
	if b.dirty == mask {
		p.order.remove(b.key())
	}
	p.publishDirty(b, b.dirty&^mask)
}
