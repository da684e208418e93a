package backstore

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// zeroChunk bounds one write of zeroes where the kernel cannot zero a range.
const zeroChunk = 256 << 10

// zeroPages returns zeroChunk bytes of zeroes, page aligned and write-protected.
// They are mapped once; the kernel lets them all share one page.
var zeroPages = sync.OnceValues(func() ([]byte, error) {
	b, err := unix.Mmap(-1, 0, zeroChunk, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of zeroes: %w", zeroChunk, err)
	}
	return b, nil
})
