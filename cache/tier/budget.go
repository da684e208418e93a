package tier

import (
	"sync"
	"sync/atomic"
)

// budget bounds dirty bytes. Partitions know exactly what is dirty, but asking
// them all for every write would cost too much. So writers add what they may make
// dirty to an estimate, which is never too low, and who finds it high corrects it.
type budget struct {
	limit      atomic.Int64
	look       atomic.Int64 // estimate from which the flusher looks how many they are
	high, low  atomic.Int64 // dirty bytes with which background writing begins, and ends
	estimate   atomic.Int64
	writing    atomic.Int64 // reserved by writes that have not ended
	correcting sync.Mutex   // two corrections at a time would be one too many
}

// set derives the watermarks from the limit. What is written again and again, while
// it is dirty, is written to the store below the less often the more may stay dirty;
// between look and high are the writes that come before the flusher looks again in
// vain.
func (b *budget) set(limit int64) {
	b.limit.Store(limit)
	b.look.Store(limit / 4 * 3)
	b.high.Store(limit / 8 * 5)
	b.low.Store(limit / 2)
}

// take reserves n bytes; false: beyond the limit, nothing was reserved.
func (b *budget) take(n int64) bool {
	b.writing.Add(n)
	after := b.estimate.Add(n)
	if after <= b.limit.Load() || after == n { // one alone may always go on
		return true
	}
	b.untake(n)
	return false
}

func (b *budget) untake(n int64) {
	b.estimate.Add(-n)
	b.writing.Add(-n)
}

// ended notes that a write of n reserved bytes has left in the partitions what
// it made dirty.
func (b *budget) ended(n int64) { b.writing.Add(-n) }

// correct lowers the estimate to what measure returns and what is being written.
// INVARIANT: a reservation that is in old is in writing, or measure sees it.
func (b *budget) correct(measure func() int64) int64 {
	b.correcting.Lock()
	defer b.correcting.Unlock()
	old := b.estimate.Load()
	now := b.writing.Load()
	now += measure()
	if now < old {
		b.estimate.Add(now - old)
	}
	return now
}
