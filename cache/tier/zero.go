package tier

import (
	"lunar/backstore"
	"lunar/cache"
	"lunar/cache/internal/blocks"
)

// dropPieces is how many blocks are dropped at a time: what goes below for a
// larger range goes in parts.
const dropPieces = 64

// zero does Discard and WriteZeroes. The store below does them; the cache forgets
// the range. Sub-blocks at its edges that are dirty beyond it must not be
// forgotten: with policy Back zeroes are written there, or nothing if a discard
// promises none.
func (t *transfer) zero() {
	t.last = t.op.Off + t.op.Len
	t.length = 0
	t.then = (*transfer).zeroNext
	t.zeroNext()
}

// zeroNext goes on with the part that follows.
func (t *transfer) zeroNext() {
	t.off += t.length
	if t.off == t.last || t.err != nil {
		t.finish()
		return
	}
	end := t.wholeEnd()
	sub, span := int64(t.lane.blocks.Geometry.SubBlock()), dropPieces*int64(t.lane.blocks.Geometry.BlockSize())
	if t.lane.volume.config.Policy == Back && (t.off%sub != 0 || t.off >= end) {
		t.edge(min(t.last, (t.off/sub+1)*sub))
		return
	}
	t.part(t.op.Kind, min(end, (t.off/span+1)*span))
	t.drop()
}

// wholeEnd returns where the part of op ends that may be dropped: with policy
// Back where the last whole sub-block does.
func (t *transfer) wholeEnd() int64 {
	sub := int64(t.lane.blocks.Geometry.SubBlock())
	if t.lane.volume.config.Policy != Back || t.lane.volume.endsAt(t.last) {
		return t.last
	}
	return t.last / sub * sub
}

// part makes [t.off, end) what is done now.
func (t *transfer) part(kind backstore.Kind, end int64) {
	t.kind, t.length, t.data = kind, end-t.off, nil
}

// edge writes zeroes into a part of a sub-block.
func (t *transfer) edge(end int64) {
	if info := t.lane.volume.store.Info(); t.op.Kind == backstore.Discard && (!info.Discard || !info.DiscardZeroes) {
		t.length = end - t.off
		t.zeroNext()
		return
	}
	t.part(backstore.Write, end)
	t.data = t.lane.blocks.Zeroes[:t.length]
	t.through = false
	t.write()
}

// drop claims the blocks of the part.
func (t *transfer) drop() {
	t.cut()
	t.at = 0
	t.claimDrop()
}

func (t *transfer) claimDrop() {
	for ; t.at < len(t.pieces); t.at++ {
		p := &t.pieces[t.at]
		p.again = (*piece).redrop
		p.grant = p.part.BeginDrop(p.key, p.touched, &p.waiter)
		if p.grant.Outcome == cache.Wait {
			return
		}
	}
	t.below(t.kind, nil, (*transfer).dropped)
}

func (p *piece) redrop() { p.t.claimDrop() }

// dropped follows what was done below.
func (t *transfer) dropped() {
	if t.whole.Err != nil {
		t.fail(t.whole.Err)
	}
	for i := range t.pieces {
		p := &t.pieces[i]
		blocks.Wake(p.part.EndDrop(&p.grant, t.err == nil))
	}
	if t.err != nil || t.off+t.length == t.last {
		t.zeroNext()
		return
	}
	t.lane.loop.Post((*zeroTurn)(t)) // others have their turn
}

// zeroTurn is a transfer whose next part waits for its turn.
type zeroTurn transfer

// Run implements evloop.Task.
func (z *zeroTurn) Run() { (*transfer)(z).zeroNext() }
