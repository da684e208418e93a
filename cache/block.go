package cache

// Key names a cache block: the LU, a small dense number of the caller's, and
// the block's number in it.
type Key struct {
	LU    uint32
	Block uint64
}

// less orders keys by address.
func (k Key) less(o Key) bool {
	return k.LU < o.LU || k.LU == o.LU && k.Block < o.Block
}

// hash mixes a key so that all of its bits reach all bits of the result.
func (k Key) hash() uint32 {
	h := (k.Block + uint64(k.LU)<<40 + 1) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return uint32(h >> 32)
}

// NoSlot stands for no block.
const NoSlot = ^uint32(0)

// The states of a slot. Filling, dirty, flushing and pinned are states of
// sub-blocks: bits in the masks of a resident block.
const (
	stateFree     uint32 = iota // on the free list
	stateResident               // in the index
)

// block is what is known of a slot. It has no pointer, so that it may lie in
// shared memory; only number, lu, valid, dirty, stamp and state mean something
// to a process that attaches it, and where there is a journal, what that says is
// dirty decides.
//
// INVARIANT: a sub-block that is pinned or being flushed is not changed; one
// that is busy is changed by exactly one claim and read by nobody else.
type block struct {
	number uint64
	valid  uint64 // holds the LU's data
	dirty  uint64 // newer than the backing store; implies valid
	busy   uint64 // claimed by a fill, a write or a drop
	pinned uint64 // all that was pinned since the block last had no pin
	stamp  uint64 // partition clock at last use

	lu         uint32
	pins       uint32
	prev, next uint32 // in the replacement list (prev is younger) or the free list

	flushing uint64    // dirty and on its way to the backing store
	wanted   uint64    // that waiting writers want: new readers stand behind them
	_        [2]uint32 // of the layout that Format names
	state    uint32
	assigned uint32 // not 0: the journal's record of the slot is this block's
}

func (b *block) key() Key { return Key{b.lu, b.number} }

// idle reports that nobody refers to the block.
func (b *block) idle() bool { return b.pins == 0 && b.busy|b.flushing == 0 }

// evictable reports that the block may go without anything being lost.
func (b *block) evictable() bool { return b.idle() && b.dirty == 0 }
