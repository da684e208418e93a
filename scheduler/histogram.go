package scheduler

import "math/bits"

// Histogram counts durations by powers of two: bucket i holds those of
// 1<<(i-1) ns to below 1<<i ns, bucket 0 those of 0, the last all that are longer.
type Histogram struct {
	buckets [40]int64
	max     int64 // ns
}

// Add counts a duration in ns.
func (h *Histogram) Add(ns int64) {
	h.buckets[min(bits.Len64(uint64(max(0, ns))), len(h.buckets)-1)]++
	h.max = max(h.max, ns)
}

// Merge adds another histogram.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.max = max(h.max, o.max)
}

// Count is how many durations were added.
func (h *Histogram) Count() (n int64) {
	for _, c := range h.buckets {
		n += c
	}
	return n
}

// Below is how many durations were below 1<<i ns.
func (h *Histogram) Below(i int) (n int64) {
	for _, c := range h.buckets[:min(i+1, len(h.buckets))] {
		n += c
	}
	return n
}

// Max is the longest duration that was added, in ns; 0 if there are none.
func (h *Histogram) Max() int64 { return h.max }

// Quantile is the duration in ns that a share of all, from 0 to 1, does not
// exceed, interpolated inside its bucket, and never more than the longest; 0 if
// there are none.
func (h *Histogram) Quantile(share float64) float64 {
	rank, before := share*float64(h.Count()), int64(0)
	for i, c := range h.buckets {
		if c > 0 && float64(before+c) >= rank {
			low, high := h.edges(i)
			return low + (high-low)*max(0, rank-float64(before))/float64(c)
		}
		before += c
	}
	return 0
}

// edges are what no duration of a bucket is below, and none above.
func (h *Histogram) edges(i int) (low, high float64) {
	switch i {
	case 0:
		return 0, 0
	case len(h.buckets) - 1:
		return float64(int64(1) << (i - 1)), float64(h.max)
	}
	return float64(int64(1) << (i - 1)), float64(min(int64(1)<<i, h.max))
}
