package tier

import (
	"sync"
	"sync/atomic"
	"time"

	"lunar/cache"
	"lunar/internal/evloop"
)

const (
	// firstThreshold is where an adaptive threshold starts, in bytes.
	firstThreshold = 64 << 10
	// sampleEvery is how many forwards and copies of a lane there are for one that
	// is measured: a prime, so that it keeps step with no pattern.
	sampleEvery = 61
	// leastCopy is the smallest copy that is measured, in bytes: of smaller ones
	// the clock would be most.
	leastCopy   = 4 << 10
	adaptPeriod = int64(time.Second)
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

// SetForwardThreshold changes Config.ForwardThreshold.
func (c *Cache) SetForwardThreshold(bytes int64) { c.tuning.set(bytes) }

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

// begin notes when the hand-over begins, of some forwards.
func (f *forward) begin() {
	l := f.home
	f.took = 0
	if f.sampled = l.forwarding.due(); f.sampled {
		f.began = evloop.Monotonic()
	}
}

// handedOver ends one of both ways.
func (f *forward) handedOver() {
	if f.sampled {
		f.took += evloop.Monotonic() - f.began
	}
}

// due reports whether the lane's next request is to be measured.
func (w *forwarding) due() bool {
	if !w.station.cache.tuning.adaptive.Load() {
		return false
	}
	w.samples++
	return w.samples%sampleEvery == 0
}

// tell passes on what a forward took.
func (w *forwarding) tell(f *forward) {
	if f.sampled && !f.unserved {
		w.station.cache.tuning.learn(evloop.Monotonic(), func(t *cache.Tuner) { t.HandedOver(f.took) })
	}
}

// copyOut copies from a block that the lane has pinned.
func (l *lane) copyOut(part *partition, dst []byte, slot, off uint32) {
	began := l.forwarding.clock(len(dst))
	part.copyOut(dst, slot, off)
	l.forwarding.copied(part, len(dst), began)
}

// copyIn copies into a block that the lane has claimed.
func (l *lane) copyIn(part *partition, g *cache.Grant, off uint32, src []byte) {
	began := l.forwarding.clock(len(src))
	part.put(l.intent, g, off, src)
	l.forwarding.copied(part, len(src), began)
}

// clock returns the time if a copy of n bytes is to be measured, else 0.
func (w *forwarding) clock(n int) int64 {
	if w.station == nil || n < leastCopy || !w.due() {
		return 0
	}
	return evloop.Monotonic()
}

func (w *forwarding) copied(part *partition, n int, began int64) {
	if began == 0 {
		return
	}
	now := evloop.Monotonic()
	w.station.cache.tuning.learn(now, func(t *cache.Tuner) { t.Copied(n, part.node != w.station.node, now-began) })
}
