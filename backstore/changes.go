package backstore

import (
	"context"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Changes notes which parts of a store were altered. A Slot fills it from Slot.Track to
// Slot.Untrack, by any number of event threads.
type Changes struct {
	unit  int64
	size  int64
	words []atomic.Uint64
}

// NewChanges makes a set for a store of size bytes, in parts of unit bytes.
func NewChanges(size, unit int64) *Changes {
	return &Changes{unit: unit, size: size, words: make([]atomic.Uint64, size/unit/64+1)}
}

// Note adds what an operation altered, or may have, once it has ended.
func (c *Changes) Note(op *Op) {
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
	if n = min(n, c.size-off); n <= 0 {
		return
	}
	for part, last := off/c.unit, (off+n-1)/c.unit; part <= last; part = (part/64 + 1) * 64 {
		mask := ^uint64(0) << (part % 64)
		if part/64 == last/64 {
			mask &= ^uint64(0) >> (63 - last%64)
		}
		if w := &c.words[part/64]; w.Load()&mask != mask {
			w.Or(mask)
		}
	}
}

// All notes that everything was altered.
func (c *Changes) All() { c.Note(&Op{Kind: Erase}) }

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

// Track has all operations noted that alter the store and end from now on, and another store
// that takes its place. While nothing is noted operations take their way as if this was not
// there. An error of ctx is as of Exchange.
func (s *Slot) Track(ctx context.Context, c *Changes) error {
	return s.track(ctx, func(all tracked) tracked { return append(slices.Clone(all), c) })
}

// Untrack has nothing noted there any more.
func (s *Slot) Untrack(ctx context.Context, c *Changes) error {
	return s.track(ctx, func(all tracked) tracked {
		return slices.DeleteFunc(slices.Clone(all), func(o *Changes) bool { return o == c })
	})
}

func (s *Slot) track(ctx context.Context, change func(tracked) tracked) error {
	return s.Exchange(ctx, func(store Store) (Store, error) {
		next := change(s.tracked())
		s.changes.Store(&next)
		return store, nil
	})
}

// tracked are where a Slot notes what is altered.
type tracked []*Changes

func (s *Slot) tracked() tracked {
	if all := s.changes.Load(); all != nil {
		return *all
	}
	return nil
}

func (all tracked) note(op *Op) {
	for _, c := range all {
		c.Note(op)
	}
}

// notingLane notes what its store has done at once; of what ends later, slotLane does.
type notingLane struct {
	Lane
	changes tracked
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
