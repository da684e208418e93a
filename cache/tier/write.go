package tier

import (
	"lunar/backstore"
	"lunar/cache"
	"lunar/cache/internal/blocks"
)

// write stores t.data.
func (t *transfer) write() {
	t.cut()
	t.at = 0
	v := t.lane.volume
	t.through = v.config.Policy != Back || t.op.FUA || v.room.goesThrough()
	switch {
	case t.op.Atomic && v.config.Policy == Back:
		t.clean()
	case t.through || t.reserve():
		t.claim()
	} // else resumed by Run
}

// clean writes what is dirty in the blocks of an atomic write before it: a process
// that attaches the memory while the write is under way would write it over a part
// of the new data. Nothing becomes dirty there meanwhile.
func (t *transfer) clean() {
	first, end := t.blocks()
	t.lane.sweeps.over(first, end, true, t).run()
}

// reserve takes room for what will be dirty.
func (t *transfer) reserve() bool {
	bytes := int64(0)
	for i := range t.pieces {
		bytes += t.lane.blocks.BytesOf(t.pieces[i].touched)
	}
	return t.reservation.enter(bytes)
}

// Run implements evloop.Task: a throttled write goes on.
func (t *transfer) Run() {
	t.through = t.reservation.waived
	t.claim()
}

// claim claims the blocks in ascending order.
func (t *transfer) claim() {
	enter := t.lane.volume.config.Policy == Back
	for ; t.at < len(t.pieces); t.at++ {
		p := &t.pieces[t.at]
		p.again = (*piece).reclaim
		p.grant = p.part.BeginWrite(p.key, p.touched, p.whole, enter, &p.waiter)
		if p.grant.Outcome == cache.Wait {
			return
		}
	}
	t.claimed()
}

func (p *piece) reclaim() { p.t.claim() }

// claimed fills what is to be merged with the data: dirty sub-blocks must be
// whole. What is not there does not enter with a write that goes through.
func (t *transfer) claimed() {
	back := t.lane.volume.config.Policy == Back
	t.pending = 1
	for i := range t.pieces {
		p := &t.pieces[i]
		switch {
		case p.grant.Outcome == cache.Harmed:
			t.fail(blocks.ErrDamaged)
		case p.grant.Outcome == cache.Bypass:
			t.through = true
			t.crowded = back
		case back && !t.through && p.grant.Missing != 0:
			t.pending++
			p.load(p.grant.Slot, p.grant.Missing)
		}
	}
	t.merged()
}

// merged notes the end of a piece's fill.
func (p *piece) merged(err error) {
	if err != nil {
		p.t.fail(err)
	}
	p.t.merged()
}

func (t *transfer) merged() {
	if t.pending--; t.pending > 0 {
		return
	}
	if !t.through || t.err != nil {
		t.store()
		return
	}
	t.below(backstore.Write, t.data, (*transfer).stored)
}

// stored follows the write below.
func (t *transfer) stored() {
	if t.whole.Err != nil {
		t.fail(t.whole.Err)
	}
	t.store()
}

// store copies the data into the blocks and ends the claims. After an error the
// store below may have either data: what was clean leaves the cache.
func (t *transfer) store() {
	for i := range t.pieces {
		p := &t.pieces[i]
		end := t.ending(p)
		if end != cache.Failed {
			t.lane.copyIn(p.part, &p.grant, p.at.Off, p.data)
		}
		blocks.Wake(p.part.EndWrite(&p.grant, end))
	}
	t.reservation.leave()
	if t.crowded {
		t.crowded = false
		t.lane.volume.room.flusher.kickAll()
	}
	t.then(t)
}

// ending says how a claim ends.
func (t *transfer) ending(p *piece) cache.End {
	switch {
	case t.err != nil || p.grant.Outcome != cache.Granted:
		return cache.Failed
	case t.through:
		return cache.Clean
	}
	return cache.Dirty
}
