package tier

import (
	"math/bits"

	"lunar/backstore"
	"lunar/cache"
)

// flush writes all that is dirty in the range and then flushes the store below
// (Back).
func (t *transfer) flush() {
	first, end := t.flushRange()
	t.lane.sweepOver(first, end, true, t).run()
}

// flushRange returns the blocks [first, end) that a flush is about.
func (t *transfer) flushRange() (first, end uint64) {
	if t.length > 0 && t.off >= 0 {
		return t.blocks()
	}
	return 0, noBlock
}

// blocks returns the blocks [first, end) of the part.
func (t *transfer) blocks() (first, end uint64) {
	size := int64(t.lane.cache.geometry.BlockSize())
	return uint64(t.off / size), uint64((t.off + t.length + size - 1) / size)
}

// swept implements sweeper.
func (t *transfer) swept(s *sweep) {
	if s.err != nil {
		t.fail(s.err)
	}
	t.lane.sweeps = append(t.lane.sweeps, s)
	if t.err != nil {
		t.finish()
		return
	}
	if t.kind == backstore.Write {
		t.claim()
		return
	}
	t.below(backstore.Flush, nil, (*transfer).flushed)
}

// progressed implements sweeper.
func (t *transfer) progressed(s *sweep) bool { return s.err == nil }

func (t *transfer) flushed() {
	if t.whole.Err != nil {
		t.fail(t.whole.Err)
	}
	if t.lane.volume.damagedIn(t.flushRange()) > 0 {
		t.fail(errDamaged)
	}
	t.finish()
}

// provisioned does Map (Back). What is dirty now will be provisioned; what is
// being written below is known there before it is clean here.
func (t *transfer) provisioned() {
	from, to := t.lane.volume.dirtyRange(t.off, t.off+t.length)
	if from == t.off {
		t.op.Mapped, t.op.Len = true, to-from
		t.finish()
		return
	}
	t.length = from - t.off
	t.below(backstore.Map, nil, (*transfer).mapped)
}

func (t *transfer) mapped() {
	if t.whole.Err != nil {
		t.fail(t.whole.Err)
	}
	t.op.Mapped, t.op.Len = t.whole.Mapped, t.whole.Len
	t.finish()
}

// dirtyRange returns the first dirty range in [off, end); end and end if there is
// none.
func (v *volume) dirtyRange(off, end int64) (from, to int64) {
	g := v.cache.geometry
	size, sub := int64(g.BlockSize()), int64(g.SubBlock())
	for block := uint64(off / size); ; block++ {
		mask := uint64(0)
		if block, mask = v.nextDirty(block, uint64((end+size-1)/size)); mask == 0 {
			return end, end
		}
		base := int64(block) * size
		if off > base {
			mask &= ^uint64(0) << ((off - base) / sub)
		}
		if mask == 0 {
			continue
		}
		first := bits.TrailingZeros64(mask)
		n := bits.TrailingZeros64(^(mask >> first))
		from = min(end, max(off, base+int64(first)*sub))
		return from, min(end, base+int64(first+n)*sub)
	}
}

// nextDirty returns the first dirty block of [from, to) in any partition, and its
// dirty sub-blocks: none if there is no such block.
func (v *volume) nextDirty(from, to uint64) (block uint64, mask uint64) {
	lu := v.config.LU
	for i := range v.cache.parts {
		if k, m := v.cache.parts[i].NextDirty(cache.Key{LU: lu, Block: from}, cache.Key{LU: lu, Block: to}); m != 0 {
			block, mask, to = k.Block, m, k.Block
		}
	}
	return block, mask
}
