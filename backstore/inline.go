package backstore

import (
	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// inlineLane is the lane of a store that never has to wait.
type inlineLane struct {
	do    func(*Op) error
	gates *quiesce.Gates
	gate  quiesce.Gate // nothing is inside between two tasks of the thread
}

func newInlineLane(l *evloop.Loop, do func(*Op) error, gates *quiesce.Gates) *inlineLane {
	lane := &inlineLane{do: do, gates: gates}
	gates.Add(&lane.gate, l)
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
func (l *inlineLane) Close() { l.gates.Remove(&l.gate) }
