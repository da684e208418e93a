package latency

import "sync/atomic"

// cacheLine keeps what one thread writes apart from what others do, in bytes.
const cacheLine = 64

// Recorder counts durations: one thread adds, anyone reads. Its counters wrap around; a
// Book reads them often enough.
type Recorder struct {
	_       [cacheLine]byte
	sum     atomic.Uint64 // ns
	longest atomic.Int64  // ns, since it was taken last
	counts  [buckets]atomic.Uint32
	_       [cacheLine]byte
}

// addAll counts the durations of commands that all end now: the sum last, by which a
// reader sees that there is something new.
func (r *Recorder) addAll(commands []ended, now int64) {
	var sum, longest int64
	for i := range commands {
		ns := max(now-commands[i].since, 1) // each changes the sum
		r.counts[bucketOf(ns)].Add(1)
		sum, longest = sum+ns, max(longest, ns)
	}
	if longest > r.longest.Load() {
		r.longest.Store(longest)
	}
	r.sum.Add(uint64(sum))
}

// reading is what of a Recorder was read last.
type reading struct {
	sum    uint64
	counts [buckets]uint32
}

// since adds what was counted since the last call to each of to, and reports whether
// there was anything. One goroutine at a time may call it.
func (d *reading) since(r *Recorder, to ...*Counts) bool {
	// First, so that all that is in it is counted already: what is counted meanwhile
	// changes it again, for the next call.
	sum := r.sum.Load()
	if sum == d.sum {
		return false
	}
	n, least := uint64(0), int64(0)
	for i := range r.counts {
		now := r.counts[i].Load()
		added := uint64(now - d.counts[i])
		if added == 0 {
			continue
		}
		d.counts[i] = now
		n, least = n+added, edge(i)
		for _, c := range to {
			c.buckets[i] += added
		}
	}
	longest := max(r.longest.Swap(0), least) // that of what is counted may be taken already
	for _, c := range to {
		c.Sum += sum - d.sum
		if n > 0 {
			c.Max = max(c.Max, longest)
		}
	}
	d.sum = sum
	return n > 0
}
