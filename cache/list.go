package cache

// Replacement orders the resident blocks of one LU in one partition by who is
// to go first. All methods are called under the partition's lock.
type Replacement interface {
	// Insert adds a block that has just become resident.
	Insert(slot uint32, k Key)
	// Touch notes a use.
	Touch(slot uint32)
	// Remove takes a block out; evicted tells that it makes room, rather than
	// that its data have become invalid.
	Remove(slot uint32, evicted bool)
	// Oldest returns the block that is to go first so that incoming may enter,
	// NoSlot if there is none.
	Oldest(incoming Key) uint32
	// Spare gives the oldest block another round, because it may not go now.
	Spare(slot uint32)
}

// lruList is the default replacement: an intrusive list, youngest first, that
// allocates nothing.
type lruList struct {
	blocks     []block
	head, tail uint32
}

func newLRUList(blocks []block) *lruList { return &lruList{blocks, NoSlot, NoSlot} }

// Insert implements Replacement.
func (l *lruList) Insert(slot uint32, _ Key) {
	b := &l.blocks[slot]
	b.prev, b.next = NoSlot, l.head
	if l.head != NoSlot {
		l.blocks[l.head].prev = slot
	} else {
		l.tail = slot
	}
	l.head = slot
}

// Touch implements Replacement.
func (l *lruList) Touch(slot uint32) {
	if l.head != slot {
		l.Remove(slot, false)
		l.Insert(slot, Key{})
	}
}

// Remove implements Replacement.
func (l *lruList) Remove(slot uint32, _ bool) {
	b := &l.blocks[slot]
	if b.prev != NoSlot {
		l.blocks[b.prev].next = b.next
	} else {
		l.head = b.next
	}
	if b.next != NoSlot {
		l.blocks[b.next].prev = b.prev
	} else {
		l.tail = b.prev
	}
}

// Oldest implements Replacement.
func (l *lruList) Oldest(Key) uint32 { return l.tail }

// Spare implements Replacement.
func (l *lruList) Spare(slot uint32) { l.Touch(slot) }
