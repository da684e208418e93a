package tier

import (
	"lunar/cache"
	"lunar/cache/internal/blocks"
	"lunar/internal/evloop"
)

const (
	// sampleEvery is how many forwards and copies of a lane there are for one that
	// is measured: a prime, so that it keeps step with no pattern.
	sampleEvery = 61
	// leastCopy is the smallest copy that is measured, in bytes: of smaller ones
	// the clock would be most.
	leastCopy = 4 << 10
)

// begin notes when the hand-over begins, of some forwards.
func (f *forward) begin() {
	f.took = 0
	if f.sampled = f.home.due(); f.sampled {
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
	if !w.station.tuning.adaptive.Load() {
		return false
	}
	w.samples++
	return w.samples%sampleEvery == 0
}

// tell passes on what a forward took.
func (w *forwarding) tell(f *forward) {
	if f.sampled && !f.unserved {
		w.station.tuning.learn(evloop.Monotonic(), func(t *cache.Tuner) { t.HandedOver(f.took) })
	}
}

// clock returns the time if a copy of n bytes is to be measured, else 0.
func (w *forwarding) clock(n int) int64 {
	if w.station == nil || n < leastCopy || !w.due() {
		return 0
	}
	return evloop.Monotonic()
}

func (w *forwarding) copied(part *blocks.Partition, n int, began int64) {
	if began == 0 {
		return
	}
	now := evloop.Monotonic()
	w.station.tuning.learn(now, func(t *cache.Tuner) { t.Copied(n, part.Node != w.station.node, now-began) })
}
