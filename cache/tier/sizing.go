package tier

import (
	"sync"
	"sync/atomic"

	"lunar/internal/quiesce"
)

// sizing is the state of a volume's size while it changes. The size is that of
// the store below otherwise.
type sizing struct {
	mu       sync.Mutex
	limit    atomic.Int64     // operations end before it; 0: there is none
	changing atomic.Bool      // no operation ends with the volume
	counters quiesce.Counters // of the lanes
}

// least returns what of size operations may use.
func (s *sizing) least(size int64) int64 {
	if limit := s.limit.Load(); limit != 0 {
		return min(limit, size)
	}
	return size
}
