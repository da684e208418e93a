package tier

import (
	"fmt"

	"lunar/backstore"
	"lunar/cache"
	"lunar/cache/internal/blocks"
	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// lane is one event thread's way through the cache.
type lane struct {
	volume *volume
	cache  *Cache
	loop   *evloop.Loop
	lower  backstore.Lane
	intent *blocks.Intent // of the event thread; nil: nothing outlives the process

	spare   *transfer // free ones
	sweeps  []*sweep  // free ones
	loans   *loan     // free ones
	running int       // transfers
	counter quiesce.Counter
	refused bool // the store below writes nothing in TryNow
	bounce  bounce
	ahead   readAhead
	closing bool

	forwarding forwarding
}

// nowPieces is how many blocks a read may touch that TryNow serves.
const nowPieces = 8

// TryNow implements backstore.Lane.
func (l *lane) TryNow(op *backstore.Op) bool {
	switch op.Kind {
	case backstore.Read:
		return l.endsAtOnce(op) || l.readNow(op)
	case backstore.Write:
		return l.endsAtOnce(op) || l.writeNow(op)
	case backstore.Wipe:
		return l.lower.TryNow(op)
	case backstore.Flush, backstore.Map:
		return l.volume.config.Policy != Back && l.lower.TryNow(op)
	}
	return false
}

// Submit implements backstore.Lane.
func (l *lane) Submit(op *backstore.Op) bool {
	if op.Kind == backstore.Wipe || l.volume.config.Policy != Back && (op.Kind == backstore.Flush || op.Kind == backstore.Map) {
		return l.lower.Submit(op)
	}
	if l.endsAtOnce(op) {
		return true
	}
	return !l.forward(op) && l.serve(op)
}

// serve does op, which was checked and is not to be forwarded; the result is that
// of Submit.
func (l *lane) serve(op *backstore.Op) bool {
	t := l.transfer(op)
	t.inside = true
	t.start()
	t.inside = false
	if !t.ended {
		return false
	}
	l.release(t)
	return true
}

// endsAtOnce checks op, and ends one that is wrong or that has nothing to do.
func (l *lane) endsAtOnce(op *backstore.Op) bool {
	info := l.volume.Info()
	op.Err = backstore.Check(op, &info)
	return op.Err != nil || op.Kind != backstore.Flush && op.Length() == 0
}

// begin starts an op below and reports whether it has ended.
func (l *lane) begin(op *backstore.Op) bool { return l.lower.TryNow(op) || l.lower.Submit(op) }

// readNow copies what is all in the cache.
func (l *lane) readNow(op *backstore.Op) bool {
	route := l.route(op.Off, len(op.Data))
	if route.to != nil {
		return false
	}
	var pieces [nowPieces]cache.Piece
	g, lu := l.cache.blocks.Geometry, l.volume.config.LU
	n, bytes := g.Split(lu, op.Off, len(op.Data), pieces[:])
	if bytes < len(op.Data) {
		return false
	}
	data := op.Data
	for i := range pieces[:n] {
		p := &pieces[i]
		part := &l.cache.blocks.Parts[p.Partition]
		want, _ := g.Masks(p.Off, p.Len)
		slot, ok := part.TryRead(cache.Key{LU: lu, Block: p.Block}, want)
		if !ok {
			return false
		}
		l.copyOut(part, data[:p.Len], slot, p.Off)
		blocks.Wake(part.Unpin(slot))
		data = data[p.Len:]
	}
	route.here()
	l.noted(op.Off, len(op.Data))
	op.Hit = true
	return true
}

// noted lets readahead and admission look at a read of n bytes.
func (l *lane) noted(off int64, n int) {
	if l.forwarding.agent {
		return // it was noted where it came in
	}
	if l.ahead.detector != nil {
		l.readAhead(off, int64(n))
	}
	if l.volume.config.Admission == fussy {
		l.promote(off)
	}
}

// writeNow writes into one block, if nobody has to be waited for.
func (l *lane) writeNow(op *backstore.Op) bool {
	back := l.volume.config.Policy == Back
	if back && (op.FUA || l.volume.goesThrough()) || !back && l.refused {
		return false
	}
	var pieces [1]cache.Piece
	g, lu := l.cache.blocks.Geometry, l.volume.config.LU
	if _, bytes := g.Split(lu, op.Off, len(op.Data), pieces[:]); bytes < len(op.Data) {
		return false
	}
	route := l.route(op.Off, len(op.Data))
	if route.to != nil {
		return false
	}
	done := false
	if back {
		done = l.backNow(op, &pieces[0])
	} else {
		done = l.throughNow(op, &pieces[0])
	}
	if done {
		route.here()
	}
	return done
}

func (l *lane) claimNow(p *cache.Piece, back bool) (cache.Grant, uint64) {
	touched, whole := l.cache.blocks.Geometry.Masks(p.Off, p.Len)
	key := cache.Key{LU: l.volume.config.LU, Block: p.Block}
	return l.cache.blocks.Parts[p.Partition].BeginWrite(key, touched, whole, back, nil), touched &^ whole
}

func (l *lane) backNow(op *backstore.Op, p *cache.Piece) bool {
	touched, _ := l.cache.blocks.Geometry.Masks(p.Off, p.Len)
	n := l.cache.blocks.BytesOf(touched)
	if !l.volume.reserve(n, nil) {
		return false
	}
	part := &l.cache.blocks.Parts[p.Partition]
	g, _ := l.claimNow(p, true)
	if g.Outcome == cache.Granted && g.Missing == 0 {
		l.copyIn(part, &g, p.Off, op.Data)
		blocks.Wake(part.EndWrite(&g, cache.Dirty))
		l.volume.ended(n)
		op.Hit = true
		return true
	}
	if g.Outcome != cache.Wait {
		blocks.Wake(part.EndWrite(&g, cache.Failed))
	}
	l.volume.dirty.untake(n)
	l.cache.dirty.untake(n)
	return false
}

// throughNow leaves no trace if the store below does not write at once, but for
// what the write, which is to follow, would replace in the cache.
func (l *lane) throughNow(op *backstore.Op, p *cache.Piece) bool {
	part := &l.cache.blocks.Parts[p.Partition]
	g, _ := l.claimNow(p, false)
	if g.Outcome == cache.Wait {
		return false
	}
	done := l.lower.TryNow(op)
	l.refused = !done
	end := cache.Failed
	if done && op.Err == nil && g.Outcome == cache.Granted {
		l.copyIn(part, &g, p.Off, op.Data)
		end = cache.Clean
	}
	blocks.Wake(part.EndWrite(&g, end))
	return done
}

// Close implements backstore.Lane. What was being read ahead may end later.
func (l *lane) Close() {
	if l.running > 0 {
		panic(fmt.Sprintf("cache: lane of volume %d closed with %d operations running", l.volume.config.LU, l.running))
	}
	l.closing = true
	l.volume.sizing.counters.Remove(&l.counter)
	l.volume.agents.part(l)
	l.closeIfIdle()
}

func (l *lane) closeIfIdle() {
	if !l.closing || l.ahead.running > 0 {
		return
	}
	for _, s := range l.sweeps {
		s.free()
	}
	l.sweeps = nil
	l.bounce.free()
	l.lower.Close()
	l.volume.lanes.Done()
}
