package backstore

import (
	"context"
	"math/bits"
	"sync/atomic"
)

// Changes notes which parts of a store were altered. A Slot fills it while it is told to
// (Slot.Track), by any number of event threads.
type Changes struct {
	unit  int64
	size  int64
	words []atomic.Uint64
}

// NewChanges makes a set for a store of size bytes, in parts of unit bytes.
func NewChanges(size, unit int64) *Changes {
	return &Changes{unit: unit, size: size, words: make([]atomic.Uint64, ((size+unit-1)/unit+63)/64)}
}

// note adds what an operation altered, or may have, once it has ended.
func (c *Changes) note(op *Op) {
	off, n := op.Off, op.Len
	switch op.Kind {
	case Write:
		n = int64(len(op.Data))
	case Discard, WriteZeroes:
	case Erase:
		off, n = 0, c.size
	default:
		return
	}
	for i := off / c.unit; i*c.unit < min(off+n, c.size); i++ {
		if w, bit := &c.words[i/64], uint64(1)<<(i%64); w.Load()&bit == 0 {
			w.Or(bit)
		}
	}
}

// Take returns the numbers of the parts that were altered, in order, and forgets them. What
// is altered from now on is noted again.
func (c *Changes) Take() (parts []int64) {
	for i := range c.words {
		if c.words[i].Load() == 0 {
			continue
		}
		for word := c.words[i].Swap(0); word != 0; word &= word - 1 {
			parts = append(parts, int64(i)*64+int64(bits.TrailingZeros64(word)))
		}
	}
	return parts
}

// Track has all operations noted that alter the store and end from now on, until the next
// call; nil: none any more. While nothing is noted operations take their way as if this
// was not there. An error of ctx is as of Exchange.
func (s *Slot) Track(ctx context.Context, c *Changes) error {
	return s.Exchange(ctx, func(store Store) (Store, error) {
		s.changes.Store(c)
		return store, nil
	})
}

// notingLane notes what its store has done at once; of what ends later, slotLane does.
type notingLane struct {
	Lane
	changes *Changes
}

// TryNow implements Lane.
func (l *notingLane) TryNow(op *Op) bool {
	if !l.Lane.TryNow(op) {
		return false
	}
	l.changes.note(op)
	return true
}

// Submit implements Lane.
func (l *notingLane) Submit(op *Op) bool {
	if !l.Lane.Submit(op) {
		return false
	}
	l.changes.note(op)
	return true
}
