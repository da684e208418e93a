package blocks

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// With Config.Checksum there is a CRC32C of each sub-block in the segment. What is
// stored in a block is summed before its claim ends; a dirty one that is overwritten
// gets its sum by the intent of the data, so that a process which ends in between
// leaves both old or both new. Sums are compared when a segment is attached, before
// dirty data go to the store, before a dirty sub-block is overwritten in part, and slowly all the time.

var sumTable = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged is a medium error for initiators.
var ErrDamaged = errors.New("unwritten data in the cache have been damaged in memory: their checksum is wrong")

func sumArea(node int) string { return fmt.Sprintf("sums.%d", node) }

// sumsOf lays numbers over memory.
func sumsOf(mem []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/4)
}

// sumOf returns the place of a sub-block's sum.
func (p *Partition) sumOf(slot uint32, sub int) *uint32 {
	return &p.sums[int(slot)*(p.Block/p.Sub)+sub]
}

func (p *Partition) subBlock(slot uint32, sub int) []byte {
	return p.Bytes(slot)[sub*p.Sub : (sub+1)*p.Sub]
}

func crcOf(b []byte) uint32 { return crc32.Checksum(b, sumTable) }

// Seal sums sub-blocks that the caller has claimed and that are not dirty.
func (p *Partition) Seal(slot uint32, mask uint64) {
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
func (p *Partition) resealed(slot, off uint32, src []byte) uint64 {
	if p.sums == nil {
		return 0
	}
	sub, from := int(off)/p.Sub, int(off)%p.Sub
	sum := uint32(0)
	if len(src) == p.Sub {
		sum = crcOf(src)
	} else {
		old := p.subBlock(slot, sub)
		sum = crc32.Update(crc32.Update(crcOf(old[:from]), sumTable, src), sumTable, old[from+len(src):])
		if crcOf(old) != *p.sumOf(slot, sub) {
			sum = ^sum
		}
	}
	return uint64(sum) | 1<<32
}

// reseal stores the sum that resealed has returned.
func (p *Partition) reseal(slot, off uint32, word uint64) {
	if word != 0 && p.sums != nil {
		atomic.StoreUint32(p.sumOf(slot, int(off)/p.Sub), uint32(word))
	}
}

// Wrong returns those of some sub-blocks, which nobody changes, that have another sum.
func (p *Partition) Wrong(slot uint32, mask uint64) (wrong uint64) {
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
