// Package buf provides the data buffers of an event thread: page-aligned,
// off-heap, refcounted. Page alignment is what O_DIRECT and memory registration
// ask for; off-heap memory never moves and costs the garbage collector nothing.
//
// The memory is an arena of the thread's NUMA node (see arena).
//
// A Pool and all its Refs belong to one thread. Nothing in this package is
// atomic or locked.
package buf

import (
	"fmt"
	"math/bits"

	"lunar/internal/arena"
	"lunar/internal/invariants"
)

const (
	// PageSize is the alignment of every buffer and the smallest size class, in bytes.
	PageSize = 4096
	// MaxSize is the largest buffer that Get hands out, in bytes.
	MaxSize = 1 << 20

	orders = 9 // size classes: PageSize<<0 ... PageSize<<8 == MaxSize
	none   = ^uint32(0)
)

// Pool is one off-heap arena, split into power-of-two blocks by the buddy
// method. Every free list is last-in first-out, so the warmest block is used
// again first. Released blocks stay in their class; buddies are joined only when
// a Get finds no block, so that getting and releasing a common size is a pop and
// a push.
//
// INVARIANT: each page is in exactly one block, and the Ref of a block's first
// page says whether the block is free or in use. The Refs of its other pages
// mean nothing.
type Pool struct {
	arena *arena.Arena
	mem   []byte // of arena, whole pages
	refs  []Ref  // one per page
	heads [orders]uint32
	free  int
	inUse int

	aside  []uint32 // pages of blocks that are set aside and not in use
	asides int      // in use or not
	// joined says that no block was released since buddies were last joined, so
	// that a Get that cannot succeed does not search again.
	joined bool
	freed  func()
}

// NewPool is NewHugePool with huge pages where there are any.
func NewPool(bytes, node int) (*Pool, error) { return NewHugePool(bytes, node, arena.HugeAuto) }

// NewHugePool takes an arena of bytes, rounded up to whole pages, and touches
// every page; it fails, with numbers, if that does not fit. With node >= 0, the
// kernel's number, the memory is of that NUMA node as long as it has any; where
// the kernel or a container forbids mbind, the pages come from the node of the
// calling thread instead and Bound reports false.
func NewHugePool(bytes, node int, huge arena.Huge) (*Pool, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("buffer pool of %d bytes: expected at least one byte", bytes)
	}
	pages := (bytes + PageSize - 1) / PageSize
	if uint64(pages) >= uint64(none) {
		return nil, fmt.Errorf("buffer pool of %d bytes: expected fewer than 2^32-1 pages of %d bytes", bytes, PageSize)
	}
	size := pages * PageSize
	a, err := mapArena(size, node, huge)
	if err != nil {
		return nil, err
	}
	p := &Pool{arena: a, mem: a.Bytes()[:size:size], refs: make([]Ref, pages), free: size}
	p.seed()
	return p, nil
}

// seed splits the fresh arena into the largest blocks that fit. Pushing from the
// end makes the first Get use the lowest addresses.
func (p *Pool) seed() {
	for i := range p.heads {
		p.heads[i] = none
	}
	for page := uint32(len(p.refs)); page > 0; {
		order := min(uint8(bits.TrailingZeros32(page)), orders-1)
		page -= 1 << order
		p.push(page, order)
	}
	for i := range p.refs {
		p.refs[i].pool, p.refs[i].page = p, uint32(i)
	}
	poison(p.mem)
}

// Get returns a page-aligned buffer of n bytes with one reference, which the
// caller must Release. Its contents are undefined. It returns nil when no block
// is left; it never falls back to the heap. 1 <= n <= MaxSize.
func (p *Pool) Get(n int) *Ref {
	if n <= 0 || n > MaxSize {
		panic(fmt.Sprintf("buf: Get of %d bytes, expected 1 to %d", n, MaxSize))
	}
	order := orderOf(n)
	page := p.heads[order]
	if page == none {
		if page = p.split(order); page == none {
			return nil
		}
	} else {
		p.remove(page)
	}
	r := &p.refs[page]
	r.free, r.count, r.size = false, 1, uint32(n)
	p.free -= r.blockSize()
	p.inUse++
	if invariants.Enabled {
		r.assertPoison()
	}
	return r
}

// GetFor is Get of a buffer that is charged to an account.
func (p *Pool) GetFor(account *Account, n int) *Ref {
	r := p.Get(n)
	if r != nil {
		r.Charge(account)
	}
	return r
}

// orderOf returns the smallest size class that holds n bytes.
func orderOf(n int) uint8 { return uint8(bits.Len32(uint32(n-1) >> 12)) }

// split takes a block of a larger class apart and returns the first page of a
// detached block of the given order, or none.
func (p *Pool) split(order uint8) uint32 {
	from := p.larger(order)
	if from == orders {
		if !p.join(order) {
			return none
		}
		from = p.larger(order)
	}
	page := p.heads[from]
	p.remove(page)
	for from > order {
		from--
		p.push(page+1<<from, from)
	}
	p.refs[page].order = order
	return page
}

