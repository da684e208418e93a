package evloop

import (
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Order says who goes first on a loop's thread while the thread is what is scarce.
// Its methods are called on the thread, with the time on the clock of Monotonic.
type Order interface {
	// Begin follows the look that begins a pass, End the end of its last task.
	Begin(now int64)
	End(now int64)
	// Due reports whether whoever is being served has had a turn.
	Due(now int64) bool
	// Resumed tells that those who went ahead have been served: the turn of whom
	// they interrupted goes on.
	Resumed(now int64)
}

// Prior is a Poller that may go before others.
type Prior interface {
	Poller
	// Prior reports whether it is to be served before whoever is being served.
	Prior() bool
}

// order is the part of a loop that interrupts long passes: between two pieces of work
// it looks for descriptors that have become ready, and serves those that go first at
// once. The others wait for the next pass.
type order struct {
	by      Order   // nil: descriptors are served as they come
	waiting []int32 // descriptors with events for the next pass
	serving []int32 // the same of this pass
	next    int     // of serving
	looking bool
	ahead   bool // who is served now goes before others
	events  [maxPrior]unix.EpollEvent
}

// maxPrior bounds the descriptors that one look within a pass fetches, and of those
// that wait already, the ones that it asks.
const maxPrior = 64

// SetOrder makes the loop look within its passes for those who go first; nil ends it.
func (l *Loop) SetOrder(o Order) {
	l.assertThread("SetOrder")
	l.order.by = o
}

// Ordered reports whether there is an Order: work is cut so that none of it is long.
func (l *Loop) Ordered() bool { return l.order.by != nil }

// partBytes is what is received, copied or sent at once with an Order: about as long as
// a turn.
const partBytes = 64 << 10

// Part is how many bytes may be received, copied or sent at once, at least 64 KiB: then
// comes Yield, or the next pass.
func (l *Loop) Part() int {
	if l.order.by != nil {
		return partBytes
	}
	return math.MaxInt
}

// Ahead reports whether the caller is served before others: what it answers should
// leave at once. What its connection shares with others of the thread may be in use.
func (l *Loop) Ahead() bool { return l.order.ahead }

// Yield is called between two pieces of work, where it does no harm that those who go
// first are served before it returns. It costs a comparison without an Order, and a
// look at the clock with one.
func (l *Loop) Yield() {
	if l.order.by != nil && !l.order.looking {
		l.yield()
	}
}

func (l *Loop) yield() {
	o := &l.order
	if !o.by.Due(Monotonic()) {
		return
	}
	o.looking = true
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.poll.fd), uintptr(unsafe.Pointer(&o.events)), maxPrior, 0, 0, 0)
	late := o.serving[o.next:]
	l.serveAhead(late[:min(len(late), maxPrior)])
	known := len(o.waiting)
	l.enlist(o.events[:fetched(n, errno)])
	l.serveAhead(o.waiting[:min(known, maxPrior)])
	l.serveAhead(o.waiting[known:])
	l.lookAhead()
	o.looking = false
	if o.by != nil {
		o.by.Resumed(Monotonic())
	}
}

// enlist notes events of descriptors that are served later.
func (l *Loop) enlist(events []unix.EpollEvent) {
	for i := range events {
		e := &events[i]
		s := &l.poll.slots[e.Fd]
		if s.generation != e.Pad || s.poller == nil {
			continue
		}
		if s.events == 0 {
			l.order.waiting = append(l.order.waiting, e.Fd)
		}
		s.events |= e.Events
	}
}

// serveAhead serves those that go first.
func (l *Loop) serveAhead(descriptors []int32) {
	for _, fd := range descriptors {
		s := &l.poll.slots[fd]
		if p, ok := s.poller.(Prior); ok && s.events != 0 && p.Prior() {
			l.order.ahead = true
			l.serve(fd)
			l.order.ahead = false
		}
	}
}

// serve tells a Poller what was noted for it.
func (l *Loop) serve(fd int32) {
	s := &l.poll.slots[fd]
	if events := s.events; events != 0 && s.poller != nil {
		s.events = 0
		s.poller.Ready(events)
	}
}

// dispatch tells the Pollers of the first n fetched events, and of those that wait
// since the pass before.
func (l *Loop) dispatch(n int) (work int) {
	o := &l.order
	if o.by == nil && len(o.waiting) == 0 {
		return l.poll.dispatch(n)
	}
	l.enlist(l.poll.events[:n])
	o.serving, o.waiting = o.waiting, o.serving[:0]
	o.looking, o.next = true, 0
	l.serveAhead(o.serving)
	o.looking = false
	for o.next < len(o.serving) {
		o.next++
		l.serve(o.serving[o.next-1])
		l.Yield()
	}
	return len(o.serving)
}
