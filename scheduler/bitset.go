package scheduler

import "math/bits"

// bitset is a set of small numbers that finds the next member fast. Those below
// 64, which are mostly all, are in one word; of the others a summary bit per word
// says which words have any.
type bitset struct {
	low     uint64
	count   int
	words   []uint64 // of the numbers from 64 on
	summary []uint64
}

// grow makes room for the numbers below n.
func (b *bitset) grow(n int) {
	for 64+len(b.words)*64 < n {
		b.words = append(b.words, 0)
	}
	for len(b.summary)*64 < len(b.words) {
		b.summary = append(b.summary, 0)
	}
}

func (b *bitset) has(i int) bool {
	if i < 64 {
		return b.low&(1<<i) != 0
	}
	return b.words[i/64-1]&(1<<(i%64)) != 0
}

func (b *bitset) add(i int) {
	if b.has(i) {
		return
	}
	b.count++
	if i < 64 {
		b.low |= 1 << i
		return
	}
	i -= 64
	b.words[i/64] |= 1 << (i % 64)
	b.summary[i/4096] |= 1 << (i / 64 % 64)
}

func (b *bitset) remove(i int) {
	if !b.has(i) {
		return
	}
	b.count--
	if i < 64 {
		b.low &^= 1 << i
		return
	}
	i -= 64
	b.words[i/64] &^= 1 << (i % 64)
	if b.words[i/64] == 0 {
		b.summary[i/4096] &^= 1 << (i / 64 % 64)
	}
}

// next returns the first member at or after i, round the end; -1 if empty.
func (b *bitset) next(i int) int {
	if len(b.words) == 0 && b.low != 0 {
		if after := b.low >> uint(i); after != 0 {
			return i + bits.TrailingZeros64(after)
		}
		return bits.TrailingZeros64(b.low)
	}
	if found := b.from(i); found >= 0 {
		return found
	}
	return b.from(0)
}

// from returns the first member at or after i; -1 if there is none.
func (b *bitset) from(i int) int {
	if i < 64 {
		if after := b.low >> uint(i); after != 0 {
			return i + bits.TrailingZeros64(after)
		}
	}
	if i = b.above(max(0, i-64)); i >= 0 {
		return 64 + i
	}
	return -1
}

// above is from for the numbers from 64 on, less 64.
func (b *bitset) above(i int) int {
	if i/64 >= len(b.words) {
		return -1
	}
	if w := b.words[i/64] >> (i % 64); w != 0 {
		return i + bits.TrailingZeros64(w)
	}
	w := i/64 + 1
	for s := w / 64; s < len(b.summary); s++ {
		word := b.summary[s]
		if s == w/64 {
			word &^= 1<<(w%64) - 1
		}
		if word != 0 {
			w = s*64 + bits.TrailingZeros64(word)
			return w*64 + bits.TrailingZeros64(b.words[w])
		}
	}
	return -1
}
