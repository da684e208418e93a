package backstore

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// geometry is what a block device says of itself, in bytes.
type geometry struct {
	size, logical, physical int64
	readOnly                bool
}

func readGeometry(fd int) (g geometry, err error) {
	var size uint64
	var logical, physical, readOnly uint32
	for _, q := range []struct {
		name    string
		request uint
		into    unsafe.Pointer
	}{
		{"BLKGETSIZE64", unix.BLKGETSIZE64, unsafe.Pointer(&size)},
		{"BLKSSZGET", unix.BLKSSZGET, unsafe.Pointer(&logical)},
		{"BLKPBSZGET", unix.BLKPBSZGET, unsafe.Pointer(&physical)},
		{"BLKROGET", unix.BLKROGET, unsafe.Pointer(&readOnly)},
	} {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(q.request), uintptr(q.into)); errno != 0 {
			return g, fmt.Errorf("%s: %w", q.name, errno)
		}
	}
	return geometry{int64(size), int64(logical), int64(physical), readOnly != 0}, nil
}
