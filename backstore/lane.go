package backstore

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/internal/invariants"
	"lunar/internal/quiesce"
	"lunar/internal/uring"
)

// laneState is what a volume's lane keeps of an Op under way. It is the ring's
// completion and the workers' job, so that neither needs memory of its own.
type laneState struct {
	op       *Op
	lane     *volumeLane
	era      quiesce.Era
	call     call  // the current one
	done     int64 // bytes of the op that are finished
	settling bool  // the bytes are done, the flush that makes them stable is not
	result   int64 // of a call that a worker made
	sqe      uring.Op
}

// volumeLane is one event thread's access to a volume. An op is a sequence of
// calls, usually one; each is made inline, by the ring or by a worker, and
// volume.advance decides what follows.
type volumeLane struct {
	*volume
	loop    *evloop.Loop
	ring    *uring.Ring // nil without io_uring
	workers *evloop.Workers
	running int
	counter quiesce.Counter // counts what is running
	tally   *tally
}

// TryNow implements Lane.
func (l *volumeLane) TryNow(op *Op) bool {
	if l.begin(op) {
		return true
	}
	switch {
	case l.memory && l.brief(op):
		l.finish(op)
		return true
	case op.Kind == Read && !l.direct && l.has(nowait):
		return l.fromPageCache(op)
	}
	return false
}

// brief reports whether op is done in the time that a thread may stand still.
// A transfer is bounded by its Data, releasing and zeroing by nothing.
func (l *volumeLane) brief(op *Op) bool {
	if op.Atomic || op.Kind == Wipe {
		return false
	}
	return op.Kind != Discard && op.Kind != WriteZeroes || op.Len <= inlineSpan
}

// finish makes all calls of op inline. A page of a memory file system that was
// swapped out is the one thing it can still wait for.
func (l *volumeLane) finish(op *Op) {
	l.disturb(op)
	for !l.advance(op, op.lane.call.run(l.fd, unix.RawSyscall6)) {
	}
	l.rest(op)
}

// disturb comes before the calls of op, rest after them.
func (l *volumeLane) disturb(op *Op) {
	if op.Kind.Changes() {
		l.tallies.begin(l.tally)
	}
}

func (l *volumeLane) rest(op *Op) {
	if op.Kind.Changes() {
		l.tally.ended.Add(1)
	}
}

// fromPageCache reads what is cached, or nothing: if part of it is missing the
// device must be waited for anyhow.
func (l *volumeLane) fromPageCache(op *Op) bool {
	c := &op.lane.call
	c.flags = unix.RWF_NOWAIT
	n := c.run(l.fd, unix.RawSyscall6)
	if n == -int64(unix.EOPNOTSUPP) {
		l.forgo(nowait)
	}
	return n == int64(len(c.data))
}

// Submit implements Lane.
func (l *volumeLane) Submit(op *Op) bool {
	if invariants.Enabled {
		invariants.Assert(l.loop.OnThread(), "backstore: Submit on the loop's thread")
		invariants.Assert(!l.direct || aligned(op.Data), "backstore: direct I/O from page-aligned memory")
	}
	if l.begin(op) {
		return true
	}
	if l.memory && l.brief(op) {
		l.finish(op)
		return true
	}
	op.lane.op, op.lane.lane, op.lane.era = op, l, l.counter.Enter()
	l.running++
	l.disturb(op)
	l.start(op)
	return false
}

func aligned(b []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%pageSize == 0 }

// start makes the current call of op, without waiting for it.
func (l *volumeLane) start(op *Op) {
	st := &op.lane
	if l.ring != nil && st.encode(l.fd) {
		l.ring.Queue(&st.sqe, st)
		return
	}
	l.workers.Submit(l.loop, st)
}

// encode prepares the current call for the ring and reports whether the ring
// has such a request.
func (st *laneState) encode(fd int) bool {
	c := &st.call
	switch c.verb {
	case readCall:
		st.sqe.Read(fd, c.data, c.off)
	case writeCall:
		st.sqe.Write(fd, c.data, c.off, c.flags)
	case syncCall:
		st.sqe.Fsync(fd, true)
	case allocCall:
		st.sqe.Fallocate(fd, c.flags, c.off, c.n)
	default:
		return false
	}
	return true
}

// Complete implements uring.Completion. What the ring could not wait for, or was
// interrupted in, goes to a worker, which can. So does what the kernel cancelled:
// that is not asked for here, but happens when signals keep it from starting the
// thread that is to wait.
func (st *laneState) Complete(res int32) {
	if res < 0 && undone(unix.Errno(-res)) {
		st.lane.workers.Submit(st.lane.loop, st)
		return
	}
	st.lane.settle(st.op, int64(res))
}

// undone reports whether the ring gave up without having tried all it could.
func undone(errno unix.Errno) bool {
	return errno == unix.EAGAIN || errno == unix.EINTR || errno == unix.ECANCELED
}

// retries and retryPause bound how long a worker insists on a call that fails
// with EAGAIN, which the kernel returns when it is short of some resource.
const (
	retries    = 100
	retryPause = 10 * time.Millisecond
)

// Do implements evloop.Job.
func (st *laneState) Do() {
	if st.call.verb == intentCall {
		st.result = st.lane.doIntent(st.op)
		return
	}
	for range retries {
		st.result = st.call.run(st.lane.fd, unix.Syscall6)
		if st.result != -int64(unix.EAGAIN) {
			return
		}
		time.Sleep(retryPause)
	}
}

// Run implements evloop.Job.
func (st *laneState) Run() { st.lane.settle(st.op, st.result) }

// settle goes on with op after a call that was waited for.
func (l *volumeLane) settle(op *Op, res int64) {
	if !l.advance(op, res) {
		l.start(op)
		return
	}
	l.rest(op)
	l.running--
	l.counter.Exit(op.lane.era)
	op.Done(op)
}

// Close implements Lane.
func (l *volumeLane) Close() {
	if l.running > 0 {
		panic(fmt.Sprintf("backstore: lane of %s closed with %d ops running", l.path, l.running))
	}
	l.counters.Remove(&l.counter)
	l.tallies.remove(l.tally)
}
