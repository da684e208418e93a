package tier

import (
	"lunar/cache"
	"lunar/cache/internal/blocks"
	"lunar/internal/buf"
)

// lentBlocks is how many blocks a loan has at most.
const lentBlocks = 16 // 256 KiB of the usual ones

// loan is a part of cache blocks that are pinned because somebody sends from them. The
// blocks follow each other in memory as in the volume. Loans are reused; they may outlive
// their lane.
type loan struct {
	buf.Loan
	lane *lane
	part *blocks.Partition
	slot uint32 // the first
	n    uint32 // how many
	next *loan  // free
}

// Lend implements backstore.Lender: a hit without a copy. What it returns ends where the
// next cache block is not the next one in memory, at the latest. It counts as a request of
// its own: if Algorithm 1 gives it to another node, a thread of that node is to send it,
// which is the copy that is left.
func (l *lane) Lend(off int64, n int) *buf.Ref {
	pool := l.loop.Pool()
	if pool == nil || l.lapsed() || off < 0 || n <= 0 || off > l.volume.size()-int64(n) {
		return nil
	}
	var one [1]cache.Piece
	g, lu := l.blocks.Geometry, l.volume.config.LU
	_, bytes := g.Split(lu, off, n, one[:])
	first := &one[0]
	key, part := cache.Key{LU: lu, Block: first.Block}, &l.blocks.Parts[first.Partition]
	want, _ := g.Masks(first.Off, first.Len)
	slot, ok := part.TryRead(key, want)
	if !ok {
		return nil
	}
	o := l.newLoan()
	o.part, o.slot, o.n = part, slot, 1
	bytes += o.extend(key, n-bytes)
	l.noted(off, bytes)
	from := int(first.Off)
	ref := pool.Lend(&o.Loan, part.Run(slot, o.n)[from:from+bytes:from+bytes], o)
	if node, forward := l.forwarding.remote(off, bytes); forward {
		ref.SendFrom(node)
	}
	return ref
}

// extend adds the blocks that lie behind block k, the last one, for up to n bytes, and
// returns how many these are.
func (o *loan) extend(k cache.Key, n int) (bytes int) {
	g := o.lane.blocks.Geometry
	for bytes < n && o.n < lentBlocks {
		k.Block++
		more := min(n-bytes, g.BlockSize())
		want, _ := g.Masks(0, uint32(more))
		if o.lane.blocks.Part(k) != o.part || !o.part.TryReadIn(o.slot+o.n, k, want) {
			break
		}
		o.n++
		bytes += more
	}
	return bytes
}

// Foresee implements backstore.Foreseer.
func (l *lane) Foresee(off int64, step int) {
	if l.far {
		k := cache.Key{LU: l.volume.config.LU, Block: uint64(off) >> l.blocks.BlockShift()}
		l.blocks.Part(k).Foresee(k, step)
	}
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
	for i := range o.n {
		blocks.Wake(o.part.Unpin(o.slot + i))
	}
	o.part = nil
	o.next, o.lane.loans = o.lane.loans, o
}
