package cache

import (
	"math/bits"
	"math/rand/v2"
)

// stretchBits says how many neighbouring blocks are a stretch: one for each bit of a word.
const stretchBits = 6

// stretch is which of neighbouring blocks are dirty.
type stretch struct {
	number      uint64 // of the stretch in its LU
	blocks      uint64 // not 0
	lu          uint32
	left, right uint32 // places in the order, 0: none; of a free one, left is the next free one
}

// stretchOf returns the stretch of a block, and the block's bit in it.
func stretchOf(k Key) (Key, uint) {
	return Key{k.LU, k.Block >> stretchBits}, uint(k.Block & (1<<stretchBits - 1))
}

func (s *stretch) key() Key { return Key{s.lu, s.number} }

// block returns the block of a bit.
func (s *stretch) block(bit int) Key { return Key{s.lu, s.number<<stretchBits | uint64(bit)} }

// dirtyOrder is a partition's dirty blocks in order of address, so that the flusher goes
// through them as a disk likes it. Neighbours share a stretch: where many blocks are
// dirty, one more or less is a bit in memory that is in the CPU's cache. Stretches form a
// treap. The priority of one is a mix of its place and of a number that no initiator
// knows: the tree has the shape that random priorities give, whatever is written in
// whatever order, so depth and recursion are logarithmic.
//
// It grows with what is dirty at a time, and then allocates nothing.
type dirtyOrder struct {
	stretches  []stretch // the first is nobody's
	root, free uint32
	seed       uint32
}

func newDirtyOrder() dirtyOrder {
	return dirtyOrder{stretches: make([]stretch, 1), seed: rand.Uint32()}
}

// insert adds a block that is not there.
func (o *dirtyOrder) insert(k Key) {
	of, bit := stretchOf(k)
	if at := o.find(of); at != 0 {
		o.stretches[at].blocks |= 1 << bit
		return
	}
	at := o.place()
	o.stretches[at] = stretch{lu: of.LU, number: of.Block, blocks: 1 << bit}
	o.root = o.link(o.root, at)
}

// remove takes a block out that is there.
func (o *dirtyOrder) remove(k Key) {
	of, bit := stretchOf(k)
	at := o.find(of)
	s := &o.stretches[at]
	if s.blocks &^= 1 << bit; s.blocks != 0 {
		return
	}
	o.root = o.unlink(o.root, at)
	s.left, o.free = o.free, at
}

// from returns the first block at or after k.
func (o *dirtyOrder) from(k Key) (Key, bool) {
	of, bit := stretchOf(k)
	best := uint32(0)
	for at := o.root; at != 0; {
		s := &o.stretches[at]
		switch {
		case s.key() == of && s.blocks>>bit != 0:
			return s.block(int(bit) + bits.TrailingZeros64(s.blocks>>bit)), true
		case of.less(s.key()):
			best, at = at, s.left
		default:
			at = s.right
		}
	}
	s := &o.stretches[best]
	return s.block(bits.TrailingZeros64(s.blocks)), best != 0
}

// before returns the last block before k.
func (o *dirtyOrder) before(k Key) (Key, bool) {
	of, bit := stretchOf(k)
	below := uint64(1)<<bit - 1
	best := uint32(0)
	for at := o.root; at != 0; {
		s := &o.stretches[at]
		switch {
		case s.key() == of && s.blocks&below != 0:
			return s.block(bits.Len64(s.blocks&below) - 1), true
		case s.key().less(of):
			best, at = at, s.right
		default:
			at = s.left
		}
	}
	s := &o.stretches[best]
	return s.block(bits.Len64(s.blocks) - 1), best != 0
}

// find returns the place of a stretch, 0: it has none.
func (o *dirtyOrder) find(k Key) uint32 {
	at := o.root
	for at != 0 && o.stretches[at].key() != k {
		if s := &o.stretches[at]; k.less(s.key()) {
			at = s.left
		} else {
			at = s.right
		}
	}
	return at
}

// place returns one that is free.
func (o *dirtyOrder) place() uint32 {
	if at := o.free; at != 0 {
		o.free = o.stretches[at].left
		return at
	}
	o.stretches = append(o.stretches, stretch{})
	return uint32(len(o.stretches) - 1)
}

// above reports whether the stretch at place a has the higher priority.
func (o *dirtyOrder) above(a, b uint32) bool {
	x, y := (a^o.seed)*0x9e3779b1, (b^o.seed)*0x9e3779b1
	x, y = (x^x>>15)*0x85ebca6b, (y^y>>15)*0x85ebca6b
	return x > y || x == y && a > b
}

// link returns the root of a tree to which the stretch at a place was added.
func (o *dirtyOrder) link(root, at uint32) uint32 {
	k := o.stretches[at].key()
	if root == 0 || o.above(at, root) {
		s := &o.stretches[at]
		s.left, s.right = o.split(root, k)
		return at
	}
	r := &o.stretches[root]
	if k.less(r.key()) {
		r.left = o.link(r.left, at)
	} else {
		r.right = o.link(r.right, at)
	}
	return root
}

// split parts a tree into what is below k and the rest.
func (o *dirtyOrder) split(root uint32, k Key) (left, right uint32) {
	if root == 0 {
		return 0, 0
	}
	r := &o.stretches[root]
	if r.key().less(k) {
		r.right, right = o.split(r.right, k)
		return root, right
	}
	left, r.left = o.split(r.left, k)
	return left, root
}

// unlink returns the root of a tree that the stretch at a place has left.
func (o *dirtyOrder) unlink(root, at uint32) uint32 {
	r := &o.stretches[root]
	if root == at {
		return o.join(r.left, r.right)
	}
	if o.stretches[at].key().less(r.key()) {
		r.left = o.unlink(r.left, at)
	} else {
		r.right = o.unlink(r.right, at)
	}
	return root
}

// join makes one tree of two, all of the left below all of the right.
func (o *dirtyOrder) join(left, right uint32) uint32 {
	switch {
	case left == 0:
		return right
	case right == 0:
		return left
	case o.above(left, right):
		l := &o.stretches[left]
		l.right = o.join(l.right, right)
		return left
	}
	r := &o.stretches[right]
	r.left = o.join(left, r.left)
	return right
}

// dirtyFrom returns the slot of the first dirty block at or after k, or NoSlot.
func (p *Partition) dirtyFrom(k Key) uint32 { return p.resident(p.order.from(k)) }

// dirtyBefore returns the slot of the last dirty block before k, or NoSlot.
func (p *Partition) dirtyBefore(k Key) uint32 { return p.resident(p.order.before(k)) }

func (p *Partition) resident(k Key, found bool) uint32 {
	if !found {
		return NoSlot
	}
	return p.index.find(p.blocks, k, k.hash())
}