// larger returns the smallest class at or above order that has a free block, or
// orders when there is none.
func (p *Pool) larger(order uint8) uint8 {
	for order < orders && p.heads[order] == none {
		order++
	}
	return order
}

// join merges free buddies upward until a block of the wanted order exists and
// reports whether one does.
func (p *Pool) join(want uint8) bool {
	if p.joined || p.free < PageSize<<want {
		return false
	}
	for order := uint8(0); order < want; order++ {
		p.joinOrder(order)
	}
	p.joined = p.heads[want] == none
	return !p.joined
}

// joinOrder merges every pair of free buddies of one class.
func (p *Pool) joinOrder(order uint8) {
	for page := p.heads[order]; page != none; {
		next, buddy := p.refs[page].next, page^1<<order
		if p.isFree(buddy, order) {
			if next == buddy {
				next = p.refs[buddy].next
			}
			p.remove(page)
			p.remove(buddy)
			p.push(min(page, buddy), order+1)
		}
		page = next
	}
}

func (p *Pool) isFree(page uint32, order uint8) bool {
	if int(page) >= len(p.refs) {
		return false
	}
	r := &p.refs[page]
	return r.free && r.order == order
}

// push makes page the newest free block of its class.
func (p *Pool) push(page uint32, order uint8) {
	head := p.heads[order]
	r := &p.refs[page]
	r.free, r.order, r.next, r.prev = true, order, head, none
	if head != none {
		p.refs[head].prev = page
	}
	p.heads[order] = page
}

// remove detaches a free block from its class.
func (p *Pool) remove(page uint32) {
	r := &p.refs[page]
	if r.prev == none {
		p.heads[r.order] = r.next
	} else {
		p.refs[r.prev].next = r.next
	}
	if r.next != none {
		p.refs[r.next].prev = r.prev
	}
	r.free = false
}

// OnFree makes f follow every last Release. f runs inside of it, so it only
// notes that memory has become free.
func (p *Pool) OnFree(f func()) { p.freed = f }

// Memory returns all of the arena, for registering it with a device. It is mapped
// until Close; what is in it belongs to the holders of the buffers.
func (p *Pool) Memory() []byte { return p.mem }

// Size returns the arena's size in bytes.
func (p *Pool) Size() int { return len(p.mem) }

// Free returns how many bytes are not handed out. Fragmentation can make a Get
// of fewer bytes fail.
func (p *Pool) Free() int { return p.free }

// InUse returns how many buffers are handed out and not yet fully released.
func (p *Pool) InUse() int { return p.inUse }

// Leaked returns the buffers still in use, for tests that expect none.
func (p *Pool) Leaked() []*Ref {
	var leaked []*Ref
	for i := range p.refs {
		if p.refs[i].count > 0 {
			leaked = append(leaked, &p.refs[i])
		}
	}
	return leaked
}

// Bound reports whether the kernel accepted the NUMA policy that NewPool asked for.
func (p *Pool) Bound() bool { return p.arena != nil && p.arena.Bound().OK }

// Pages tells what pages the arena is made of, and why they are not huge where
// that is known.
func (p *Pool) Pages() (arena.Pages, string) { return p.arena.Pages() }

// Close unmaps the arena. No buffer may be in use: not by a Ref, not by the
// kernel. A pool with buffers in use stays mapped and Close reports how many.
// Closing again does nothing.
func (p *Pool) Close() error {
	if p.inUse > 0 {
		return fmt.Errorf("buffer pool of %d bytes: %d buffers still in use, expected none", len(p.mem), p.inUse)
	}
	p.mem, p.refs, p.free = nil, nil, 0
	for i := range p.heads {
		p.heads[i] = none
	}
	return p.unmap()
}

// SetAside keeps up to n blocks of size bytes apart, so that only GetAside hands them
// out, whatever else is in use and however the rest is split. It is called before the
// first Get.
func (p *Pool) SetAside(n, size int) {
	p.aside = make([]uint32, 0, n)
	for range n {
		r := p.Get(size)
		if r == nil {
			return
		}
		r.aside = true
		p.asides++
		r.Release()
	}
}

// Asides returns how many blocks are set aside, in use or not.
func (p *Pool) Asides() int { return p.asides }

// GetAside is Get for the blocks that are set aside.
func (p *Pool) GetAside(n int) *Ref {
	last := len(p.aside) - 1
	if last < 0 || n > p.refs[p.aside[last]].blockSize() {
		return nil
	}
	r := &p.refs[p.aside[last]]
	p.aside = p.aside[:last]
	r.count, r.size = 1, uint32(n)
	p.free -= r.blockSize()
	p.inUse++
	if invariants.Enabled {
		r.assertPoison()
	}
	return r
}

// Unreserved returns how many bytes are not handed out of those that are not set aside.
func (p *Pool) Unreserved() int {
	if len(p.aside) == 0 {
		return p.free
	}
	return p.free - len(p.aside)*p.refs[p.aside[0]].blockSize()
}
