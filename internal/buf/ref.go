package buf

import (
	"fmt"

	"lunar/internal/invariants"
)

// poisonByte fills released buffers in `invariants` builds.
const poisonByte = 0xff

// Ref is a counted reference to one buffer. It belongs to its Pool's thread: no
// other thread may call any of its methods.
//
// In `invariants` builds a released buffer is filled with 0xff, Get panics when
// something wrote to it since, and Bytes panics on a released Ref.
type Ref struct {
	pool       *Pool
	page       uint32
	size       uint32 // bytes asked for
	count      int32
	next, prev uint32 // free list of the block's class
	order      uint8
	free       bool
	aside      bool     // its block is set aside
	account    *Account // of whoever the buffer is charged to
	loan       *Loan    // nil: a buffer of the pool
}

// Bytes returns the buffer: its length is what Get was asked for, its capacity
// the whole block (a power of two); or what was lent, which is only to be read. It
// is valid until the last Release.
func (r *Ref) Bytes() []byte {
	if invariants.Enabled {
		r.assertInUse("Bytes")
	}
	if r.loan != nil {
		return r.loan.data
	}
	return r.block()[:r.size]
}

// Retain adds a reference. Each needs a Release of its own.
func (r *Ref) Retain() {
	r.assertInUse("Retain")
	r.count++
}

// Charge counts the buffer in the account from now until its last Release,
// wherever that happens. A buffer is charged at most once.
func (r *Ref) Charge(account *Account) {
	r.assertInUse("Charge")
	r.account = account
	account.open(int(r.size))
}

// Release drops one reference; the last one gives the buffer back to its Pool.
// Releasing more often than retained panics in every build: going on would hand
// one initiator's data to another.
func (r *Ref) Release() {
	r.assertInUse("Release")
	if r.count--; r.count > 0 {
		return
	}
	if r.account != nil {
		r.account.close(int(r.size))
		r.account = nil
	}
	if r.loan != nil {
		r.loan.repay()
		return
	}
	if invariants.Enabled {
		poison(r.block())
	}
	p := r.pool
	p.free += r.blockSize()
	p.inUse--
	if r.aside {
		p.aside = append(p.aside, r.page)
	} else {
		p.joined = false
		p.push(r.page, r.order)
	}
	if p.freed != nil {
		p.freed()
	}
}

func (r *Ref) blockSize() int { return PageSize << r.order }

func (r *Ref) block() []byte {
	from := int(r.page) * PageSize
	to := from + r.blockSize()
	return r.pool.mem[from:to:to]
}

func (r *Ref) assertInUse(method string) {
	if r.count <= 0 {
		r.panicReleased(method)
	}
}

func (r *Ref) panicReleased(method string) {
	panic(fmt.Sprintf("buf: %s of a released buffer (page %d)", method, r.page))
}

// assertPoison proves that nothing wrote to the block after its last Release.
func (r *Ref) assertPoison() {
	for i, b := range r.block() {
		if b != poisonByte {
			panic(fmt.Sprintf("buf: page %d was written after its release: byte %d is %#x, expected %#x", r.page, i, b, poisonByte))
		}
	}
}

// poison fills b in `invariants` builds.
func poison(b []byte) {
	if !invariants.Enabled {
		return
	}
	for i := range b {
		b[i] = poisonByte
	}
}
