package backstore

import (
	"slices"

	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// ramLane is an event thread's way into a RAM store. Nothing waits there but a change
// of what is lent, and what meets a change that waits.
//
// INVARIANT: of ops that meet, the one that the lane was given first takes effect first,
// and what it has lent was read when it was lent. All that an initiator may rely on follows,
// for its commands come by one lane. Ops of two lanes have no order until one has ended:
// a read passes what waits on another lane, which nobody has been told of.
//
// Nobody waits in a circle: a loan ends by itself, and everything else waits for what came
// to its own lane before.
type ramLane struct {
	*ramStore
	loop    *evloop.Loop
	counter quiesce.Counter // nothing that knows the size is inside between two tasks of the thread
	waiting []*ramWait      // in the order in which they came
	free    *ramLoan
	lent    int // loans that are out
	closed  bool
}

// TryNow implements Lane.
func (l *ramLane) TryNow(op *Op) bool {
	if op.Err = Check(op, l.info.Load()); op.Err != nil {
		return true
	}
	if len(l.waiting) > 0 && l.before(extentOf(op)) > 0 {
		return false
	}
	if !op.Kind.Changes() {
		l.look(op)
		return true
	}
	to := op.Off + op.Length()
	for at, next := l.piece(op.Kind, op.Off, to); at < next && op.Err == nil; at, next = l.piece(op.Kind, next, to) {
		first, end := spansOf(at, next)
		if !l.pins.change(first, end) {
			return false // what was discarded before may be discarded again
		}
		op.Err = l.ramStore.change(op, at, next)
		l.pins.changed(first, end)
	}
	return true
}

// Submit implements Lane.
func (l *ramLane) Submit(op *Op) bool {
	if l.TryNow(op) {
		return true
	}
	w := &ramWait{lane: l, op: op, extent: extentOf(op), at: op.Off, next: op.Off}
	if w.left = l.before(w.extent); w.left == 0 && w.proceed() {
		return true
	}
	l.waiting = append(l.waiting, w)
	return false
}

// before returns how many of those that wait go before an op.
func (l *ramLane) before(e ramExtent) (n int) {
	for _, w := range l.waiting {
		if e.meets(w.extent) {
			n++
		}
	}
	return n
}

// ended lets those go on that waited for w.
func (l *ramLane) ended(w *ramWait) {
	i := slices.Index(l.waiting, w)
	l.waiting = slices.Delete(l.waiting, i, i+1)
	for _, later := range l.waiting[i:] {
		switch {
		case !later.extent.meets(w.extent):
		case later.left > 1:
			later.left--
		default:
			l.loop.Post(later)
		}
	}
	w.op.Done(w.op)
}

// Close implements Lane.
func (l *ramLane) Close() {
	l.counters.Remove(&l.counter)
	l.closed = true
	l.leaveIfUnused()
}

// leaveIfUnused has an error only where the kernel is out of memory for the rest of a
// mapping; then the memory stays.
func (l *ramLane) leaveIfUnused() {
	if l.closed && l.lent == 0 {
		_ = l.leave()
	}
}

// ramExtent is what an op does to which bytes.
type ramExtent struct {
	from, to int64
	changes  bool
}

func extentOf(op *Op) ramExtent {
	return ramExtent{op.Off, op.Off + op.Length(), op.Kind.Changes()}
}

// meets reports whether the order of the two can be seen.
func (e ramExtent) meets(other ramExtent) bool {
	return (e.changes || other.changes) && e.from < other.to && other.from < e.to
}

// ramWait is an op that waits: first for those before it that it meets, then, if it is
// a change, before each of its parts for loans.
type ramWait struct {
	lane     *ramLane
	op       *Op
	extent   ramExtent // of op, which its result may alter
	at, next int64     // the part of which nothing more is lent
	left     int       // of what it waits for
}

// Run implements evloop.Task: something that it waits for has ended.
func (w *ramWait) Run() {
	if w.left--; w.left == 0 && w.proceed() {
		w.lane.ended(w)
	}
}

// proceed makes the part that was waited for and those behind it, up to one that has to
// be waited for. It reports whether the op has ended.
func (w *ramWait) proceed() bool {
	l, op := w.lane, w.op
	if !w.extent.changes {
		if op.Err = Check(op, l.info.Load()); op.Err == nil {
			l.look(op)
		}
		return true
	}
	returned := func() { l.loop.Post(w) }
	for op.Err = nil; ; {
		if w.make(); op.Err != nil {
			return true
		}
		if w.at, w.next = l.piece(op.Kind, w.next, w.extent.to); w.at >= w.next {
			return true
		}
		first, end := spansOf(w.at, w.next)
		if w.left = l.pins.await(first, end, returned); w.left > 0 {
			return false
		}
	}
}

// make makes the part, if there is one. The store may have been cut meanwhile.
func (w *ramWait) make() {
	if w.at == w.next {
		return
	}
	l, op := w.lane, w.op
	if op.Err = Check(op, l.info.Load()); op.Err == nil {
		op.Err = l.ramStore.change(op, w.at, w.next)
	}
	l.pins.changed(spansOf(w.at, w.next))
}
