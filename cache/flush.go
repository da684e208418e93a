package cache

import "math/bits"

// Extent is a part of a slot on its way to the backing store.
type Extent struct {
	Key  Key
	Slot uint32
	Off  uint32 // bytes, in the block
	Len  uint32 // bytes
	mask uint64
}

// Run is what TakeDirty has found: Extents that are one piece of the LU.
type Run struct {
	Outcome Outcome // Granted, Wait or Done
	Extents int     // filled in the caller's array
	Bytes   uint64
	Next    Key // where to go on
}

// flushSkip bounds how many dirty blocks, all of them being written already,
// one call passes over.
const flushSkip = 64

// TakeDirty takes the first dirty range in the blocks [from, to), in order of
// address, for writing to the backing store: Granted. Neighbouring ranges are
// merged as far as out has room. Until EndFlush the range may be read but not
// changed. What is damaged is passed over.
//
// A nil w passes over what is in others' hands: for the background flusher. With
// w the outcome is Wait instead, so that Done means that everything which was
// dirty in the blocks from the first from of a sweep has been written: for
// SYNCHRONIZE CACHE. Done with a nil w may also mean that a long stretch is being
// written; then Next is less than to.
//
// Go on at Next. After an error, go on behind the last extent, or the same range
// comes again.
func (p *Partition) TakeDirty(from, to Key, out []Extent, w *Waiter) Run {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.verify()
	for range flushSkip {
		slot := p.dirtyFrom(from)
		if slot == NoSlot || !p.blocks[slot].key().less(to) {
			return Run{Outcome: Done, Next: to}
		}
		b := &p.blocks[slot]
		open := b.dirty &^ p.harmed(slot)
		if ready := open &^ (b.busy | b.flushing); ready != 0 {
			return p.takeRun(slot, ready, to, out)
		}
		if w != nil && open != 0 {
			p.wait(slot, open, false, w)
			return Run{Outcome: Wait, Next: b.key()}
		}
		from = Key{b.lu, b.number + 1}
	}
	return Run{Outcome: Done, Next: from}
}

// takeRun takes the first range of ready and its neighbours in the blocks behind.
func (p *Partition) takeRun(slot uint32, ready uint64, to Key, out []Extent) Run {
	run := Run{Outcome: Granted}
	first := uint32(bits.TrailingZeros64(ready))
	for run.Extents < len(out) {
		b := &p.blocks[slot]
		n := uint32(bits.TrailingZeros64(^(ready >> first)))
		mask := ones(first, first+n)
		b.flushing |= mask
		out[run.Extents] = Extent{b.key(), slot, first * uint32(p.sub), n * uint32(p.sub), mask}
		run.Extents++
		run.Bytes += uint64(n) * p.sub
		run.Next = b.key()
		next := Key{b.lu, b.number + 1}
		if b.dirty&^mask == 0 { // else the rest is still to come, here or from other hands
			run.Next = next
		}
		if first+n < p.subs || !next.less(to) {
			break
		}
		if slot = p.index.find(p.blocks, next, next.hash()); slot == NoSlot {
			break
		}
		b = &p.blocks[slot]
		if ready = b.dirty &^ (b.busy | b.flushing | p.harmed(slot)); ready&1 == 0 {
			break
		}
		first = 0
	}
	return run
}

// EndFlush ends what TakeDirty has begun. With ok the extents are in the backing
// store; else they stay dirty. The waiters can go on.
func (p *Partition) EndFlush(extents []Extent, ok bool) *Waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.verify()
	var chain *Waiter
	for i := range extents {
		e := &extents[i]
		p.blocks[e.Slot].flushing &^= e.mask
		if ok {
			p.setClean(e.Slot, e.mask)
		}
		chain = p.wake(e.Slot, e.mask, nil, chain)
	}
	return chain
}
