package tcp

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/target/tcp/kernelqtcp"
)

// kernel is what the server has of lunar_qtcp, QTCP as a congestion control of the kernel,
// which somebody with the rights for that has loaded (kernelqtcp.Load).
type kernel struct {
	once   sync.Once
	shares int   // descriptor of the map
	err    error // why it is of no use
}

// Commands of bpf(2).
const (
	bpfMapUpdate = 2
	bpfObjGet    = 7
)

// open opens the map, once.
func (k *kernel) open() error {
	k.once.Do(func() {
		path, err := unix.BytePtrFromString(kernelqtcp.Shares)
		if err != nil {
			k.err = err
			return
		}
		attr := struct {
			path      uint64
			fd, flags uint32
		}{path: uint64(uintptr(unsafe.Pointer(path)))}
		fd, _, errno := unix.RawSyscall(unix.SYS_BPF, bpfObjGet, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		runtime.KeepAlive(path)
		if errno != 0 {
			k.err = fmt.Errorf("%s: %w; tgtd qtcp load, as root, loads it", kernelqtcp.Shares, errno)
			return
		}
		k.shares = int(fd)
	})
	return k.err
}

// shareEntry is an entry of the map on its way to the kernel. It is part of a governor, since
// memory whose address is in another structure must not move.
type shareEntry struct {
	attr struct {
		fd, _             uint32
		key, value, flags uint64
	}
	socket int32
	share  kernelqtcp.Share
}

// put says what a connection should get. It neither allocates nor blocks; a share that
// cannot be told leaves the one before.
func (e *shareEntry) put(k *kernel, fd int) {
	e.socket, e.attr.fd = int32(fd), uint32(k.shares)
	e.attr.key, e.attr.value = uint64(uintptr(unsafe.Pointer(&e.socket))), uint64(uintptr(unsafe.Pointer(&e.share)))
	_, _, _ = unix.RawSyscall(unix.SYS_BPF, bpfMapUpdate, uintptr(unsafe.Pointer(&e.attr)), unsafe.Sizeof(e.attr))
}

// take gives a connection lunar_qtcp, and returns what it had before.
func (k *kernel) take(fd int) (before string, err error) {
	if err := k.open(); err != nil {
		return "", err
	}
	before, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err == nil {
		err = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, kernelqtcp.Name)
	}
	if err != nil {
		return "", fmt.Errorf("congestion control %s: %w", kernelqtcp.Name, err)
	}
	return strings.TrimRight(before, "\x00"), nil
}
