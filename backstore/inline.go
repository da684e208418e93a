package backstore

import (
	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// inlineLane is the lane of a store that never has to wait.
type inlineLane struct {
	do       func(*Op) error
	counters *quiesce.Counters
	counter  quiesce.Counter // nothing is inside between two tasks of the thread
}

func newInlineLane(l *evloop.Loop, do func(*Op) error, counters *quiesce.Counters) *inlineLane {
	lane := &inlineLane{do: do, counters: counters}
	counters.Add(&lane.counter, l)
	return lane
}

// TryNow implements Lane.
func (l *inlineLane) TryNow(op *Op) bool {
	op.Err = l.do(op)
	return true
}

// Submit implements Lane.
func (l *inlineLane) Submit(op *Op) bool { return l.TryNow(op) }

// Close implements Lane.
func (l *inlineLane) Close() { l.counters.Remove(&l.counter) }
