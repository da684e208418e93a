package blocks

import (
	"math/bits"

	"lunar/cache"
)

// Put puts a writer's data into a block that it has claimed. All that changes bytes of
// a sub-block that is dirty goes through here: a process that is killed in it leaves
// each logical block as it was or as it was to become. What is not dirty needs no
// care: nobody takes it for data of the volume before the claim ends. in is the
// thread's; nil: the memory ends with the process.
func (p *Partition) Put(in *Intent, g *cache.Grant, off uint32, src []byte) {
	block := p.Bytes(g.Slot)
	if in == nil || g.Dirty == 0 {
		p.Move(block[off:], src)
		p.Seal(g.Slot, g.Mask)
		return
	}
	in.lock()
	for len(src) > 0 {
		n, dirty := p.stretch(g.Dirty, off, len(src))
		if dirty {
			in.overwrite(p, spot{p.base + g.Slot, off, uint32(n)}, src[:n])
		} else {
			p.Move(block[off:], src[:n])
		}
		off, src = off+uint32(n), src[n:]
	}
	in.unlock()
	p.Seal(g.Slot, g.Mask&^g.Dirty)
}

// stretch returns how many of n bytes at off of a block are to be copied at a time,
// and whether they are dirty.
func (p *Partition) stretch(dirty uint64, off uint32, n int) (int, bool) {
	sub := uint32(p.Sub)
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
