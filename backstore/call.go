package backstore

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
