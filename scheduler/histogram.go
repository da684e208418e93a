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

// Count is how many durations were added.
func (h *Histogram) Count() (n int64) {
	for _, c := range h {
		n += c
	}
	return n
}

// Below is how many durations were below 1<<i ns.
func (h *Histogram) Below(i int) (n int64) {
	for _, c := range h[:min(i+1, len(h))] {
		n += c
	}
	return n
}

// Quantile is the duration in ns that a share of all, from 0 to 1, does not
// exceed, interpolated inside its bucket; 0 if there are none.
func (h *Histogram) Quantile(share float64) float64 {
	rank, before := share*float64(h.Count()), int64(0)
	for i, c := range h {
		if c > 0 && float64(before+c) >= rank {
			low, high := float64(int64(1)<<max(i-1, 0)), float64(int64(1)<<i)
			if i == 0 {
				low, high = 0, 0
			}
			return low + (high-low)*max(0, rank-float64(before))/float64(c)
		}
		before += c
	}
	return 0
}
