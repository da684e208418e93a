// Package waits records which functions wait for the end of which tasks. Task
// management, PREEMPT AND ABORT, ORDERED commands and atomic writes wait for tasks of
// others, all of them by a Waiter. So the rule against circles of waiters stands in one
// place (Waiter.Ends), and the tests that explore all orders of events (target/scsi) use
// the code of the server.
package waits

import "sync/atomic"

// Waiter goes on when all that it counts has ended. All methods may be called by any
// goroutine. A nil Waiter waits for nothing.
type Waiter struct {
	left   atomic.Int32
	passed func()
}

// New returns a Waiter that counts its maker, who calls Done when everything has been
// counted: then, or after the last of it, passed is called, on whatever goroutine that
// is.
func New(passed func()) *Waiter {
	w := &Waiter{passed: passed}
	w.left.Store(1)
	return w
}

// Add counts something that will call Done.
func (w *Waiter) Add() {
	if w != nil {
		w.left.Add(1)
	}
}

// Done counts down.
func (w *Waiter) Done() {
	if w != nil && w.left.Add(-1) == 0 {
		w.passed()
	}
}

// List are those who wait for the end of a task. It belongs to the task's thread.
type List []*Waiter

// Awaits has w wait for the end of the task with the list, which w leaves alone.
func (w *Waiter) Awaits(l *List) {
	if w != nil {
		w.left.Add(1)
		*l = append(*l, w)
	}
}

// Ends has w wait for the end of the task with the list, which w has ended. awaits says
// that the task does nothing but wait for the end of tasks that it has ended itself: it
// is not waited for.
//
// INVARIANT: what waits for the end of tasks that it has ended is never waited for by its
// like, so that no two wait for each other. One that will only do so later is waited for:
// it begins after those who wait for it have begun, and finds them awaiting. An ORDERED command and an atomic write may
// wait for it: they wait for what came before them, or for reads, which wait for
// nobody's end.
func (w *Waiter) Ends(l *List, awaits bool) {
	if !awaits {
		w.Awaits(l)
	}
}

// Ended tells those who wait for the task, once.
func (l List) Ended() {
	for _, w := range l {
		w.Done()
	}
}
