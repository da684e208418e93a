package windows

import (
	"fmt"
	"sync/atomic"

	"lunar/backstore"
)

// The stamp of an Excess is its slow device's. What is on the fast device alone is told by
// the identity of that.

// Opened implements backstore.Stamper for a slow device that does.
func (x *Excess) Opened() (backstore.Stamp, bool) {
	if s, ok := x.config.Slow.(backstore.Stamper); ok {
		return s.Opened()
	}
	return backstore.Stamp{}, false
}

// Stamp implements backstore.Stamper for a slow device that does. It writes back what the log
// has, so that Close has nothing to change any more.
func (x *Excess) Stamp() (backstore.Stamp, error) {
	s, ok := x.config.Slow.(backstore.Stamper)
	if !ok {
		return backstore.Stamp{}, fmt.Errorf("stamp of %s: %w", x.Info().Describe, backstore.ErrUnsupported)
	}
	if !x.Empty() {
		if err := x.settle(); err != nil {
			return backstore.Stamp{}, fmt.Errorf("stamp of %s: %w", x.Info().Describe, err)
		}
	}
	return s.Stamp()
}

// Watch implements backstore.Watched for a slow device that does.
func (x *Excess) Watch(word *atomic.Uint64) {
	if w, ok := x.config.Slow.(backstore.Watched); ok {
		w.Watch(word)
	}
}

// Quiet implements backstore.Watched. What is in the log will change the slow device.
func (x *Excess) Quiet() (begun uint64, quiet bool) {
	w, ok := x.config.Slow.(backstore.Watched)
	if !ok {
		return 0, false
	}
	begun, quiet = w.Quiet()
	return begun, quiet && x.Empty()
}

// Exact implements backstore.Watched for a slow device that is.
func (x *Excess) Exact() bool {
	w, ok := x.config.Slow.(backstore.Watched)
	return ok && w.Exact()
}
