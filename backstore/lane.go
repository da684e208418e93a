package backstore

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/backstore/internal/changes"
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
	await    evloop.Await
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
	count   *changes.Count
	expect  expectations
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
		l.count.Begin()
	}
}

func (l *volumeLane) rest(op *Op) {
	if op.Kind.Changes() {
		l.count.End()
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
	l.loop.Await(&st.await, l.expect.of(&st.call))
	if l.ring != nil && st.encode(l.fd) {
		l.ring.Queue(&st.sqe, st)
		l.ring.Hasten()
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
	l.loop.Answered(&op.lane.await)
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
	l.count.Remove()
}

// verb is a system call that a volume is made of.
type verb uint8

const (
	noCall     verb = iota // nothing to do
	readCall               // preadv2
	writeCall              // pwritev2
	syncCall               // fdatasync
	allocCall              // fallocate
	trimCall               // ioctl BLKDISCARD
	seekCall               // lseek, for the extent at off
	intentCall             // of the intent log: several system calls, which a worker makes
)

// ability is an optional feature of a file system or device. A call names the
// one it relies on; EOPNOTSUPP then means to go on without it for good.
type ability uint32

const (
	nowait    ability = 1 << iota // RWF_NOWAIT
	dsync                         // RWF_DSYNC
	punchHole                     // FALLOC_FL_PUNCH_HOLE
	zeroRange                     // FALLOC_FL_ZERO_RANGE
	seekHole                      // SEEK_HOLE
)

// call is one system call as data, so that the same call can run inline, on
// the ring or on a worker. Its result is what the kernel's ring would say: a
// count, or a negated errno.
type call struct {
	verb   verb
	needs  ability
	flags  uint32 // RWF_* of read and write, FALLOC_FL_* of alloc
	off, n int64  // n: bytes, for all but read and write
	data   []byte

	mapped bool // result of seek
	iov    unix.Iovec
	span   [2]uint64 // argument of BLKDISCARD
}

// durable reports whether the call ends with its data on stable media.
func (c *call) durable() bool { return c.verb == writeCall && c.flags&unix.RWF_DSYNC != 0 }

// trap enters the kernel: unix.RawSyscall6 where the call cannot block,
// unix.Syscall6 where it may.
type trap func(nr, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, errno unix.Errno)

// run makes the call on fd and repeats it while signals interrupt it. The call
// must be on the heap: the kernel gets pointers into it.
func (c *call) run(fd int, enter trap) int64 {
	if c.verb == seekCall {
		return c.seek(fd, enter)
	}
	for {
		r, errno := c.enter(uintptr(fd), enter)
		switch errno {
		case 0:
			return int64(r)
		case unix.EINTR:
			continue
		}
		return -int64(errno)
	}
}

func (c *call) enter(fd uintptr, enter trap) (r uintptr, errno unix.Errno) {
	switch c.verb {
	case readCall:
		r, errno = c.transfer(fd, enter, unix.SYS_PREAD64, unix.SYS_PREADV2)
	case writeCall:
		r, errno = c.transfer(fd, enter, unix.SYS_PWRITE64, unix.SYS_PWRITEV2)
	case syncCall:
		r, _, errno = enter(unix.SYS_FDATASYNC, fd, 0, 0, 0, 0, 0)
	case allocCall:
		r, _, errno = enter(unix.SYS_FALLOCATE, fd, uintptr(c.flags), uintptr(c.off), uintptr(c.n), 0, 0)
	case trimCall:
		c.span = [2]uint64{uint64(c.off), uint64(c.n)}
		r, _, errno = enter(unix.SYS_IOCTL, fd, unix.BLKDISCARD, uintptr(unsafe.Pointer(&c.span)), 0, 0, 0)
	default:
		errno = unix.EOPNOTSUPP
	}
	runtime.KeepAlive(c)
	return r, errno
}

// transfer takes the plain system call when there are no flags: it needs no
// iovec.
func (c *call) transfer(fd uintptr, enter trap, plain, vectored uintptr) (uintptr, unix.Errno) {
	base := unsafe.SliceData(c.data)
	if c.flags == 0 {
		r, _, errno := enter(plain, fd, uintptr(unsafe.Pointer(base)), uintptr(len(c.data)), uintptr(c.off), 0, 0)
		return r, errno
	}
	c.iov.Base, c.iov.Len = base, uint64(len(c.data))
	r, _, errno := enter(vectored, fd, uintptr(unsafe.Pointer(&c.iov)), 1, uintptr(c.off), 0, uintptr(c.flags))
	return r, errno
}

// seek finds whether there is data at off and how far that state reaches, at
// most n bytes. It moves the file position, which nothing else uses.
func (c *call) seek(fd int, enter trap) int64 {
	data := lseek(fd, c.off, unix.SEEK_DATA, enter)
	switch {
	case data == -int64(unix.ENXIO): // only a hole up to the end
		c.mapped = false
		return c.n
	case data < 0:
		return data
	case data > c.off:
		c.mapped = false
		return min(c.n, data-c.off)
	}
	hole := lseek(fd, c.off, unix.SEEK_HOLE, enter)
	if hole < 0 {
		return hole
	}
	c.mapped = true
	// Hole and data may have changed places in between; off itself was data.
	return min(c.n, max(hole-c.off, sector))
}

// lseek reports EINVAL, by which a file system or device says that it knows no
// holes, as EOPNOTSUPP.
func lseek(fd int, off int64, whence uintptr, enter trap) int64 {
	r, _, errno := enter(unix.SYS_LSEEK, uintptr(fd), uintptr(off), whence, 0, 0, 0)
	switch errno {
	case 0:
		return int64(r)
	case unix.EINVAL:
		return -int64(unix.EOPNOTSUPP)
	}
	return -int64(errno)
}
