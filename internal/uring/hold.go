package uring

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	registerFiles   = 2
	unregisterFiles = 3
)

// Hold makes the ring keep the open file behind fd, and with it a flock(2) on
// it, until all that the ring has had under way has ended, in place of the file
// that it may have held before. The kernel ends the requests of a process that
// was killed after it is gone: whoever gets the lock knows that none of them
// changes memory or a file any more. It belongs to the ring's thread.
func (r *Ring) Hold(fd int) error {
	word := int32(fd)
	errno := register(r.fd, registerFiles, unsafe.Pointer(&word), 1)
	if errno == unix.EBUSY {
		if errno = register(r.fd, unregisterFiles, nil, 0); errno == 0 {
			errno = register(r.fd, registerFiles, unsafe.Pointer(&word), 1)
		}
	}
	if errno != 0 {
		return fmt.Errorf("io_uring: hold a file: %w", errno)
	}
	return nil
}
