package scheduler

import "math/bits"

// Histogram counts durations by powers of two: bucket i holds those of
// 1<<(i-1) ns to below 1<<i ns, bucket 0 those of 0.
type Histogram [40]int64

// Add counts a duration in ns.
func (h *Histogram) Add(ns int64) { h[min(bits.Len64(uint64(max(0, ns))), len(h)-1)]++ }

// Merge adds another histogram.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o {
		h[i] += n
	}
}
