package pipeline

// Order gives blocks out in the order of their sequence, in whatever order they arrive.
type Order struct {
	next    uint64
	pending map[uint64]*Block
}

// Arrive takes a block in and returns those that are due now, in order. A block that was
// there before, or is due no more, is not taken: false.
func (o *Order) Arrive(b *Block) (due []*Block, taken bool) {
	if o.pending == nil {
		o.pending = map[uint64]*Block{}
	}
	if b.Sequence < o.next || o.pending[b.Sequence] != nil {
		return nil, false
	}
	o.pending[b.Sequence] = b
	for {
		next := o.pending[o.next]
		if next == nil {
			return due, true
		}
		delete(o.pending, o.next)
		o.next++
		due = append(due, next)
	}
}

// Pending counts the blocks that wait for earlier ones.
func (o *Order) Pending() int { return len(o.pending) }
