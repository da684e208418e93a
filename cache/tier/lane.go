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
	volume *shared
	blocks *blocks.Memory
	loop   *evloop.Loop
	lower  lower
	intent *blocks.Intent // of the event thread; nil: nothing outlives the process

	spare   *transfer // free ones
	loans   *loan     // free ones
	sweeps  sweeps
	running int // transfers
	counter quiesce.Counter
	far     bool // what describes the blocks does not stay in the processor's cache
	refused bool // the store below writes nothing in TryNow
	bounce  bounce
	ahead   readAhead

	forwarding forwarding
}

// lane opens one on an event thread.
func (v *shared) lane(l *evloop.Loop) (*lane, error) {
	if v.left.Load() {
		return nil, fmt.Errorf("volume %q has left the cache, and its store could not be closed", v.config.Name)
	}
	v.blocks.Fence(l)
	below, err := v.store.Lane(l)
	if err != nil {
		return nil, err
	}
	v.lanes.Add(1)
	own := &lane{volume: v, blocks: v.blocks, loop: l, intent: v.blocks.IntentOf(l), far: v.blocks.Far()}
	own.lower = lower{Lane: below, store: v.store, loop: l}
	own.bounce.lower, own.sweeps.volume, own.sweeps.lower = &own.lower, v, &own.lower
	own.ahead.volume, own.ahead.lower, own.ahead.ended = v, &own.lower, own.closeIfIdle
	own.forwarding = forwarding{loop: l, lu: v.config.LU, agents: &v.agents, home: own}
	v.sizing.counters.Add(&own.counter, l)
	return own, nil
}

// agent opens a lane for what is forwarded to a station.
func (v *shared) agent(s *station) (backstore.Lane, error) {
	l, err := v.lane(s.loop)
	if err != nil {
		return nil, err
	}
	l.forwarding.station, l.forwarding.agent = s, true
	return l, nil
}

// nowPieces is how many blocks a read may touch that TryNow serves.
const nowPieces = 8

// TryNow implements backstore.Lane.
func (l *lane) TryNow(op *backstore.Op) bool {
	switch op.Kind {
	case backstore.Read:
		return l.endsAtOnce(op) || !l.lapsed() && l.readNow(op)
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

// lapsed reports that reads go past the cache. Who asks does so after its operation came
// in, and before each look at what is cached.
func (l *lane) lapsed() bool {
	lapsed := l.volume.config.Lapsed
	return lapsed != nil && lapsed()
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

// forward hands op to the node that has its data, if it is worth it. If it reports
// true, op ends later.
func (l *lane) forward(op *backstore.Op) bool {
	f := l.forwarding.prepare(op)
	if f == nil {
		return false
	}
	if op.Kind == backstore.Read {
		l.noted(op.Off, len(op.Data))
	}
	f.start()
	return true
}

// readNow copies what is all in the cache.
func (l *lane) readNow(op *backstore.Op) bool {
	route := l.forwarding.route(op.Off, len(op.Data))
	if route.to != nil {
		return false
	}
	var pieces [nowPieces]cache.Piece
	g, lu := l.blocks.Geometry, l.volume.config.LU
	n, bytes := g.Split(lu, op.Off, len(op.Data), pieces[:])
	if bytes < len(op.Data) {
		return false
	}
	data := op.Data
	for i := range pieces[:n] {
		p := &pieces[i]
		part := &l.blocks.Parts[p.Partition]
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
		l.ahead.read(off, int64(n))
	}
	if l.volume.config.Admission == fussy {
		l.ahead.promote(off)
	}
}

// writeNow writes into one block, if nobody has to be waited for.
func (l *lane) writeNow(op *backstore.Op) bool {
	back := l.volume.config.Policy == Back
	if back && (op.FUA || l.volume.room.goesThrough()) || !back && l.refused {
		return false
	}
	var pieces [1]cache.Piece
	g, lu := l.blocks.Geometry, l.volume.config.LU
	if _, bytes := g.Split(lu, op.Off, len(op.Data), pieces[:]); bytes < len(op.Data) {
		return false
	}
	route := l.forwarding.route(op.Off, len(op.Data))
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
	touched, whole := l.blocks.Geometry.Masks(p.Off, p.Len)
	key := cache.Key{LU: l.volume.config.LU, Block: p.Block}
	return l.blocks.Parts[p.Partition].BeginWrite(key, touched, whole, back, nil), touched &^ whole
}

func (l *lane) backNow(op *backstore.Op, p *cache.Piece) bool {
	touched, _ := l.blocks.Geometry.Masks(p.Off, p.Len)
	n := l.blocks.BytesOf(touched)
	if !l.volume.room.reserve(n) {
		return false
	}
	part := &l.blocks.Parts[p.Partition]
	g, _ := l.claimNow(p, true)
	if g.Outcome == cache.Granted && g.Missing == 0 {
		l.copyIn(part, &g, p.Off, op.Data)
		blocks.Wake(part.EndWrite(&g, cache.Dirty))
		l.volume.room.ended(n)
		op.Hit = true
		return true
	}
	if g.Outcome != cache.Wait {
		blocks.Wake(part.EndWrite(&g, cache.Failed))
	}
	l.volume.room.untake(n)
	return false
}

// throughNow leaves no trace if the store below does not write at once, but for
// what the write, which is to follow, would replace in the cache.
func (l *lane) throughNow(op *backstore.Op, p *cache.Piece) bool {
	part := &l.blocks.Parts[p.Partition]
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
	if n := l.running + l.forwarding.running; n > 0 {
		panic(fmt.Sprintf("cache: lane of volume %d closed with %d operations running", l.volume.config.LU, n))
	}
	l.lower.closing = true
	l.volume.sizing.counters.Remove(&l.counter)
	if l.forwarding.station != nil && !l.forwarding.agent {
		l.volume.agents.part()
	}
	l.closeIfIdle()
}

func (l *lane) closeIfIdle() {
	if !l.lower.closing || l.ahead.running > 0 {
		return
	}
	l.sweeps.free()
	l.bounce.free()
	l.lower.Close()
	l.volume.lanes.Done()
}

// copyOut copies from a block that the lane has pinned.
func (l *lane) copyOut(part *blocks.Partition, dst []byte, slot, off uint32) {
	began := l.forwarding.clock(len(dst))
	part.CopyOut(dst, slot, off)
	l.forwarding.copied(part, len(dst), began)
}

// copyIn copies into a block that the lane has claimed.
func (l *lane) copyIn(part *blocks.Partition, g *cache.Grant, off uint32, src []byte) {
	began := l.forwarding.clock(len(src))
	part.Put(l.intent, g, off, src)
	l.forwarding.copied(part, len(src), began)
}
