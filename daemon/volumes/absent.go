package volumes

import (
	"fmt"
	"sync/atomic"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// absent stands for the image of a shared volume that is not open here, because another
// server has it.
type absent struct {
	info backstore.Info
	size atomic.Int64 // bytes, as far as another server has told
}

// errElsewhere answers who uses the medium all the same.
var errElsewhere = fmt.Errorf("another server has the volume: %w", backstore.ErrGone)

func newAbsent(info backstore.Info) *absent {
	a := &absent{info: info}
	a.size.Store(info.Size)
	return a
}

// Info implements backstore.Store.
func (a *absent) Info() backstore.Info {
	info := a.info
	info.Size = a.size.Load()
	return info
}

// Lane implements backstore.Store.
func (a *absent) Lane(*evloop.Loop) (backstore.Lane, error) { return absentLane{}, nil }

// Close implements backstore.Store.
func (a *absent) Close() error { return nil }

type absentLane struct{}

// TryNow implements backstore.Lane. There is nothing to be made stable.
func (absentLane) TryNow(op *backstore.Op) bool {
	if op.Err = errElsewhere; op.Kind == backstore.Flush {
		op.Err = nil
	}
	return true
}

// Submit implements backstore.Lane.
func (l absentLane) Submit(op *backstore.Op) bool { return l.TryNow(op) }

// Close implements backstore.Lane.
func (absentLane) Close() {}
