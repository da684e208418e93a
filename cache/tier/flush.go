package tier

import (
	"lunar/backstore"
	"lunar/cache/internal/blocks"
)

// flush writes all that is dirty in the range and then flushes the store below
// (Back).
func (t *transfer) flush() {
	first, end := t.flushRange()
	t.lane.sweeps.over(first, end, true, t).run()
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
	size := int64(t.lane.blocks.Geometry.BlockSize())
	return uint64(t.off / size), uint64((t.off + t.length + size - 1) / size)
}

// swept implements sweeper.
func (t *transfer) swept(s *sweep) {
	if s.err != nil {
		t.fail(s.err)
	}
	t.lane.sweeps.put(s)
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
		t.fail(blocks.ErrDamaged)
	}
	t.finish()
}

// provisioned does Map (Back). What is dirty now will be provisioned; what is
// being written below is known there before it is clean here.
func (t *transfer) provisioned() {
	from, to := t.lane.blocks.DirtyRange(t.lane.volume.config.LU, t.off, t.off+t.length)
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
