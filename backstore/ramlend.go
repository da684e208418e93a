package backstore

import "lunar/internal/buf"

// ramLoan is a part of the memory that somebody sends from. Loans are reused; they may
// outlive their lane.
type ramLoan struct {
	buf.Loan
	lane       *ramLane
	first, end int64 // spans
	next       *ramLoan
}

// Lend implements Lender: what was written, is not being changed, and is to be changed by
// nobody who came before.
func (l *ramLane) Lend(off int64, n int) *buf.Ref {
	pool := l.loop.Pool()
	if pool == nil || off < 0 || n <= 0 || off > l.info.Load().Size-int64(n) {
		return nil
	}
	if len(l.waiting) > 0 && l.before(ramExtent{from: off, to: off + int64(n)}) > 0 {
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
