package tier

import (
	"sync"
	"sync/atomic"

	"lunar/cache/internal/blocks"
	"lunar/internal/evloop"
)

// room is what a volume that writes back has for dirty data: its own limit, and its
// part of what all volumes have in common.
type room struct {
	own     budget
	common  *commonRoom
	lu      uint32
	flusher *kicks
	failing atomic.Bool // background writing has failed and not succeeded since
	aside   atomic.Bool // writes go through until that is changed again

	throttled atomic.Uint64 // writes that had to wait
}

// commonRoom is what all volumes of a Cache have for dirty data.
type commonRoom struct {
	dirty   budget
	blocks  *blocks.Memory
	unowned atomic.Int64 // dirty bytes of volumes that are not open
	waiting atomic.Int64 // writes in mu.throttled
	pressed atomic.Bool  // all flushers were told that there are many dirty bytes
	kickAll func()       // makes all flushers look

	throttled atomic.Uint64 // writes that had to wait
	mu        struct {
		sync.Mutex
		throttled throttle
	}
}

// reservation is what a write has of the room. It is the write's own, and reused.
type reservation struct {
	room   *room
	loop   *evloop.Loop // of the write
	write  evloop.Task  // resumed there when it has waited
	bytes  int64        // that it asks for
	taken  int64        // of them, those that it has
	waived bool         // it has waited, and is to go through now
	next   *reservation // in the throttle
}

// throttle is a queue of writes that wait for dirty data to be written.
type throttle struct{ head, tail *reservation }

func (q *throttle) push(w *reservation) {
	w.next = nil
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
}

// goesThrough reports whether writes are not to become dirty: the store does not take
// dirty data, or the volume is to write back no more.
func (r *room) goesThrough() bool { return r.failing.Load() || r.aside.Load() }

// fits takes n bytes of both budgets; false: there are none, and nothing was taken.
func (r *room) fits(n int64) bool {
	if r.common.waiting.Load() == 0 && (r.take(n) || r.retake(n)) {
		r.nudge()
		return true
	}
	return false
}

// reserve takes n bytes of both budgets for a write that cannot wait. If there are
// none, the flusher looks.
func (r *room) reserve(n int64) bool {
	if r.fits(n) {
		return true
	}
	r.flusher.kick()
	return false
}

// enter takes n bytes of both budgets. If there are none, the write waits: it is
// resumed with its reservation.
func (w *reservation) enter(n int64) bool {
	r := w.room
	w.bytes, w.waived = n, false
	if r.fits(n) {
		w.taken = n
		return true
	}
	c := r.common
	c.mu.Lock()
	c.mu.throttled.push(w)
	c.waiting.Add(1)
	c.mu.Unlock()
	c.throttled.Add(1)
	r.throttled.Add(1)
	c.kickAll()
	return false
}

// leave gives back what enter took: what is dirty now, the partitions know.
func (w *reservation) leave() {
	if w.taken != 0 {
		w.room.ended(w.taken)
		w.taken = 0
	}
}

func (r *room) take(n int64) bool {
	if !r.own.take(n) {
		return false
	}
	if !r.common.dirty.take(n) {
		r.own.untake(n)
		return false
	}
	return true
}

// untake undoes a reservation whose write does not happen.
func (r *room) untake(n int64) {
	r.own.untake(n)
	r.common.dirty.untake(n)
}

// ended gives a reservation up: what is dirty now, the partitions know.
func (r *room) ended(n int64) {
	r.own.ended(n)
	r.common.dirty.ended(n)
}

func (r *room) retake(n int64) bool {
	r.correct()
	return r.take(n)
}

// correct lowers both estimates, and returns them.
func (r *room) correct() (own, all int64) {
	return r.own.correct(r.dirtyBytes), r.common.dirty.correct(r.common.dirtyBytes)
}

// dirtyBytes asks all partitions.
func (r *room) dirtyBytes() int64 { return r.common.blocks.DirtyBytes(r.lu) }

// nudge makes flushers look if dirty data may have become many, or are waited for.
func (r *room) nudge() {
	c := r.common
	if r.own.estimate.Load() > r.own.look.Load() || c.waiting.Load() > 0 {
		r.flusher.kick()
	}
	if c.dirty.estimate.Load() > c.dirty.look.Load() && c.pressed.CompareAndSwap(false, true) {
		c.kickAll()
	}
}

// admit resumes the writes that fit now, in order of arrival, and those of volumes
// whose writes go through now.
func (c *commonRoom) admit() {
	if c.waiting.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var stay throttle
	for w := c.mu.throttled.head; w != nil; {
		next := w.next
		switch {
		case w.room.goesThrough():
			w.waived = true
		case w.room.take(w.bytes):
			w.taken = w.bytes
		default:
			stay.push(w)
			w = next
			continue
		}
		c.waiting.Add(-1)
		w.loop.Post(w.write)
		w = next
	}
	c.mu.throttled = stay
}

// dirtyBytes returns those of all volumes that are open: what others left cannot
// be written now, and must not keep anybody waiting.
func (c *commonRoom) dirtyBytes() (sum int64) {
	for i := range c.blocks.Parts {
		sum += int64(c.blocks.Parts[i].Stats().DirtyBytes)
	}
	return sum - c.unowned.Load()
}

// recount notes anew how many dirty bytes are nobody's.
func (c *commonRoom) recount(measure func() int64) {
	c.dirty.correcting.Lock()
	defer c.dirty.correcting.Unlock()
	c.unowned.Store(measure())
}

// inherit counts what is dirty of the volume, and was nobody's, as that of an open one.
func (r *room) inherit() {
	c, n := r.common, r.dirtyBytes()
	c.dirty.correcting.Lock()
	defer c.dirty.correcting.Unlock()
	r.own.estimate.Add(n)
	c.dirty.estimate.Add(n)
	c.unowned.Add(-n)
}
