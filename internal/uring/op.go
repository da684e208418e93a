package uring

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Completion learns the result of an Op.
type Completion interface {
	// Complete is called once per queued Op, on the ring's thread, with what the
	// system call of the same name would have returned: a count of bytes, 0, or a
	// negated errno. A short count is not an error. The Op is free for reuse when
	// Complete is called.
	Complete(res int32)
}

// Op is one request. The caller embeds it in an object of its own, prepares it
// with one of the methods below and hands it to Ring.Queue. From then until its
// Complete it belongs to the ring: neither it, its buffer nor its iovecs may
// change or be freed. An Op is reusable but never copied while queued.
type Op struct {
	opcode  uint8
	fd      int32
	off     uint64
	length  uint32
	flags   uint32
	addr    unsafe.Pointer
	value   uint64 // takes the place of addr where the kernel wants a number there
	done    Completion
	next    *Op
	pending bool
}

// Read prepares pread(2) of len(b) bytes at byte off.
func (o *Op) Read(fd int, b []byte, off int64) {
	o.transfer(opRead, fd, unsafe.Pointer(unsafe.SliceData(b)), len(b), off, 0)
}

// Write prepares pwritev2(2) of b at byte off; flags are RWF_*, such as
// RWF_DSYNC.
func (o *Op) Write(fd int, b []byte, off int64, flags uint32) {
	o.transfer(opWrite, fd, unsafe.Pointer(unsafe.SliceData(b)), len(b), off, flags)
}

// Readv prepares preadv2(2) at byte off: one request for a transfer whose
// buffers are scattered; flags are RWF_*.
func (o *Op) Readv(fd int, iov []unix.Iovec, off int64, flags uint32) {
	o.transfer(opReadv, fd, unsafe.Pointer(unsafe.SliceData(iov)), len(iov), off, flags)
}

// Writev prepares pwritev2(2) at byte off; flags are RWF_*.
func (o *Op) Writev(fd int, iov []unix.Iovec, off int64, flags uint32) {
	o.transfer(opWritev, fd, unsafe.Pointer(unsafe.SliceData(iov)), len(iov), off, flags)
}

// Fsync prepares fsync(2), or fdatasync(2) when datasync is set. The kernel
// orders it after nothing: writes that it must cover have to be complete.
func (o *Op) Fsync(fd int, datasync bool) {
	var flags uint32
	if datasync {
		flags = fsyncDatasync
	}
	o.transfer(opFsync, fd, nil, 0, 0, flags)
}

// Fallocate prepares fallocate(2) of n bytes at byte off; mode is FALLOC_FL_*.
func (o *Op) Fallocate(fd int, mode uint32, off, n int64) {
	o.transfer(opFallocate, fd, nil, int(mode), off, 0)
	o.value = uint64(n)
}

// Pending reports whether the Op is queued or in the kernel's hands.
func (o *Op) Pending() bool { return o.pending }

func (o *Op) transfer(opcode uint8, fd int, addr unsafe.Pointer, length int, off int64, flags uint32) {
	if o.pending {
		panic("uring: preparing an Op that is still in flight")
	}
	o.opcode, o.fd, o.off, o.length, o.flags = opcode, int32(fd), uint64(off), uint32(length), flags
	o.addr, o.value = addr, 0
}

// encode writes the Op as a submission queue entry.
func (o *Op) encode(e *sqe, slot uint32) {
	*e = sqe{
		opcode: o.opcode, fd: o.fd, off: o.off, length: o.length, opFlags: o.flags,
		addr: uint64(uintptr(o.addr)) + o.value, userData: uint64(slot),
	}
}
