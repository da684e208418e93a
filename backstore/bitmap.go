package backstore

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bitmap is a set of page numbers for any number of threads. It takes memory
// only where bits were set.
type bitmap struct {
	memory []byte
	words  []atomic.Uint64
}

func newBitmap(n int64) (bitmap, error) {
	words := (n + 63) / 64
	memory, err := reserve(words * 8)
	if err != nil {
		return bitmap{}, err
	}
	return bitmap{memory, unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&memory[0])), words)}, nil
}

func (b bitmap) close() error { return unix.Munmap(b.memory) }

func (b bitmap) has(i int64) bool { return b.words[i/64].Load()>>(i%64)&1 != 0 }

// mask returns the bits of the word at i that are in [i, end), i included, and
// the number of the first bit behind them.
func mask(i, end int64) (bits uint64, next int64) {
	next = min(end, (i/64+1)*64)
	return ^uint64(0) >> (64 - (next - i)) << (i % 64), next
}

// set adds [i, end), and reports whether something was missing. It writes nothing
// where nothing changes, so that threads do not fight for the cache lines of a full map.
func (b bitmap) set(i, end int64) (added bool) {
	for i < end {
		m, next := mask(i, end)
		if w := &b.words[i/64]; w.Load()&m != m {
			w.Or(m)
			added = true
		}
		i = next
	}
	return added
}

// clear removes [i, end).
func (b bitmap) clear(i, end int64) {
	for i < end {
		m, next := mask(i, end)
		if w := &b.words[i/64]; w.Load()&m != 0 {
			w.And(^m)
		}
		i = next
	}
}

// run returns whether i is in the set and how many numbers from i on, before
// end, share that.
func (b bitmap) run(i, end int64) (in bool, n int64) {
	in = b.has(i)
	for at := i + 1; at < end; { // i itself may change meanwhile
		m, next := mask(at, end)
		w := b.words[at/64].Load()
		if in {
			w = ^w
		}
		if w &= m; w != 0 {
			return in, at/64*64 + int64(bits.TrailingZeros64(w)) - i
		}
		at = next
	}
	return in, end - i
}
