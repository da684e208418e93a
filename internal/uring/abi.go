package uring

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's interface, from include/uapi/linux/io_uring.h.
const (
	setupClamp        = 1 << 4
	setupDisabled     = 1 << 6
	setupSubmitAll    = 1 << 7
	setupCoopTaskrun  = 1 << 8
	setupTaskrunFlag  = 1 << 9
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13

	featSingleMmap   = 1 << 0
	featNoDrop       = 1 << 1
	featSubmitStable = 1 << 2

	enterGetEvents = 1 << 0

	registerEventFD     = 4
	registerEnableRings = 12

	sqTaskrun = 1 << 2

	cqEventFDDisabled = 1 << 0

	offSQRing = 0
	offSQEs   = 0x10000000

	opReadv     = 1
	opWritev    = 2
	opFsync     = 3
	opFallocate = 17
	opRead      = 22
	opWrite     = 23

	fsyncDatasync = 1 << 0
)

// sqe is struct io_uring_sqe.
type sqe struct {
	opcode   uint8
	flags    uint8
	ioprio   uint16
	fd       int32
	off      uint64
	addr     uint64
	length   uint32
	opFlags  uint32
	userData uint64
	_        [3]uint64
}

// cqe is struct io_uring_cqe.
type cqe struct {
	userData uint64
	res      int32
	flags    uint32
}

// sqOffsets is struct io_sqring_offsets.
type sqOffsets struct {
	head, tail, mask, entries, flags, dropped, array, _ uint32
	_                                                   uint64
}

// cqOffsets is struct io_cqring_offsets.
type cqOffsets struct {
	head, tail, mask, entries, overflow, cqes, flags, _ uint32
	_                                                   uint64
}

// params is struct io_uring_params.
type params struct {
	sqEntries, cqEntries, flags uint32
	sqThreadCPU, sqThreadIdle   uint32
	features, wqFD              uint32
	_                           [3]uint32
	sq                          sqOffsets
	cq                          cqOffsets
}

// The kernel rejects or misreads any other size.
var (
	_ [64]byte  = [unsafe.Sizeof(sqe{})]byte{}
	_ [16]byte  = [unsafe.Sizeof(cqe{})]byte{}
	_ [120]byte = [unsafe.Sizeof(params{})]byte{}
)

func setup(entries uint32, p *params) (int, unix.Errno) {
	fd, _, errno := unix.RawSyscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(p)), 0)
	return int(fd), errno
}

func register(fd int, opcode uintptr, arg unsafe.Pointer, n uintptr) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_REGISTER, uintptr(fd), opcode, uintptr(arg), n, 0, 0)
	return errno
}

// enter submits and, because deferred completions run only on request, always
// asks for events. It returns how many entries the kernel took.
func enter(fd int, submit uint32) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(fd), uintptr(submit), 0, enterGetEvents, 0, 0)
	return int(n), errno
}

// await blocks until a completion is posted and lets the Go scheduler run others
// meanwhile.
func await(fd int) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(fd), 0, 1, enterGetEvents, 0, 0)
	return errno
}
