package tcp

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/target/tcp/kernelqtcp"
)

// kernel is what the server has of lunar_qtcp, QTCP as a congestion control of the kernel,
// which somebody with the rights for that has loaded (kernelqtcp.Load).
type kernel struct {
	mu     sync.Mutex
	shares int    // descriptor of the map; 0: none yet
	inode  uint64 // of where it was pinned
}

// bpfObjGet is the command of bpf(2) that opens what is pinned.
const bpfObjGet = 7

// open returns the descriptor of the map. What has been loaded anew is opened anew; the map
// before stays open, for connections that have the congestion control before.
func (k *kernel) open(path string) (fd int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var pinned unix.Stat_t
	if err := unix.Stat(path, &pinned); err != nil {
		return 0, fmt.Errorf("%s: %w; tgtd qtcp load, as root, loads it", path, err)
	}
	if k.shares > 0 && k.inode == pinned.Ino {
		return k.shares, nil
	}
	fd, err = openPinned(path)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if found := mapOf(fd); found != kernelqtcp.SharesMap {
		unix.Close(fd)
		return 0, fmt.Errorf("%s: found %+v, expected the map that tgtd qtcp load pins, %+v", path, found, kernelqtcp.SharesMap)
	}
	k.shares, k.inode = fd, pinned.Ino
	return fd, nil
}

func openPinned(path string) (int, error) {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return 0, err
	}
	attr := struct {
		path      uint64
		fd, flags uint32
	}{path: uint64(uintptr(unsafe.Pointer(name)))}
	fd, _, errno := unix.RawSyscall(unix.SYS_BPF, bpfObjGet, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(name)
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// mapOf is what a descriptor is, as a map; zero: none. The kernel would read a value as long as
// the map's, whatever there is behind ours.
func mapOf(fd int) (m kernelqtcp.Map) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd)) // without it, none
	for line := range strings.Lines(string(text)) {
		for name, to := range map[string]*uint32{"map_type:": &m.Type, "key_size:": &m.Key, "value_size:": &m.Value} {
			if rest, found := strings.CutPrefix(line, name); found {
				n, _ := strconv.ParseUint(strings.TrimSpace(rest), 10, 32) // another kernel's words are none
				*to = uint32(n)
			}
		}
	}
	return m
}

// bpfMapUpdate is the command of bpf(2) that writes an entry of a map.
const bpfMapUpdate = 2

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
func (e *shareEntry) put(fd int) {
	e.socket = int32(fd)
	e.attr.key, e.attr.value = uint64(uintptr(unsafe.Pointer(&e.socket))), uint64(uintptr(unsafe.Pointer(&e.share)))
	_, _, _ = unix.RawSyscall(unix.SYS_BPF, bpfMapUpdate, uintptr(unsafe.Pointer(&e.attr)), unsafe.Sizeof(e.attr))
}

// take gives a connection lunar_qtcp, and returns what it had before and its entry of the map.
func (k *kernel) take(fd int) (before string, e *shareEntry, err error) {
	shares, err := k.open(kernelqtcp.Shares)
	if err != nil {
		return "", nil, err
	}
	before, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err == nil {
		err = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, kernelqtcp.Name)
	}
	if err != nil {
		return "", nil, fmt.Errorf("congestion control %s: %w", kernelqtcp.Name, err)
	}
	e = new(shareEntry)
	e.attr.fd = uint32(shares)
	return strings.TrimRight(before, "\x00"), e, nil
}
