package tier

import (
	"lunar/backstore"
	"lunar/cache"
	"lunar/cache/internal/blocks"
)

// read starts all pieces, which do not depend on each other.
func (t *transfer) read() {
	t.lane.noted(t.op.Off, len(t.op.Data))
	t.cut()
	t.pending = len(t.pieces) + 1
	for i := range t.pieces {
		t.pieces[i].read()
	}
	for i := 0; i < len(t.pieces); {
		i += t.goAround(i)
	}
	t.end(1)
}

// end counts pieces that have ended.
func (t *transfer) end(n int) {
	if t.pending -= n; t.pending == 0 {
		t.then(t)
	}
}

// read asks for what the piece wants. Which of it is cached may not be known any more to be
// the newest, also when the piece has waited.
func (p *piece) read() {
	if p.again = (*piece).reread; p.t.lane.lapsed() {
		p.passed = true
		return
	}
	r := p.part.Read(p.key, p.touched, &p.waiter)
	switch r.Outcome {
	case cache.Hit:
		p.deliver(r.Slot)
	case cache.Fill:
		p.load(r.Slot, r.Mask)
	case cache.Bypass:
		p.passed = true
	case cache.Harmed:
		p.t.fail(blocks.ErrDamaged)
		p.t.end(1)
	}
}

// reread is read later than its neighbours: it goes around the cache alone.
func (p *piece) reread() {
	p.read()
	if p.passed {
		p.t.goAround(int(p.at.Block - p.t.pieces[0].at.Block))
	}
}

// deliver copies from a pinned block.
func (p *piece) deliver(slot uint32) {
	p.t.lane.copyOut(p.part, p.data, slot, p.at.Off)
	blocks.Wake(p.part.Unpin(slot))
	p.t.end(1)
}

// filled implements filler, for reads and for writes into parts of sub-blocks.
func (p *piece) filled(err error) {
	if p.t.kind != backstore.Read {
		p.merged(err)
		return
	}

	pinned, chain := p.part.EndFill(p.slot, p.mask, p.touched, err)
	blocks.Wake(chain)
	switch {
	case err != nil:
		p.t.fail(err)
		p.t.end(1)
	case pinned:
		p.deliver(p.slot)
	default:
		p.reread()
	}
}

// goAround reads the i-th piece, and those behind it that also pass the cache by,
// from the store below. It returns how many pieces it has dealt with: at least
// one.
func (t *transfer) goAround(i int) int {
	p := &t.pieces[i]
	if !p.passed {
		return 1
	}
	n, bytes := 0, 0
	for ; i+n < len(t.pieces) && t.pieces[i+n].passed; n++ {
		t.pieces[i+n].passed = false
		bytes += len(t.pieces[i+n].data)
	}
	p.span = n
	from := t.off
	if i > 0 {
		from = int64(p.at.Block) * int64(t.lane.blocks.Geometry.BlockSize())
	}
	p.around.Kind, p.around.Off, p.around.Data = backstore.Read, from, t.data[from-t.off:][:bytes]
	p.pass()
	return n
}

// pass reads around the cache. Where a piece begins within a page of the buffer,
// the store below may need another one.
func (p *piece) pass() {
	l := p.t.lane
	switch {
	case l.lower.TryNow(&p.around):
	case !blocks.Aligned(p.around.Data):
		l.bounce.add(&p.around)
		return
	case !l.lower.Submit(&p.around):
		return
	}
	p.passedBy(&p.around)
}

// passedBy is around.Done.
func (p *piece) passedBy(op *backstore.Op) {
	if op.Err != nil {
		p.t.fail(op.Err)
	}
	p.t.end(p.span)
}
