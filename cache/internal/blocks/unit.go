package blocks

import (
	"math/bits"
	"slices"

	"lunar/cache"
)

// What the partitions have of one volume, which has an LU number there.

// DirtyBytes asks all partitions how much of a volume is dirty.
func (m *Memory) DirtyBytes(lu uint32) (sum int64) {
	for i := range m.Parts {
		_, n := m.Parts[i].Usage(lu)
		sum += int64(n)
	}
	return sum
}

// Blocks asks all partitions how many blocks they have of a volume.
func (m *Memory) Blocks(lu uint32) (sum int) {
	for i := range m.Parts {
		n, _ := m.Parts[i].Usage(lu)
		sum += n
	}
	return sum
}

// DirtyEnd returns the byte of a volume behind its last dirty sub-block.
func (m *Memory) DirtyEnd(lu uint32) (end int64) {
	for i := range m.Parts {
		end = max(end, int64(m.Parts[i].DirtyEnd(lu)))
	}
	return end
}

// forgetBudget bounds the time for which Forget keeps a partition's lock, in
// slots.
const forgetBudget = 1024

// Forget drops what is clean of a volume that nobody uses.
func (m *Memory) Forget(lu uint32) {
	for i := range m.Parts {
		p := m.Parts[i].Partition
		for next := uint32(0); next < p.Slots(); {
			next = p.Forget(lu, next, forgetBudget)
		}
	}
}

// purgeBudget bounds the time for which Purge keeps a partition's lock, in
// blocks.
const purgeBudget = 64

// Purge drops all of a volume that nobody writes to.
func (m *Memory) Purge(lu uint32) {
	for i := range m.Parts {
		for m.Parts[i].Purge(lu, purgeBudget) > 0 {
		}
	}
}

// DirtyRange returns the first dirty range of a volume in [off, end); end and end if
// there is none.
func (m *Memory) DirtyRange(lu uint32, off, end int64) (from, to int64) {
	size, sub := int64(m.Geometry.BlockSize()), int64(m.Geometry.SubBlock())
	for block := uint64(off / size); ; block++ {
		mask := uint64(0)
		if block, mask = m.nextDirty(lu, block, uint64((end+size-1)/size)); mask == 0 {
			return end, end
		}
		base := int64(block) * size
		if off > base {
			mask &= ^uint64(0) << ((off - base) / sub)
		}
		if mask == 0 {
			continue
		}
		first := bits.TrailingZeros64(mask)
		n := bits.TrailingZeros64(^(mask >> first))
		from = min(end, max(off, base+int64(first)*sub))
		return from, min(end, base+int64(first+n)*sub)
	}
}

// nextDirty returns the first dirty block of [from, to) in any partition, and its
// dirty sub-blocks: none if there is no such block.
func (m *Memory) nextDirty(lu uint32, from, to uint64) (block uint64, mask uint64) {
	for i := range m.Parts {
		if k, found := m.Parts[i].NextDirty(cache.Key{LU: lu, Block: from}, cache.Key{LU: lu, Block: to}); found != 0 {
			block, mask, to = k.Block, found, k.Block
		}
	}
	return block, mask
}

// residentSlots bounds the time for which resident keeps a partition's lock.
const residentSlots = 1024

// resident returns the blocks of a volume from first on that the cache has, in
// ascending order.
func (m *Memory) resident(lu uint32, first uint64) (keys []cache.Key) {
	for i := range m.Parts {
		p := m.Parts[i].Partition
		for slot := uint32(0); slot < p.Slots(); {
			slot, keys = p.Resident(lu, first, slot, residentSlots, keys)
		}
	}
	slices.SortFunc(keys, func(a, b cache.Key) int {
		if a.Block < b.Block {
			return -1
		}
		return 1
	})
	return keys
}
