package cache

// The dirty blocks of a partition form a treap ordered by address, so that the
// flusher goes through them as a disk likes it. A block's priority is a mix of
// its slot: the tree has the shape that random priorities give, and needs no
// memory but two slot numbers in each block. Depth, and so recursion, is
// logarithmic.

// above reports whether slot a has the higher priority.
func above(a, b uint32) bool {
	x, y := a*0x9e3779b1, b*0x9e3779b1
	x, y = (x^x>>15)*0x85ebca6b, (y^y>>15)*0x85ebca6b
	return x > y || x == y && a > b
}

func (p *Partition) treeInsert(root, slot uint32) uint32 {
	k := p.blocks[slot].key()
	if root == NoSlot || above(slot, root) {
		b := &p.blocks[slot]
		b.left, b.right = p.treeSplit(root, k)
		return slot
	}
	r := &p.blocks[root]
	if k.less(r.key()) {
		r.left = p.treeInsert(r.left, slot)
	} else {
		r.right = p.treeInsert(r.right, slot)
	}
	return root
}

// treeSplit parts a tree into what is below k and the rest.
func (p *Partition) treeSplit(root uint32, k Key) (left, right uint32) {
	if root == NoSlot {
		return NoSlot, NoSlot
	}
	r := &p.blocks[root]
	if r.key().less(k) {
		r.right, right = p.treeSplit(r.right, k)
		return root, right
	}
	left, r.left = p.treeSplit(r.left, k)
	return left, root
}

func (p *Partition) treeRemove(root, slot uint32) uint32 {
	r := &p.blocks[root]
	if root == slot {
		return p.treeJoin(r.left, r.right)
	}
	if p.blocks[slot].key().less(r.key()) {
		r.left = p.treeRemove(r.left, slot)
	} else {
		r.right = p.treeRemove(r.right, slot)
	}
	return root
}

// treeJoin makes one tree of two, all of the left below all of the right.
func (p *Partition) treeJoin(left, right uint32) uint32 {
	switch {
	case left == NoSlot:
		return right
	case right == NoSlot:
		return left
	case above(left, right):
		l := &p.blocks[left]
		l.right = p.treeJoin(l.right, right)
		return left
	}
	r := &p.blocks[right]
	r.left = p.treeJoin(left, r.left)
	return right
}

// treeCeil returns the first dirty block at or after k, or NoSlot.
func (p *Partition) treeCeil(k Key) uint32 {
	best := NoSlot
	for slot := p.tree; slot != NoSlot; {
		b := &p.blocks[slot]
		if b.key().less(k) {
			slot = b.right
			continue
		}
		best, slot = slot, b.left
	}
	return best
}

// treeBelow returns the last dirty block before k, or NoSlot.
func (p *Partition) treeBelow(k Key) uint32 {
	best := NoSlot
	for slot := p.tree; slot != NoSlot; {
		b := &p.blocks[slot]
		if !b.key().less(k) {
			slot = b.left
			continue
		}
		best, slot = slot, b.right
	}
	return best
}
