package cache

import (
	"unsafe"

	"lunar/internal/prefetch"
)

// probes bounds how many buckets Foresee looks at: two in three blocks are in the first.
const probes = 4

// Foresee has the processor fetch, at step 0, where the index has block k, and at step 1,
// when that is there, what is known of the block.
func (p *Partition) Foresee(k Key, step int) {
	if step == 0 {
		prefetch.At(unsafe.Pointer(&p.index.buckets[k.hash()&p.index.mask]), 1)
	} else if slot := p.foreseen(k); slot != NoSlot {
		prefetch.At(unsafe.Pointer(&p.blocks[slot]), int(unsafe.Sizeof(block{})))
	}
}

// foreseen returns where block k probably is. It takes no lock: what it sees may be
// changing, and is good for choosing what to fetch and for nothing else.
//
//go:norace
func (p *Partition) foreseen(k Key) uint32 {
	h := k.hash()
	for i := range uint32(probes) {
		e := p.index.buckets[(h+i)&p.index.mask]
		if slot := uint32(e) - 1; uint32(e>>32) == h && slot < uint32(len(p.blocks)) {
			return slot
		}
	}
	return NoSlot
}
