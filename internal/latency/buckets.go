package latency

import "math/bits"

// Durations are counted in buckets whose widths grow with them (log-linear, as HDR
// histograms are): perOctave of equal width between a power of two and the next.
const (
	octaveBits = 3
	perOctave  = 1 << octaveBits
	firstBits  = 10 // bucket 0 is below 1<<10 ns, about 1 us
	lastBits   = 37 // the last one is from 1<<37 ns on, about 137 s
	buckets    = (lastBits-firstBits)*perOctave + 2
)

// bucketOf returns the bucket of a duration in ns.
func bucketOf(ns int64) int {
	v := uint64(max(ns, 0))
	if v < 1<<firstBits {
		return 0
	}
	octave := bits.Len64(v) - 1
	return min((octave-firstBits)<<octaveBits+int(v>>(octave-octaveBits))&(perOctave-1)+1, buckets-1)
}

// edge returns the least duration in ns of a bucket; that of buckets itself is what no
// bucket but the last exceeds.
func edge(bucket int) int64 {
	if bucket == 0 {
		return 0
	}
	n := bucket - 1
	return int64(perOctave+n&(perOctave-1)) << (firstBits - octaveBits + n>>octaveBits)
}
