package arena

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Undumped leaves mapped memory, whole pages, out of core dumps: it holds initiators'
// data. Kernels before 3.4, which cannot, are older than anything that runs here.
func Undumped(mem []byte) { _ = unix.Madvise(mem, unix.MADV_DONTDUMP) }

// Map maps n bytes of zeroes that are to lie on the kernel's node, -1 for any, and
// that take no memory until they are touched: for working memory of one thread.
// unix.Munmap gives them back.
func Map(n, node int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("arena: map %d bytes: %w", n, err)
	}
	Undumped(mem)
	if node < 0 {
		return mem, nil
	}
	if _, err := Bind(mem, node); err != nil { // where binding is forbidden, the thread that touches it decides
		return nil, errors.Join(err, unix.Munmap(mem))
	}
	return mem, nil
}
