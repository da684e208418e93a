package segment

import (
	"hash/crc32"
	"sync/atomic"
)

// words is the memory of a segment. It is an interface so that tests can stop
// a writer after any store; positions count words of 8 bytes.
type words interface {
	load(at int) uint64
	store(at int, v uint64)
	swap(at int, old, v uint64) bool
}

// mapped is words in shared memory. Atomic stores keep compiler and processor
// from changing the order of what another process finds.
type mapped []uint64

func (m mapped) load(at int) uint64              { return atomic.LoadUint64(&m[at]) }
func (m mapped) store(at int, v uint64)          { atomic.StoreUint64(&m[at], v) }
func (m mapped) swap(at int, old, v uint64) bool { return atomic.CompareAndSwapUint64(&m[at], old, v) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum continues a CRC32C with the 8 bytes of w, lowest first. The library's
// functions want a slice, which would be allocated.
func sum(crc uint32, w uint64) uint32 {
	crc = ^crc
	for range 8 {
		crc = castagnoli[byte(crc)^byte(w)] ^ crc>>8
		w >>= 8
	}
	return ^crc
}

// sumWords is the CRC32C of n words.
func sumWords(w words, at, n int) uint32 {
	crc := uint32(0)
	for i := range n {
		crc = sum(crc, w.load(at+i))
	}
	return crc
}

// storeText stores text in n words, padded with zeroes; what does not fit is
// cut off.
func storeText(w words, at, n int, text string) {
	for i := range n {
		word := uint64(0)
		for b := range 8 {
			if p := i*8 + b; p < len(text) {
				word |= uint64(text[p]) << (8 * b)
			}
		}
		w.store(at+i, word)
	}
}

// loadText returns the text of n words up to its first zero byte.
func loadText(w words, at, n int) string {
	text := make([]byte, 0, n*8)
	for i := range n {
		word := w.load(at + i)
		for b := range 8 {
			c := byte(word >> (8 * b))
			if c == 0 {
				return string(text)
			}
			text = append(text, c)
		}
	}
	return string(text)
}
