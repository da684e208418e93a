package load

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapBytes returns zeroed off-heap memory; unmapBytes gives it back.
func mapBytes(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	return b, nil
}

func unmapBytes(b []byte) error {
	if b == nil {
		return nil
	}
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("unmap: %w", err)
	}
	return nil
}

// at returns the address n bytes into a vector, which must be longer than n.
func at(v *unix.Iovec, n int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(v.Base), n)) }
