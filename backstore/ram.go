package backstore

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"lunar/internal/arena"
	"lunar/internal/evloop"
	"lunar/internal/intent"
	"lunar/internal/memcopy"
	"lunar/internal/quiesce"
)

// mapSpan bounds how far one Map of a RAM store looks, in bytes.
const mapSpan = 4 << 30

// ramStore keeps a volume in anonymous memory. Only pages that were written
// take memory; the bitmap of those is itself sparse.
//
// Threads read and write without locks. Where transfers overlap the result is
// any mix of their bytes, as on a disk; but what is lent stays as it is, or the data
// of a response would not fit its digest. INVARIANT: a page that holds data has
// its bit set, because writers store and then set, while releasing clears and
// then drops.
type ramStore struct {
	info  atomic.Pointer[Info]
	bytes []byte // as many as there may be; those behind the size cannot be touched
	pages bitmap // one bit per page that may differ from zeroes, or was provisioned
	pins  pins
	huge  *collapser

	resizing sync.Mutex
	counters quiesce.Counters // of the lanes
	users    atomic.Int32     // of the memory: the store until Close, and lanes until they are closed and nothing is lent
}

// ramGrowth is how many times as large as at first a RAM store may become: so much
// address space is kept for it, which costs nothing.
const ramGrowth = 16

// NewRAM returns a Store of size bytes in memory, zeroed and sparse: memory is
// taken as it is written, page by page, and becomes huge pages where all of one is
// written and the system has them. Discard gives it back, of a part of a huge page when
// the system is short of memory. blockBytes is the block size of the logical unit in
// bytes; 0 is 512. Its lanes lend (Lender). An op ends inside TryNow, unless it changes
// what is lent, or meets one of its lane that waits for that. Ops of different threads
// on the same bytes may mix, as on a disk. All is lost with the process, flushed or not.
func NewRAM(size int64, blockBytes int) (Store, error) {
	if err := checkVolatile(size, blockBytes); err != nil {
		return nil, err
	}
	most := min(size, math.MaxInt64/ramGrowth) * ramGrowth
	bytes, err := unix.Mmap(-1, 0, int(most), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space: %w", most, err)
	}
	arena.Undumped(bytes)
	bits, err := newBitmap((most + pageSize - 1) / pageSize)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", err, unix.Munmap(bytes))
	}
	s := &ramStore{bytes: bytes, pages: bits}
	s.users.Store(1)
	if err := errors.Join(s.pins.open(most), s.open(0, size)); err != nil {
		return nil, errors.Join(err, s.leave())
	}
	s.huge = newCollapser(bytes, bits)
	s.info.Store(&Info{
		Size: size, BlockSize: 1, PhysicalBlock: pageSize,
		Discard: true, DiscardGran: pageSize, DiscardZeroes: true, Thin: true, Describe: "ram",
		MaxAtomic: intent.MaxBytes, AtomicUnit: 1, // nothing of it survives the process
	})
	return s, nil
}

// open lets [from, to) be used, whole pages of which may be already.
func (s *ramStore) open(from, to int64) error {
	from = from / pageSize * pageSize
	if err := unix.Mprotect(s.bytes[from:to], unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return fmt.Errorf("map %d bytes of memory: %w", to-from, err)
	}
	return nil
}

// Resize implements Resizer: to at most ramGrowth times the size of the beginning.
func (s *ramStore) Resize(size int64) error {
	s.resizing.Lock()
	defer s.resizing.Unlock()
	if err := checkVolatile(size, 0); err != nil {
		return fmt.Errorf("resize ram store: %w", err)
	}
	if most := int64(len(s.bytes)); size > most {
		return fmt.Errorf("resize ram store to %d bytes: expected at most %d, which is %d times its first size", size, most, ramGrowth)
	}
	old := s.Info().Size
	if size > old {
		if err := s.open(old, size); err != nil {
			return fmt.Errorf("resize ram store: %w", err)
		}
	}
	info := s.Info()
	info.Size = size
	s.info.Store(&info)
	if size >= old {
		return nil
	}
	s.counters.Wait() // for those who know the old size
	return s.cut(size, old)
}

// cut releases what was at [from, to), which nobody reads or writes any more, when
// nothing of it is lent.
func (s *ramStore) cut(from, to int64) error {
	for at, next := s.piece(Discard, from, to); at < next; at, next = s.piece(Discard, next, to) {
		first, end := spansOf(at, next)
		returned := make(chan struct{}, end-first)
		for range s.pins.await(first, end, func() { returned <- struct{}{} }) {
			<-returned
		}
		err := s.release(at, next, to)
		s.pins.changed(first, end)
		if err != nil {
			return err
		}
	}
	return nil
}

