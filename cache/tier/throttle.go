package tier

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
