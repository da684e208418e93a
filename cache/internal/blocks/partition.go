package blocks

import (
	"lunar/cache"
)

// Partition is a partition and the memory of its blocks.
type Partition struct {
	*cache.Partition
	Node  int // of the Layout
	Block int // bytes of a block
	Sub   int // bytes of a sub-block
	// Move copies into blocks: memcopy.Copy, but in tests that look in between.
	Move func(dst, src []byte)

	data []byte
	sums []uint32 // of sub-blocks; nil: none
	base uint32   // of its slots among those of all partitions
}

// Size returns the bytes of its block data.
func (p *Partition) Size() int { return len(p.data) }

// Base returns the number that its first slot has among those of all partitions.
func (p *Partition) Base() uint32 { return p.base }

// Bytes returns the memory of a block.
func (p *Partition) Bytes(slot uint32) []byte { return p.Run(slot, 1) }

// Run returns the memory of n blocks that follow each other.
func (p *Partition) Run(slot, n uint32) []byte {
	from, to := int(slot)*p.Block, int(slot+n)*p.Block
	return p.data[from:to:to]
}

// CopyOut gives a reader what it wants of a block that it has pinned.
func (p *Partition) CopyOut(dst []byte, slot, off uint32) { copy(dst, p.Bytes(slot)[off:]) }
