package arena

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/internal/bytesize"
)

// hugeSize is the usual size of a transparent huge page. Where the machine's are
// larger, there are none for files that are mapped here.
const hugeSize = 2 << 20

// MapFile maps the first n bytes of a file in a memory file system, shared with
// whoever else maps it, at a multiple of the huge page size, which the kernel does
// not see to: without that, it could use none. Unmap gives the mapping back.
func MapFile(fd, n, protection int) ([]byte, error) {
	const anywhere = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	room := uintptr(n) + hugeSize
	base, err := unix.MmapPtr(-1, 0, nil, room, unix.PROT_NONE, anywhere)
	if err != nil {
		return nil, fmt.Errorf("room for %s: %w", bytesize.Text(int64(n)), err)
	}
	before := -uintptr(base) & (hugeSize - 1)
	at := unsafe.Add(base, before)
	if _, err = unix.MmapPtr(fd, 0, at, uintptr(n), protection, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		release(base, room)
		if at, err = unix.MmapPtr(fd, 0, nil, uintptr(n), protection, unix.MAP_SHARED); err != nil { // hugetlbfs with larger pages
			return nil, err
		}
		mem := unsafe.Slice((*byte)(at), n)
		Undumped(mem)
		return mem, nil
	}
	mem := unsafe.Slice((*byte)(at), n)
	Undumped(mem)
	whole := (uintptr(n) + pageMask) &^ pageMask
	release(base, before)
	release(unsafe.Add(at, whole), room-before-whole)
	return mem, nil
}

var pageMask = uintptr(unix.Getpagesize() - 1)

// release gives a part of the reservation back that nothing was mapped to. If that
// fails, some addresses are lost, and no memory.
func release(at unsafe.Pointer, n uintptr) {
	if n > 0 {
		_ = unix.MunmapPtr(at, n)
	}
}

// Unmap undoes MapFile.
func Unmap(mem []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)))
}

// Collapse asks for mem, which exists, to be made of huge pages, with the given
// number of threads. For shared memory the kernel gives none by itself on most
// machines, but on request (MADV_COLLAPSE, since Linux 6.1). What is in the memory
// stays. It ends after the time limit, whatever is left, and tells whether there are
// some.
func Collapse(mem []byte, threads int, limit time.Duration) Pages {
	began := time.Now()
	var next, got atomic.Int64
	var over atomic.Bool
	run := func() {
		for !over.Load() && time.Since(began) < limit {
			first := int(next.Add(1)-1) * chunk
			if first >= len(mem) {
				return
			}
			some, none := collapse(mem[first:min(first+chunk, len(mem))])
			if some {
				got.Add(1)
			}
			if none {
				over.Store(true)
			}
		}
	}
	var group sync.WaitGroup
	for range min(threads, (len(mem)+chunk-1)/chunk) - 1 {
		group.Go(run)
	}
	run()
	group.Wait()
	if got.Load() == 0 {
		return SmallPages
	}
	return TransparentPages
}

// collapse does a part of mem: at once, or, where something in it has to stay as it
// is, piece by piece. some says that there are huge pages, none that the machine has
// no more.
func collapse(part []byte) (some, none bool) {
	switch unix.Madvise(part, unix.MADV_COLLAPSE) {
	case nil:
		return len(part) >= hugeSize, false
	case unix.ENOMEM:
		return false, true
	}
	for first := 0; first+hugeSize <= len(part); first += hugeSize {
		switch unix.Madvise(part[first:first+hugeSize], unix.MADV_COLLAPSE) {
		case nil:
			some = true
		case unix.ENOMEM:
			return some, true
		}
	}
	return some, false
}
