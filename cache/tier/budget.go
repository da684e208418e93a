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

// throttle is a queue of writes that wait for dirty data to be written.
type throttle struct{ head, tail *transfer }

func (q *throttle) push(t *transfer) {
	t.next = nil
	if q.tail == nil {
		q.head = t
	} else {
		q.tail.next = t
	}
	q.tail = t
}

// reserve takes n bytes of both budgets for a write. If there are none, the write
// waits: it is resumed with its reservation. Without them, and without a t that
// can wait, nothing happens and the result is false.
func (v *volume) reserve(n int64, t *transfer) bool {
	c := v.cache
	if c.waiting.Load() == 0 && (v.take(n) || v.retake(n)) {
		v.nudge()
		return true
	}
	if t == nil {
		v.flusher.kick()
		return false
	}
	c.mu.Lock()
	c.mu.throttled.push(t)
	c.waiting.Add(1)
	c.mu.Unlock()
	c.stats.throttled.Add(1)
	v.throttled.Add(1)
	c.kickAll()
	return false
}

func (v *volume) take(n int64) bool {
	if !v.dirty.take(n) {
		return false
	}
	if !v.cache.dirty.take(n) {
		v.dirty.untake(n)
		return false
	}
	return true
}

// correct lowers both estimates, and returns them.
func (v *volume) correct() (own, all int64) {
	return v.dirty.correct(v.dirtyBytes), v.cache.dirty.correct(v.cache.dirtyBytes)
}

func (v *volume) retake(n int64) bool {
	v.correct()
	return v.take(n)
}

// nudge makes flushers look if dirty data may have become many, or are waited for.
func (v *volume) nudge() {
	c := v.cache
	if v.dirty.estimate.Load() > v.dirty.look.Load() || c.waiting.Load() > 0 {
		v.flusher.kick()
	}
	if c.dirty.estimate.Load() > c.dirty.look.Load() && c.pressed.CompareAndSwap(false, true) {
		c.kickAll()
	}
}

// ended gives a reservation up: what is dirty now, the partitions know.
func (v *volume) ended(n int64) {
	v.dirty.ended(n)
	v.cache.dirty.ended(n)
}

// admitThrottled resumes the writes that fit now, in order of arrival, and those
// of volumes whose writes go through now.
func (c *Cache) admitThrottled() {
	if c.waiting.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var stay throttle
	for t := c.mu.throttled.head; t != nil; {
		next := t.next
		v := t.lane.volume
		switch {
		case v.goesThrough():
			t.through = true
		case v.take(t.reserving):
			t.reserved = t.reserving
		default:
			stay.push(t)
			t = next
			continue
		}
		c.waiting.Add(-1)
		t.lane.loop.Post(t)
		t = next
	}
	c.mu.throttled = stay
}

// kickAll makes all volumes look whether they should write.
func (c *Cache) kickAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.mu.volumes {
		if v != nil && v.flusher != nil {
			v.flusher.kick()
		}
	}
}
