package latency

// Counts is how long a number of commands took. The zero value is of none.
type Counts struct {
	Sum     uint64 // of all durations, in ns
	Max     int64  // the longest of them, in ns
	buckets [buckets]uint64
}

// Merge adds those of another.
func (c *Counts) Merge(o *Counts) {
	c.Sum += o.Sum
	c.Max = max(c.Max, o.Max)
	for i, n := range o.buckets {
		c.buckets[i] += n
	}
}

// Count is how many commands they are.
func (c *Counts) Count() (n uint64) {
	for _, b := range c.buckets {
		n += b
	}
	return n
}

// Below is how many took less than a power of two of ns, from 1<<10 to 1<<37.
func (c *Counts) Below(bits int) (n uint64) {
	for _, b := range c.buckets[:1+(bits-firstBits)*perOctave] {
		n += b
	}
	return n
}

// Quantile is the duration in ns that a share of all, from 0 to 1, does not exceed: it is
// interpolated inside a bucket, so at most an eighth too long or too short, and never more
// than the longest. 0 if there are none.
func (c *Counts) Quantile(share float64) float64 {
	rank, before := share*float64(c.Count()), uint64(0)
	for i, n := range c.buckets {
		if n > 0 && float64(before+n) >= rank {
			low, high := float64(edge(i)), float64(edge(i+1))
			if i == buckets-1 {
				high = float64(c.Max)
			}
			at := low + (high-low)*max(0, rank-float64(before))/float64(n)
			return min(at, float64(c.Max))
		}
		before += n
	}
	return 0
}
