package tier

import (
	"lunar/cache"
	"lunar/cache/internal/blocks"
	"lunar/internal/buf"
)

// loan is a part of a cache block that is pinned because somebody sends from
// it. Loans are reused; they may outlive their lane.
type loan struct {
	buf.Loan
	lane *lane
	part *blocks.Partition
	slot uint32
	next *loan // free
}

// Lend implements backstore.Lender: a hit without a copy. What it returns ends
// with a cache block at the latest. It counts as a request of its own: if Algorithm
// 1 gives it to another node, a thread of that node is to send it, which is the copy
// that is left.
func (l *lane) Lend(off int64, n int) *buf.Ref {
	pool := l.loop.Pool()
	if pool == nil || off < 0 || n <= 0 || off > l.volume.size()-int64(n) {
		return nil
	}
	var one [1]cache.Piece
	g, lu := l.blocks.Geometry, l.volume.config.LU
	g.Split(lu, off, n, one[:])
	p := &one[0]
	part := &l.blocks.Parts[p.Partition]
	want, _ := g.Masks(p.Off, p.Len)
	slot, ok := part.TryRead(cache.Key{LU: lu, Block: p.Block}, want)
	if !ok {
		return nil
	}
	l.noted(off, int(p.Len))
	o := l.newLoan()
	o.part, o.slot = part, slot
	ref := pool.Lend(&o.Loan, part.Bytes(slot)[p.Off:p.Off+p.Len:p.Off+p.Len], o)
	if node, forward := l.forwarding.remote(off, int(p.Len)); forward {
		ref.SendFrom(node)
	}
	return ref
}

func (l *lane) newLoan() *loan {
	o := l.loans
	if o == nil {
		return &loan{lane: l}
	}
	l.loans, o.next = o.next, nil
	return o
}

// Returned implements buf.Lender.
func (o *loan) Returned(*buf.Loan) {
	blocks.Wake(o.part.Unpin(o.slot))
	o.part = nil
	o.next, o.lane.loans = o.lane.loans, o
}
