package cache

import "math/bits"

const (
	// NeverForward is the threshold of a machine on which forwarding does not
	// pay at any size.
	NeverForward = int64(1) << 62

	minThreshold = 4 << 10
	maxThreshold = 1 << 20
	minSamples   = 16 // of each kind before the rule says anything
)

// Tuner finds the size from which forwarding pays. The rule: a forward costs
// two hand-overs whatever the size, and saves per byte what copying from
// another node's memory takes longer than copying from the own one. So
//
//	threshold = hand-over / (remote - local)
//
// with the mean times that were measured, rounded up to a power of two and
// at least 4 KiB; NeverForward if that is above 1 MiB or remote memory is not
// slower.
// Adapt, called once a second or so, halves what it knows, so that old samples
// fade. A kind that brought no new samples keeps its mean.
//
// A Tuner has no clock and no lock: the caller adds times in nanoseconds and
// calls all methods from one thread.
type Tuner struct {
	handover, local, remote mean
	threshold               int64
}

// mean is a fading mean of ns per unit.
type mean struct {
	ns, units, samples uint64
	fresh              bool
}

func (m *mean) add(units int, ns int64) {
	m.ns += uint64(max(ns, 0))
	m.units += uint64(units)
	m.samples++
	m.fresh = true
}

func (m *mean) fade() {
	if m.fresh && m.samples > 2*minSamples {
		m.ns, m.units, m.samples = m.ns/2, m.units/2, m.samples/2
	}
	m.fresh = false
}

func (m *mean) value() float64 { return float64(m.ns) / float64(max(m.units, 1)) }

// NewTuner starts with a threshold in bytes.
func NewTuner(threshold int64) *Tuner { return &Tuner{threshold: threshold} }

// HandedOver adds the time that a request spent between two threads, there and
// back.
func (t *Tuner) HandedOver(ns int64) { t.handover.add(1, ns) }

// Copied adds the time that a copy out of the cache took.
func (t *Tuner) Copied(bytes int, remote bool, ns int64) {
	if remote {
		t.remote.add(bytes, ns)
		return
	}
	t.local.add(bytes, ns)
}

// Adapt returns the threshold in bytes that follows from what was measured.
func (t *Tuner) Adapt() int64 {
	if min(t.handover.samples, t.local.samples, t.remote.samples) >= minSamples {
		t.threshold = breakEven(t.handover.value(), t.local.value(), t.remote.value())
	}
	t.handover.fade()
	t.local.fade()
	t.remote.fade()
	return t.threshold
}

func breakEven(handover, local, remote float64) int64 {
	if remote <= local {
		return NeverForward
	}
	bytes := handover / (remote - local)
	switch {
	case bytes > maxThreshold:
		return NeverForward
	case bytes <= minThreshold:
		return minThreshold
	}
	return 1 << bits.Len64(uint64(bytes)-1)
}
