package tier

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"lunar/cache"
)

// With Config.Checksum there is a CRC32C of each sub-block in the segment. What is
// stored in a block is summed before its claim ends; a dirty one that is overwritten
// gets its sum by the intent of the data, so that a process which ends in between
// leaves both old or both new. Sums are compared when a segment is attached, before dirty data go to
// the store, before a dirty sub-block is overwritten in part, and slowly all the time.

// errDamaged is a medium error for initiators.
var errDamaged = errors.New("unwritten data in the cache have been damaged in memory: their checksum is wrong")

func sumArea(node int) string { return fmt.Sprintf("sums.%d", node) }

// sumsOf lays numbers over memory.
func sumsOf(mem []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/4)
}

// sumOf returns the place of a sub-block's sum.
func (p *partition) sumOf(slot uint32, sub int) *uint32 {
	return &p.sums[int(slot)*(p.block/p.sub)+sub]
}

func (p *partition) subBlock(slot uint32, sub int) []byte {
	return p.bytes(slot)[sub*p.sub : (sub+1)*p.sub]
}

func crcOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// seal sums sub-blocks that the caller has claimed and that are not dirty.
func (p *partition) seal(slot uint32, mask uint64) {
	if p.sums == nil {
		return
	}
	for ; mask != 0; mask &= mask - 1 {
		sub := bits.TrailingZeros64(mask)
		atomic.StoreUint32(p.sumOf(slot, sub), crcOf(p.subBlock(slot, sub)))
	}
}

// resealed returns the sum that a sub-block will have when src is at off of the block,
// as a word of an intent: 0 without sums. A damaged one stays damaged if it is not
// overwritten as a whole.
func (p *partition) resealed(slot, off uint32, src []byte) uint64 {
	if p.sums == nil {
		return 0
	}
	sub, from := int(off)/p.sub, int(off)%p.sub
	sum := uint32(0)
	if len(src) == p.sub {
		sum = crcOf(src)
	} else {
		old := p.subBlock(slot, sub)
		sum = crc32.Update(crc32.Update(crcOf(old[:from]), castagnoli, src), castagnoli, old[from+len(src):])
		if crcOf(old) != *p.sumOf(slot, sub) {
			sum = ^sum
		}
	}
	return uint64(sum) | 1<<32
}

// reseal stores the sum that resealed has returned.
func (p *partition) reseal(slot, off uint32, word uint64) {
	if word != 0 && p.sums != nil {
		atomic.StoreUint32(p.sumOf(slot, int(off)/p.sub), uint32(word))
	}
}

// wrong returns those of some sub-blocks, which nobody changes, that have another sum.
func (p *partition) wrong(slot uint32, mask uint64) (wrong uint64) {
	if p.sums == nil {
		return 0
	}
	for ; mask != 0; mask &= mask - 1 {
		sub := bits.TrailingZeros64(mask)
		if crcOf(p.subBlock(slot, sub)) != *p.sumOf(slot, sub) {
			wrong |= 1 << sub
		}
	}
	return wrong
}

// harmed notes what wrong has found.
func (c *Cache) harmed(p *partition, slot uint32, k cache.Key, wrong uint64) {
	if wrong == 0 {
		return
	}
	c.stats.damaged.Add(uint64(bits.OnesCount64(wrong)))
	dirty, chain := p.Damaged(slot, wrong)
	wake(chain)
	r, size := c.table.row(k.LU), int64(p.block)
	log := c.log.With("volume", r.name(), "identity", fmt.Sprintf("%#x", r.id()))
	for mask := wrong; mask != 0; mask &= mask - 1 {
		sub := bits.TrailingZeros64(mask)
		at := int64(k.Block)*size + int64(sub*p.sub)
		if dirty>>sub&1 != 0 {
			log.Error("unwritten data in the cache were damaged in memory: these bytes are unreadable, and not written to the store, until they are overwritten as a whole or discarded; check the machine's memory, and restore what lies there", "byte", at, "bytes", p.sub)
		} else {
			log.Warn("a clean part of a cache block was damaged in memory: it is read from the store again; check the machine's memory", "byte", at, "bytes", p.sub)
		}
	}
}

// inspect compares the sums of a slot and returns how many bytes it has looked at.
func (c *Cache) inspect(p *partition, slot uint32) int64 {
	k, mask, ok := p.Examine(slot)
	if !ok {
		return 0
	}
	wrong := p.wrong(slot, mask)
	c.harmed(p, slot, k, wrong)
	wake(p.Unpin(slot))
	return c.bytesOf(mask)
}

// inspectAll looks at all that a segment had when it was attached.
func (c *Cache) inspectAll() {
	if !c.config.Checksum {
		return
	}
	var group sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range c.parts {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			p := &c.parts[i]
			for slot := range p.Slots() {
				c.inspect(p, slot)
			}
		})
	}
	group.Wait()
}

// scrubbing is where the slow comparison of all sums is.
type scrubbing struct {
	part int
	slot uint32
}

// scrubBytes are compared every watchEvery: 13 MB/s, which takes a thousandth of a CPU.
const scrubBytes = 64 << 20

// scrub compares the next sums; most of the slots may be empty.
func (c *Cache) scrub() {
	if !c.config.Checksum {
		return
	}
	at, bytes := &c.scrubbing, int64(0)
	slots := len(c.parts) * int(c.parts[0].Slots())
	for range slots {
		p := &c.parts[at.part]
		bytes += c.inspect(p, at.slot)
		if at.slot++; at.slot == p.Slots() {
			at.slot, at.part = 0, (at.part+1)%len(c.parts)
		}
		if bytes >= scrubBytes {
			return
		}
	}
}

// damagedIn returns how many bytes in the blocks [first, end) of a volume are damaged.
func (v *volume) damagedIn(first, end uint64) (n int64) {
	if v.cache.stats.damaged.Load() == 0 {
		return 0
	}
	from, to := cache.Key{LU: v.config.LU, Block: first}, cache.Key{LU: v.config.LU, Block: end}
	for i := range v.cache.parts {
		n += int64(v.cache.parts[i].DamagedIn(from, to))
	}
	return n * int64(v.cache.geometry.SubBlock())
}
