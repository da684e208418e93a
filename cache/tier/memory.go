package tier

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/internal/arena"
)

// pageSize is the alignment of what goes to the store below, in bytes.
const pageSize = 4096

// mapMemory returns n bytes of zeroes that take no memory until touched.
func (c *Cache) mapMemory(n int) ([]byte, error) {
	b, err := arena.Map(n, -1)
	if err == nil {
		c.mapped = append(c.mapped, b)
	}
	return b, err
}

func (c *Cache) unmap() error {
	var errs []error
	for _, b := range c.mapped {
		errs = append(errs, unix.Munmap(b))
	}
	c.mapped = nil
	return errors.Join(errs...)
}

// nodeMemory returns the memory for the blocks on a node.
func (c *Cache) nodeMemory(node, size int) ([]byte, error) {
	if c.config.Segment != nil {
		return c.config.Segment.Area(dataArea(node)), nil
	}
	if c.config.Arenas == nil {
		return c.mapMemory(size)
	}
	if len(c.config.Arenas) != c.config.Layout.Nodes {
		return nil, fmt.Errorf("%d arenas: expected one for each of %d nodes", len(c.config.Arenas), c.config.Layout.Nodes)
	}
	mem := c.config.Arenas[node].Bytes()
	if len(mem) < size || !aligned(mem) {
		return nil, fmt.Errorf("arena of node %d has %d bytes at %p: expected %d, page aligned", node, len(mem), unsafe.SliceData(mem), size)
	}
	return mem[:size], nil
}

func aligned(b []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%pageSize == 0 }
