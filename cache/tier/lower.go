package tier

import (
	"lunar/backstore"
	"lunar/internal/evloop"
)

// lower is an event thread's way to the store below a volume.
type lower struct {
	backstore.Lane
	store   backstore.Store
	loop    *evloop.Loop
	closing bool // the lane above is being closed
}

// begin starts an op and reports whether it has ended.
func (l *lower) begin(op *backstore.Op) bool { return l.TryNow(op) || l.Submit(op) }
