package backstore

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugeSize is the usual size of a transparent huge page.
const hugeSize = 2 << 20

// maxRipe is how many parts of a store may wait for their huge pages. Those beyond keep
// small ones.
const maxRipe = 4096

// collapser makes huge pages of the parts of a RAM store that are written from end to end,
// on a goroutine that lasts as long as there are some. To ask for huge pages when memory is first written would be
// faster, but then every write somewhere would take 2 MiB.
type collapser struct {
	bytes   []byte
	pages   bitmap
	skew    int64 // of the first multiple of hugeSize in memory
	ripe    chan int64
	running atomic.Bool // the goroutine
	ended   sync.WaitGroup
	over    atomic.Bool // the store closes, or the kernel has no MADV_COLLAPSE (since Linux 6.1)
}

func newCollapser(bytes []byte, pages bitmap) *collapser {
	c := &collapser{bytes: bytes, pages: pages, ripe: make(chan int64, maxRipe)}
	c.skew = int64(-uintptr(unsafe.Pointer(unsafe.SliceData(bytes))) & (hugeSize - 1))
	return c
}

// written is told of pages of [from, to) that were not there before. It does not wait.
func (c *collapser) written(from, to int64) {
	for at := (max(from-c.skew, 0))/hugeSize*hugeSize + c.skew; at < to; at += hugeSize {
		if c.over.Load() || !c.whole(at) {
			continue
		}
		select {
		case c.ripe <- at:
			if c.running.CompareAndSwap(false, true) {
				c.ended.Go(c.run)
			}
		default:
		}
	}
}

func (c *collapser) whole(at int64) bool {
	if at+hugeSize > int64(len(c.bytes)) {
		return false
	}
	first, end := pagesOf(at, hugeSize)
	in, n := c.pages.run(first, end)
	return in && n == end-first
}

func (c *collapser) run() {
	for {
		select {
		case at := <-c.ripe:
			c.collapse(at)
		default:
			c.running.Store(false)
			if len(c.ripe) == 0 || !c.running.CompareAndSwap(false, true) {
				return
			}
		}
	}
}

func (c *collapser) collapse(at int64) {
	if c.over.Load() || !c.whole(at) {
		return // what was discarded meanwhile is not to take memory again
	}
	if unix.Madvise(c.bytes[at:at+hugeSize], unix.MADV_COLLAPSE) == unix.EINVAL {
		c.over.Store(true)
	}
}

// close returns when the memory is not used any more. All lanes have been closed.
func (c *collapser) close() {
	c.over.Store(true)
	c.ended.Wait()
}
