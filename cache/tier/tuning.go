package tier

import (
	"sync"
	"sync/atomic"
	"time"

	"lunar/cache"
)

const (
	// firstThreshold is where an adaptive threshold starts, in bytes.
	firstThreshold = 64 << 10
	adaptPeriod    = int64(time.Second)
)

// tuning finds the size from which requests are forwarded, if that is not fixed.
type tuning struct {
	threshold atomic.Int64 // bytes
	adaptive  atomic.Bool
	mu        struct {
		sync.Mutex
		tuner *cache.Tuner
		last  int64 // when the threshold was adapted, on the clock of evloop.Monotonic
	}
}

// set takes what the configuration says.
func (t *tuning) set(threshold int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.adaptive.Store(threshold == 0)
	switch {
	case threshold < 0:
		threshold = cache.NeverForward
	case threshold == 0:
		threshold = firstThreshold
	}
	t.threshold.Store(threshold)
	t.mu.tuner = cache.NewTuner(threshold)
}

// learn adds what sample says, and adapts the threshold if it is time. Few
// requests are samples, so that threads hardly ever meet here.
func (t *tuning) learn(now int64, sample func(*cache.Tuner)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.adaptive.Load() {
		return // it was measured for a threshold that has been fixed since
	}
	sample(t.mu.tuner)
	if now-t.mu.last >= adaptPeriod {
		t.mu.last = now
		t.threshold.Store(t.mu.tuner.Adapt())
	}
}
