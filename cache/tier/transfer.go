package tier

import (
	"lunar/backstore"
	"lunar/cache"
	"lunar/internal/quiesce"
)

// transfer is an operation on its way through the cache. It is reused.
type transfer struct {
	lane *lane
	op   *backstore.Op
	next *transfer // free
	era  quiesce.Era

	kind    backstore.Kind // what is being done now: a part of op, perhaps
	off     int64
	length  int64
	data    []byte
	through bool            // goes below though the policy may be Back
	crowded bool            // goes below because there was no room
	then    func(*transfer) // follows when that has ended

	pieces  []piece
	at      int   // the next piece to claim
	pending int   // pieces, and one for whoever starts them
	err     error // the first

	reservation reservation     // of a write that becomes dirty
	whole       backstore.Op    // all of the part, below
	after       func(*transfer) // follows when whole has ended
	last        int64           // end of the part of op that is being done
	inside      bool            // Submit has not returned
	ended       bool
}

// transfer returns one for op.
func (l *lane) transfer(op *backstore.Op) *transfer {
	t := l.spare
	if t == nil {
		t = &transfer{lane: l}
		t.whole.Done = func(*backstore.Op) { t.after(t) }
		t.reservation.room, t.reservation.loop, t.reservation.write = &l.volume.room, l.loop, t
	} else {
		l.spare = t.next
	}
	l.running++
	t.era = l.counter.Enter()
	t.op, t.next, t.err, t.ended, t.through = op, nil, nil, false, false
	t.kind, t.off, t.length, t.data = op.Kind, op.Off, op.Length(), op.Data
	t.then = (*transfer).finish
	return t
}

func (l *lane) release(t *transfer) {
	t.op, t.data, t.whole.Data = nil, nil, nil
	for i := range t.pieces {
		t.pieces[i].data, t.pieces[i].around.Data = nil, nil
	}
	t.next = l.spare
	l.spare = t
	l.running--
	l.counter.Exit(t.era)
}

// start does op.
func (t *transfer) start() {
	switch t.kind {
	case backstore.Read:
		t.read()
	case backstore.Write:
		t.write()
	case backstore.Discard, backstore.WriteZeroes:
		t.zero()
	case backstore.Erase:
		t.erase()
	case backstore.Flush:
		t.flush()
	case backstore.Map:
		t.provisioned()
	}
}

// finish ends op.
func (t *transfer) finish() {
	op, l := t.op, t.lane
	op.Err = t.err
	if t.inside {
		t.ended = true
		return
	}
	l.release(t)
	op.Done(op)
}

// fail keeps the first error.
func (t *transfer) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// below does an op on all of the part in the store below; after follows.
func (t *transfer) below(kind backstore.Kind, data []byte, after func(*transfer)) {
	t.whole.Kind, t.whole.Off, t.whole.Len, t.whole.Data = kind, t.off, t.length, data
	t.whole.Atomic = kind == backstore.Write && t.op.Atomic
	t.whole.FUA = kind.Changes() && t.op.FUA
	t.after = after
	if t.lane.lower.begin(&t.whole) {
		after(t)
	}
}

// piece is the part of a transfer in one cache block.
type piece struct {
	fill
	t              *transfer
	at             cache.Piece
	touched, whole uint64 // sub-blocks
	data           []byte
	waiter         cache.Waiter
	again          func(*piece) // after waiting
	grant          cache.Grant
	passed         bool         // a read that is to go around the cache
	span           int          // pieces that around is for
	around         backstore.Op // of reads
}

// cut makes the pieces of the part.
func (t *transfer) cut() {
	g, l := t.lane.blocks.Geometry, t.lane
	t.room(int((t.off+t.length-1)>>l.blocks.BlockShift() - t.off>>l.blocks.BlockShift() + 1))
	data := t.data
	off, left := t.off, t.length
	for i := range t.pieces {
		p := &t.pieces[i]
		var one [1]cache.Piece
		_, n := g.Split(l.volume.config.LU, off, int(min(left, int64(g.BlockSize()))), one[:])
		p.at = one[0]
		p.part, p.key = &l.blocks.Parts[p.at.Partition], cache.Key{LU: l.volume.config.LU, Block: p.at.Block}
		p.touched, p.whole = l.wholeTo(off+int64(n), p.at)
		p.passed, p.span, p.data = false, 1, nil
		if data != nil {
			p.data, data = data[:n:n], data[n:]
		}
		off, left = off+int64(n), left-int64(n)
	}
}

// wholeTo returns the masks of a piece. What ends with the volume covers its last
// sub-block wholly: there is nothing behind.
func (l *lane) wholeTo(end int64, p cache.Piece) (touched, whole uint64) {
	n := p.Len
	if sub := uint32(l.blocks.Geometry.SubBlock()); l.volume.endsAt(end) {
		n = (p.Off+p.Len+sub-1)/sub*sub - p.Off
	}
	return l.blocks.Geometry.Masks(p.Off, n)
}

// room makes t.pieces n long.
func (t *transfer) room(n int) {
	if cap(t.pieces) < n {
		t.pieces = make([]piece, n)
		for i := range t.pieces {
			t.pieces[i].bind(t)
		}
	}
	t.pieces = t.pieces[:n]
}

// bind is done once in a piece's life.
func (p *piece) bind(t *transfer) {
	p.t, p.waiter.Owner, p.around.Done = t, p, p.passedBy
	p.fill.bind(&t.lane.lower, p)
}

// Run implements evloop.Task: p has waited for its block.
func (p *piece) Run() { p.again(p) }

// Resume is how the partition's waiters go on, from any thread.
func (p *piece) Resume() { p.t.lane.loop.Post(p) }