// checkVolatile checks the size of a store that has no file to take it from.
func checkVolatile(size int64, blockBytes int) error {
	if size <= 0 {
		return fmt.Errorf("size %d: expected a positive number of bytes", size)
	}
	return checkSize(size, blockSize(blockBytes))
}

// reserve maps size bytes of zeroes that take no memory until they are touched.
func reserve(size int64) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of memory: %w", size, err)
	}
	return b, nil
}

// Info implements Store.
func (s *ramStore) Info() Info { return *s.info.Load() }

// Lane implements Store.
func (s *ramStore) Lane(l *evloop.Loop) (Lane, error) {
	lane := &ramLane{ramStore: s, loop: l}
	s.users.Add(1)
	s.counters.Add(&lane.counter, l)
	return lane, nil
}

// Close implements Store. The memory lasts as long as something of it is lent.
func (s *ramStore) Close() error {
	s.huge.close()
	if err := s.leave(); err != nil {
		return fmt.Errorf("close ram store: %w", err)
	}
	return nil
}

// leave is what a user of the memory does last.
func (s *ramStore) leave() error {
	if s.users.Add(-1) > 0 {
		return nil
	}
	return errors.Join(unix.Munmap(s.bytes), s.pages.close(), s.pins.close())
}

// look performs an op that changes nothing and was checked.
func (s *ramStore) look(op *Op) {
	switch op.Kind {
	case Read:
		s.read(op.Data, op.Off)
	case Map:
		op.Mapped, op.Len = s.extent(op.Off, min(op.Len, mapSpan))
	}
}

// maxPiece is how much of a change is made at once, in bytes.
const maxPiece = 64 << 20

// piece returns the first part of a change of [from, to) that is made at once. It is
// empty if nothing is left to do: what was never written need not be discarded.
func (s *ramStore) piece(kind Kind, from, to int64) (first, end int64) {
	if kind == Discard {
		if mapped, n := s.extent(from, to-from); !mapped {
			from += n
		}
	}
	return from, min(to, (from/maxPiece+1)*maxPiece)
}

// change makes a part of a change, of which nothing is lent.
func (s *ramStore) change(op *Op, from, to int64) error {
	if op.Kind == Write {
		memcopy.Copy(s.bytes[from:to], op.Data[from-op.Off:])
	} else if err := s.release(from, to, s.info.Load().Size); err != nil {
		return err
	}
	if op.Kind != Discard && s.pages.set(pagesOf(from, to-from)) && op.Kind == Write {
		s.huge.written(from, to)
	}
	return nil
}

// pagesOf returns the pages [first, end) that n bytes at off touch.
func pagesOf(off, n int64) (first, end int64) {
	if n == 0 {
		return 0, 0
	}
	return off / pageSize, (off+n-1)/pageSize + 1
}

// read does not touch pages that were never written: that would cost page
// tables.
func (s *ramStore) read(data []byte, off int64) {
	for len(data) > 0 {
		mapped, n := s.extent(off, int64(len(data)))
		if mapped {
			copy(data[:n], s.bytes[off:])
		} else {
			clear(data[:n])
		}
		data, off = data[n:], off+n
	}
}

// extent returns the state of the page at off and for how many bytes, at most
// n, the pages share it.
func (s *ramStore) extent(off, n int64) (mapped bool, length int64) {
	if n == 0 {
		return false, 0
	}
	first, end := pagesOf(off, n)
	mapped, run := s.pages.run(first, end)
	return mapped, min(n, (first+run)*pageSize-off)
}

// release zeroes [from, to) and gives whole pages back to the kernel; the last one
// of size bytes counts as whole.
func (s *ramStore) release(from, to, size int64) error {
	first, end := (from+pageSize-1)/pageSize, to/pageSize
	if to == size {
		end = (to + pageSize - 1) / pageSize
	}
	if first >= end {
		s.wipe(from, to)
		return nil
	}
	s.wipe(from, first*pageSize)
	s.wipe(min(end*pageSize, to), to)
	s.pages.clear(first, end)
	if err := unix.Madvise(s.bytes[first*pageSize:min(end*pageSize, to)], unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("release %d pages of memory: %w", end-first, err)
	}
	return nil
}

// wipe zeroes the parts of [from, to) that were ever written.
func (s *ramStore) wipe(from, to int64) {
	for from < to {
		page := from / pageSize
		end := min(to, (page+1)*pageSize)
		if s.pages.has(page) {
			clear(s.bytes[from:end])
		}
		from = end
	}
}
