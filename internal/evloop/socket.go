package evloop

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls below are for non-blocking descriptors on the loop's thread: they
// neither allocate nor tell the Go scheduler. They return the errno itself, 0 for
// success, and retry EINTR.

// Read is read(2). 0 bytes without an errno is the end of the stream, or of b.
func Read(fd int, b []byte) (int, unix.Errno) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		if errno != unix.EINTR {
			return count(n, errno)
		}
	}
}

// Readv is readv(2) into at most 1024 buffers.
func Readv(fd int, iov []unix.Iovec) (int, unix.Errno) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(iov))), uintptr(len(iov)))
		if errno != unix.EINTR {
			return count(n, errno)
		}
	}
}

// Sendmsg is sendmsg(2) of at most 1024 buffers with MSG_NOSIGNAL and
// MSG_DONTWAIT besides flags (MSG_MORE, MSG_ZEROCOPY). It may send less than all.
func Sendmsg(fd int, iov []unix.Iovec, flags int) (int, unix.Errno) {
	msg := unix.Msghdr{Iov: unsafe.SliceData(iov)}
	msg.SetIovlen(len(iov))
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)),
			uintptr(flags|unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT))
		if errno != unix.EINTR {
			return count(n, errno)
		}
	}
}

func count(n uintptr, errno unix.Errno) (int, unix.Errno) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// SetNonblock makes fd non-blocking.
func SetNonblock(fd int) error { return unix.SetNonblock(fd, true) }

// SetNoDelay turns Nagle's algorithm off: a pass already gathers its responses.
func SetNoDelay(fd int) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
}

// SetLeast has a socket become readable when so many bytes are there, or no more have room.
func SetLeast(fd, bytes int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes)
}
