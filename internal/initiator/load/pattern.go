package load

import "math/bits"

// random is a splitmix64 generator: cheap, seedable, no allocation.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return mix(uint64(*r))
}

// below returns a number in [0, n) without dividing.
func (r *random) below(n uint64) uint64 {
	high, _ := bits.Mul64(r.next(), n)
	return high
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// operation is one command to issue.
type operation struct {
	lba    uint64
	blocks int
	write  bool
}

// pattern yields the operations of one connection; equal seeds yield equal
// sequences.
type pattern struct {
	random    random
	isRandom  bool
	readBelow uint64 // of 100
	first     uint64
	blocks    uint64
	cursor    uint64 // sequential: blocks from first
	sizes     []int  // in blocks
	limits    []uint64
	total     uint64 // of the weights
}

func newPattern(w *Workload, blockSize, connection, connections int) pattern {
	p := pattern{
		random:    random(mix(w.Seed + uint64(connection)<<32)),
		isRandom:  w.Random,
		readBelow: uint64(w.ReadPercent),
		first:     w.FirstLBA,
		blocks:    w.Blocks,
		cursor:    w.Blocks / uint64(connections) * uint64(connection),
	}
	for _, s := range w.Sizes {
		p.total += uint64(s.Weight)
		p.sizes = append(p.sizes, s.Bytes/blockSize)
		p.limits = append(p.limits, p.total)
	}
	return p
}

func (p *pattern) next() operation {
	op := operation{blocks: p.size()}
	op.write = p.readBelow == 0 || p.readBelow < 100 && p.random.below(100) >= p.readBelow
	op.lba = p.first + p.position(uint64(op.blocks))
	return op
}

func (p *pattern) size() int {
	if len(p.sizes) == 1 {
		return p.sizes[0]
	}
	at := p.random.below(p.total)
	for i, limit := range p.limits {
		if at < limit {
			return p.sizes[i]
		}
	}
	return p.sizes[len(p.sizes)-1]
}

// position returns where n blocks go, aligned to n when random.
func (p *pattern) position(n uint64) uint64 {
	if p.isRandom {
		return p.random.below(p.blocks/n) * n
	}
	if p.cursor+n > p.blocks {
		p.cursor = 0
	}
	at := p.cursor
	p.cursor += n
	return at
}
