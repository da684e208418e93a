package cache

import (
	"fmt"
	"math/bits"
)

const (
	// MinBlock and MaxBlock are the smallest and largest cache block, in bytes.
	MinBlock, MaxBlock = 4 << 10, 1 << 20
	// MinSub is the smallest unit, in bytes, that is valid or dirty on its own.
	// Blocks above 64*MinSub have larger units: there are always at most 64.
	MinSub = 4 << 10
	// MaxNodes bounds the NUMA nodes that a cache is spread over.
	MaxNodes = 64
)

// Layout says how a cache is cut up.
type Layout struct {
	BlockSize  int  // bytes, a power of two from MinBlock to MaxBlock
	Neighbours int  // consecutive blocks that share a partition (the G of the hash)
	Partitions int  // over all nodes, a multiple of Nodes
	Nodes      int  // NUMA nodes that hold cache memory
	Contiguous bool // node = partition div (partitions per node), not mod nodes
}

// Geometry maps bytes to blocks, blocks to partitions and partitions to nodes.
// It is immutable.
type Geometry struct {
	shift, sub uint8 // log2 of the block size and of the sub-block size
	contiguous bool
	group      uint64
	partitions uint32
	nodes      uint32
	perNode    uint32
}

// NewGeometry checks a layout.
func NewGeometry(l Layout) (*Geometry, error) {
	switch {
	case bits.OnesCount(uint(l.BlockSize)) != 1 || l.BlockSize < MinBlock || l.BlockSize > MaxBlock:
		return nil, fmt.Errorf("cache block of %d bytes: expected a power of two from %d to %d", l.BlockSize, MinBlock, MaxBlock)
	case l.Neighbours < 1:
		return nil, fmt.Errorf("%d neighbouring cache blocks: expected at least 1", l.Neighbours)
	case l.Nodes < 1 || l.Nodes > MaxNodes:
		return nil, fmt.Errorf("cache on %d NUMA nodes: expected 1 to %d", l.Nodes, MaxNodes)
	case l.Partitions < l.Nodes || l.Partitions%l.Nodes != 0:
		return nil, fmt.Errorf("%d cache partitions: expected a multiple of the %d NUMA nodes", l.Partitions, l.Nodes)
	}
	return &Geometry{
		shift:      uint8(bits.TrailingZeros(uint(l.BlockSize))),
		sub:        uint8(bits.TrailingZeros(uint(subBlock(l.BlockSize)))),
		contiguous: l.Contiguous,
		group:      uint64(l.Neighbours),
		partitions: uint32(l.Partitions),
		nodes:      uint32(l.Nodes),
		perNode:    uint32(l.Partitions / l.Nodes),
	}, nil
}

// subBlock returns the unit of validity of a block, both in bytes.
func subBlock(block int) int { return max(MinSub, block/64) }

// BlockSize returns the size of a cache block in bytes.
func (g *Geometry) BlockSize() int { return 1 << g.shift }

// SubBlock returns the bytes that each bit of a mask stands for.
func (g *Geometry) SubBlock() int { return 1 << g.sub }

// Piece is the part of a request that lies in one cache block.
type Piece struct {
	Block     uint64 // number of the block in its LU
	Off, Len  uint32 // bytes, in the block
	Partition uint32 // over all nodes
	Node      uint32 // of the partition
}

// Masks returns the sub-blocks that n bytes at off of a block touch, and those
// that they cover wholly. Bit 0 is the block's first sub-block.
func (g *Geometry) Masks(off, n uint32) (touched, whole uint64) {
	end, round := off+n, uint32(1)<<g.sub-1
	touched = ones(off>>g.sub, (end+round)>>g.sub)
	whole = ones((off+round)>>g.sub, end>>g.sub)
	return touched, whole
}

// ones returns a mask of the bits [from, to).
func ones(from, to uint32) uint64 {
	if from >= to {
		return 0
	}
	return ^uint64(0) >> (64 - (to - from)) << from
}

// skew moves an LU's first block to a partition of its own choice, so that
// equally laid out LUs do not all meet in the same ones. LU 0 has none.
func (g *Geometry) skew(lu uint32) uint64 { return uint64(lu) * 0x9e3779b1 }

// Partition returns the partition of a block.
func (g *Geometry) Partition(k Key) uint32 {
	return uint32((k.Block/g.group + g.skew(k.LU)) % uint64(g.partitions))
}

// NodeOf returns the node that a partition lies on, counted from 0 among the
// cache's nodes.
func (g *Geometry) NodeOf(partition uint32) uint32 {
	if g.contiguous {
		return partition / g.perNode
	}
	return partition % g.nodes
}

// Split cuts n bytes at off of an LU at block edges into out, in order, and
// returns the pieces and the bytes that they cover: less than n if out is too
// short. Consecutive groups are in consecutive partitions, so that the hash
// costs two divisions for a whole request.
func (g *Geometry) Split(lu uint32, off int64, n int, out []Piece) (pieces, bytes int) {
	number := uint64(off) >> g.shift
	inGroup := number % g.group
	p := Piece{Block: number, Off: uint32(off) & (1<<g.shift - 1), Partition: g.Partition(Key{lu, number})}
	p.Node = g.NodeOf(p.Partition)
	for pieces < len(out) && bytes < n {
		p.Len = min(1<<g.shift-p.Off, uint32(n-bytes))
		out[pieces] = p
		pieces++
		bytes += int(p.Len)
		p.Off = 0
		p.Block++
		if inGroup++; inGroup == g.group {
			inGroup = 0
			p.nextPartition(g)
		}
	}
	return pieces, bytes
}

func (p *Piece) nextPartition(g *Geometry) {
	if p.Partition++; p.Partition == g.partitions {
		p.Partition = 0
	}
	p.Node = g.NodeOf(p.Partition)
}

// Affinity is how many bytes of a request each node has.
type Affinity [MaxNodes]uint32

// Add counts pieces.
func (a *Affinity) Add(pieces []Piece) {
	for i := range pieces {
		a[pieces[i].Node%MaxNodes] += pieces[i].Len
	}
}

// Best is the end of Algorithm 1: the node with most of the bytes. Of equal
// ones it is the executing worker's if that is among them, else the lowest. A
// worker below 0 is on none of them.
func (a *Affinity) Best(nodes, worker int) int {
	best := 0
	for n := 1; n < nodes; n++ {
		if a[n] > a[best] {
			best = n
		}
	}
	if worker >= 0 && a[worker] == a[best] {
		return worker
	}
	return best
}
