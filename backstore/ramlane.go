package backstore

import (
	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// ramLane is an event thread's way into a RAM store. Nothing waits there but a change
// of what is lent.
type ramLane struct {
	*ramStore
	loop    *evloop.Loop
	counter quiesce.Counter // nothing is inside between two tasks of the thread
	free    *ramLoan
	lent    int // loans that are out
	closed  bool
}

// TryNow implements Lane.
func (l *ramLane) TryNow(op *Op) bool {
	if !op.Kind.Changes() {
		op.Err = l.look(op)
		return true
	}
	if op.Err = Check(op, l.info.Load()); op.Err != nil {
		return true
	}
	to := op.Off + op.Length()
	for at, next := l.piece(op.Kind, op.Off, to); at < next && op.Err == nil; at, next = l.piece(op.Kind, next, to) {
		first, end := spansOf(at, next)
		if !l.pins.change(first, end) {
			return false // what was discarded before may be discarded again
		}
		op.Err = l.ramStore.change(op, at, next)
		l.pins.changed(first, end)
	}
	return true
}

// Submit implements Lane.
func (l *ramLane) Submit(op *Op) bool {
	return l.TryNow(op) || (&ramChange{lane: l, op: op}).begin(op.Off)
}

// Close implements Lane.
func (l *ramLane) Close() {
	l.counters.Remove(&l.counter)
	l.closed = true
	l.leaveIfUnused()
}

// leaveIfUnused has an error only where the kernel is out of memory for the rest of a
// mapping; then the memory stays.
func (l *ramLane) leaveIfUnused() {
	if l.closed && l.lent == 0 {
		_ = l.leave()
	}
}

// ramChange is a change that has to wait until loans are returned, before each of its
// parts.
type ramChange struct {
	lane     *ramLane
	op       *Op
	at, next int64 // the part
	left     int   // of its spans that are lent
}

// begin goes on with what is behind from. It reports whether the change has ended.
func (c *ramChange) begin(from int64) bool {
	l, op := c.lane, c.op
	for op.Err == nil {
		if c.at, c.next = l.piece(op.Kind, from, op.Off+op.Length()); c.at >= c.next {
			break
		}
		first, end := spansOf(c.at, c.next)
		if c.left = l.pins.await(first, end, func() { l.loop.Post(c) }); c.left > 0 {
			return false
		}
		from = c.make()
	}
	return true
}

// make makes the part, and returns where the next one may begin. The store may have been
// cut meanwhile.
func (c *ramChange) make() int64 {
	if c.op.Err = Check(c.op, c.lane.info.Load()); c.op.Err == nil {
		c.op.Err = c.lane.ramStore.change(c.op, c.at, c.next)
	}
	c.lane.pins.changed(spansOf(c.at, c.next))
	return c.next
}

// Run implements evloop.Task: a loan was returned.
func (c *ramChange) Run() {
	if c.left--; c.left == 0 && c.begin(c.make()) {
		c.op.Done(c.op)
	}
}

// ramLoan is a part of the memory that somebody sends from. Loans are reused; they may
// outlive their lane.
type ramLoan struct {
	buf.Loan
	lane       *ramLane
	first, end int64 // spans
	next       *ramLoan
}

// Lend implements Lender: what was written and is not being changed.
func (l *ramLane) Lend(off int64, n int) *buf.Ref {
	pool := l.loop.Pool()
	if pool == nil || off < 0 || n <= 0 || off > l.info.Load().Size-int64(n) {
		return nil
	}
	if mapped, _ := l.extent(off, 1); !mapped {
		return nil // before its pin, which would take memory
	}
	first, end := spansOf(off, off+int64(n))
	lent := first
	for lent < end && l.pins.lend(lent) {
		lent++
	}
	if lent == first {
		return nil
	}
	mapped, length := l.extent(off, min(int64(n), lent*pinSpan-off))
	if !mapped {
		l.giveBack(first, lent)
		return nil
	}
	return l.lend(pool, off, length, first, lent)
}

// lend makes a loan of n bytes in pinned spans.
func (l *ramLane) lend(pool *buf.Pool, off, n, first, end int64) *buf.Ref {
	o := l.free
	if o == nil {
		o = &ramLoan{lane: l}
	} else {
		l.free = o.next
	}
	o.first, o.end = first, end
	l.lent++
	return pool.Lend(&o.Loan, l.bytes[off:off+n:off+n], o)
}

// Returned implements buf.Lender.
func (o *ramLoan) Returned(*buf.Loan) {
	l := o.lane
	l.giveBack(o.first, o.end)
	o.next, l.free = l.free, o
	l.lent--
	l.leaveIfUnused()
}

func (l *ramLane) giveBack(first, end int64) {
	for ; first < end; first++ {
		l.pins.giveBack(first)
	}
}
