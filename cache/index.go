package cache

// index finds a block's slot: open addressing with linear probing, at most half
// full, without tombstones. A bucket is the key's hash in its upper half and the
// slot plus one in its lower half; 0 is empty. The hash in the bucket spares
// looking at other blocks and tells where an entry belongs when one before it
// leaves.
//
// Why not golang-lru: medians of BenchmarkHit and BenchmarkInsertEvict with
// 65,536 entries, in one run on two shared cores. A partition takes its lock
// twice for each, to pin and unpin or to claim and end; the lock keeps one
// lookup's cache misses from overlapping with the next one's.
//
//	                       hit      insert and evict
//	index and lruList      28 ns    -
//	golang-lru simplelru   47 ns    221 ns, 1 allocation
//	Partition             117 ns    131 ns, none
//	golang-lru lru        104 ns    325 ns, 1 allocation
//	golang-lru 2q          57 ns    508 ns, 2 allocations
//
// And only this one can lie in memory that outlives the process.
type index struct {
	buckets []uint64
	mask    uint32
}

// bucketsFor returns how many buckets serve the given number of slots: a power
// of two, at least twice as many.
func bucketsFor(slots uint32) uint32 {
	n := uint32(2)
	for n < 2*slots {
		n *= 2
	}
	return n
}

func newIndex(buckets []uint64) index { return index{buckets, uint32(len(buckets) - 1)} }

// find returns the slot of a key with hash h, or NoSlot.
func (x *index) find(blocks []block, k Key, h uint32) uint32 {
	for i := h & x.mask; ; i = (i + 1) & x.mask {
		e := x.buckets[i]
		if e == 0 {
			return NoSlot
		}
		if uint32(e>>32) == h {
			slot := uint32(e) - 1
			if b := &blocks[slot]; b.number == k.Block && b.lu == k.LU {
				return slot
			}
		}
	}
}

// insert adds a slot whose key is not there yet.
func (x *index) insert(h, slot uint32) {
	i := h & x.mask
	for x.buckets[i] != 0 {
		i = (i + 1) & x.mask
	}
	x.buckets[i] = uint64(h)<<32 | uint64(slot+1)
}

// remove takes a slot out that is there, and moves those up that had to pass it.
func (x *index) remove(h, slot uint32) {
	hole := h & x.mask
	for uint32(x.buckets[hole]) != slot+1 {
		hole = (hole + 1) & x.mask
	}
	for i := (hole + 1) & x.mask; x.buckets[i] != 0; i = (i + 1) & x.mask {
		home := uint32(x.buckets[i]>>32) & x.mask
		if (i-home)&x.mask >= (i-hole)&x.mask {
			x.buckets[hole] = x.buckets[i]
			hole = i
		}
	}
	x.buckets[hole] = 0
}
