package tier

import (
	"math/bits"

	"lunar/cache"
)

// copyOut gives a reader what it wants of a block that it has pinned.
func (p *partition) copyOut(dst []byte, slot, off uint32) { copy(dst, p.bytes(slot)[off:]) }

// put puts a writer's data into a block that it has claimed. All that changes bytes of
// a sub-block that is dirty goes through here: a process that is killed in it leaves
// each logical block as it was or as it was to become. What is not dirty needs no
// care: nobody takes it for data of the volume before the claim ends. in is the
// thread's; nil: the memory ends with the process.
func (p *partition) put(in *intent, g *cache.Grant, off uint32, src []byte) {
	block := p.bytes(g.Slot)
	if in == nil || g.Dirty == 0 {
		p.move(block[off:], src)
		p.seal(g.Slot, g.Mask)
		return
	}
	in.lock()
	for len(src) > 0 {
		n, dirty := p.stretch(g.Dirty, off, len(src))
		if dirty {
			in.overwrite(p, spot{p.base + g.Slot, off, uint32(n)}, src[:n])
		} else {
			p.move(block[off:], src[:n])
		}
		off, src = off+uint32(n), src[n:]
	}
	in.unlock()
	p.seal(g.Slot, g.Mask&^g.Dirty)
}

// stretch returns how many of n bytes at off of a block are to be copied at a time,
// and whether they are dirty.
func (p *partition) stretch(dirty uint64, off uint32, n int) (int, bool) {
	sub := uint32(p.sub)
	rest := dirty >> (off / sub)
	if rest&1 != 0 {
		return min(n, int(intentBytes-off%intentBytes)), true
	}
	if rest == 0 {
		return n, false
	}
	next := (off/sub + uint32(bits.TrailingZeros64(rest))) * sub
	return min(n, int(next-off)), false
}
