package backstore

// inlineLane is the lane of a store that never has to wait.
type inlineLane struct {
	do func(*Op) error
}

// TryNow implements Lane.
func (l inlineLane) TryNow(op *Op) bool {
	op.Err = l.do(op)
	return true
}

// Submit implements Lane.
func (l inlineLane) Submit(op *Op) bool { return l.TryNow(op) }

// Close implements Lane.
func (l inlineLane) Close() {}
