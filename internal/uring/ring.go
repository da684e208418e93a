// Package uring is io_uring over raw system calls, as far as block backstores
// need it: reads, writes, flushes and space allocation on files.
//
// A Ring belongs to one thread, the one that called Enable. Requests are Ops that
// the caller preallocates; queueing, submitting and reaping allocate nothing.
// Buffers are expected off-heap (package buf); Go never moves heap memory either,
// and a queued Op keeps its buffer alive.
package uring

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Ring is one submission and completion queue pair. Ops that find it full wait
// in an intrusive FIFO, bounded only by how many Ops the callers own, and go out
// with a later Submit.
type Ring struct {
	fd     int
	wake   int // eventfd
	flags  uint32
	sqMem  []byte
	sqeMem []byte

	sqTail, sqFlags *atomic.Uint32
	sqMask          uint32
	sqes            []sqe
	queued          uint32 // encoded, not yet taken by the kernel

	cqHead, cqTail, cqFlags *atomic.Uint32
	cqMask                  uint32
	cqes                    []cqe

	// slots maps user data to the Op in flight. There are as many as completion
	// entries, so the completion queue cannot overflow.
	slots []*Op
	idle  []uint32 // free slots, last-in first-out

	first, last *Op // waiting for a slot
	inFlight    int // queued or in the kernel's hands, without the FIFO
}

// WakeFD returns an eventfd for edge-triggered polling: there is an edge after
// Ready became true. (The ring's own descriptor would not do: the kernel does not
// tell those who poll it of deferred work.) It is never read; a 64-bit counter
// does not overflow.
func (r *Ring) WakeFD() int { return r.wake }

// Wake says whether completions are to signal WakeFD, as they do until Wake is called.
// While the thread looks at Ready by itself, a signal for each completion only costs
// time. After Wake(true) there is no signal for what is Ready by then.
//
// Only a ring that is Deferred leaves signals out: in others nothing orders the
// kernel's look at the wish after its completion.
func (r *Ring) Wake(wanted bool) {
	if !r.Deferred() {
		return
	}
	var flags uint32
	if !wanted {
		flags = cqEventFDDisabled
	}
	r.cqFlags.Store(flags)
}

// InFlight returns how many Ops are not complete, those waiting in the FIFO not
// counted.
func (r *Ring) InFlight() int { return r.inFlight }

// Unsubmitted reports whether Submit has work: Ops that the kernel did not take
// yet, or Ops in the FIFO that now have a slot.
func (r *Ring) Unsubmitted() bool {
	return r.queued > 0 || r.first != nil && len(r.idle) > 0
}

// Queue hands over a prepared Op; done hears of its end, after a later Submit
// and Reap. Queue never calls done itself and never enters the kernel.
func (r *Ring) Queue(o *Op, done Completion) {
	if o.pending {
		panic("uring: queueing an Op that is still in flight")
	}
	o.done, o.pending = done, true
	if r.first != nil || !r.place(o) {
		r.wait(o)
	}
}

// wait appends o to the FIFO.
func (r *Ring) wait(o *Op) {
	if r.last == nil {
		r.first = o
	} else {
		r.last.next = o
	}
	r.last = o
}

// place gives o a slot and a submission entry and reports whether there was one
// of each.
func (r *Ring) place(o *Op) bool {
	if len(r.idle) == 0 || r.queued == uint32(len(r.sqes)) {
		return false
	}
	slot := r.idle[len(r.idle)-1]
	r.idle = r.idle[:len(r.idle)-1]
	r.slots[slot] = o
	tail := r.sqTail.Load()
	o.encode(&r.sqes[tail&r.sqMask], slot)
	r.sqTail.Store(tail + 1)
	r.queued++
	r.inFlight++
	return true
}

// placeWaiting moves Ops from the FIFO to the submission queue while they fit.
func (r *Ring) placeWaiting() {
	for o := r.first; o != nil && r.place(o); o = r.first {
		r.first, o.next = o.next, nil
		if r.first == nil {
			r.last = nil
		}
	}
}

// Submit gives the kernel everything that is queued and fits, usually with one
// system call. It never waits for a completion. EAGAIN and EBUSY mean that the
// kernel is short of memory or wants completions reaped first: the rest stays
// queued for the next Submit.
func (r *Ring) Submit() error {
	for r.placeWaiting(); r.queued > 0; r.placeWaiting() {
		n, errno := enter(r.fd, r.queued)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return fmt.Errorf("io_uring: submit %d requests: %w", r.queued, errno)
		}
		r.queued -= uint32(n)
	}
	return nil
}

// Hasten is Submit if what is queued is a quarter of what is under way: a device that
// has little to do need not wait for the rest of what the thread will ask for. The parts
// grow with what is under way, so that a burst takes few system calls. An error is left
// for Submit, which finds it again.
func (r *Ring) Hasten() {
	if 4*int(r.queued) >= r.inFlight-int(r.queued) {
		_ = r.Submit()
	}
}

// Ready reports whether Reap has work: completions, or deferred work of the kernel
// that yields some.
func (r *Ring) Ready() bool {
	return r.cqHead.Load() != r.cqTail.Load() || r.deferred()
}

// deferred reports whether the kernel waits for this thread to run task work.
func (r *Ring) deferred() bool { return r.sqFlags.Load()&sqTaskrun != 0 }

// Reap lets the kernel do its deferred work, calls Complete for every completion
// posted by then and returns their number. Completions may queue further Ops.
// The system call that it may need also submits what is queued.
// The kernel bounds the work of one call, so Ready may be true afterwards.
func (r *Ring) Reap() (int, error) {
	if r.deferred() {
		if errno := r.undefer(); errno != 0 && errno != unix.EINTR {
			return 0, fmt.Errorf("io_uring: get events: %w", errno)
		}
	}
	head, tail := r.cqHead.Load(), r.cqTail.Load()
	for i := head; i != tail; i++ {
		e := r.cqes[i&r.cqMask]
		r.cqHead.Store(i + 1)
		r.complete(uint32(e.userData), e.res)
	}
	return int(tail - head), nil
}

// undefer submits what is queued and has the deferred work done. The kernel skips the
// second when it did not take all of the first, for which Submit tells the reason.
func (r *Ring) undefer() unix.Errno {
	if r.queued > 0 {
		if n, errno := enter(r.fd, r.queued); errno == 0 {
			r.queued -= uint32(n)
		}
		if r.queued == 0 {
			return 0
		}
	}
	_, errno := enter(r.fd, 0)
	return errno
}

func (r *Ring) complete(slot uint32, res int32) {
	o := r.slots[slot]
	r.slots[slot] = nil
	r.idle = append(r.idle, slot)
	r.inFlight--
	done := o.done
	o.done, o.addr, o.pending = nil, nil, false
	done.Complete(res)
}

// Drain submits, waits for and completes every Op, those in the FIFO and those
// that completions queue included. It blocks the thread.
func (r *Ring) Drain() error {
	for r.inFlight > 0 || r.first != nil {
		if err := r.Submit(); err != nil && !Transient(err) {
			return err
		}
		if r.inFlight == int(r.queued) {
			continue // the kernel holds nothing that could complete
		}
		if errno := await(r.fd); errno != 0 && errno != unix.EINTR {
			return fmt.Errorf("io_uring: wait for %d requests: %w", r.inFlight, errno)
		}
		if _, err := r.Reap(); err != nil && !Transient(err) {
			return err
		}
	}
	return nil
}

// Transient reports whether an error of Submit or Reap goes away by itself.
func Transient(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EBUSY)
}
