package buf

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"

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
	b := r.block()
	if b[0] == poisonByte && bytes.Equal(b[1:], b[:len(b)-1]) { // all at once: with the race detector bytes are slow
		return
	}
	i := slices.IndexFunc(b, func(c byte) bool { return c != poisonByte })
	panic(fmt.Sprintf("buf: page %d was written after its release: byte %d is %#x, expected %#x", r.page, i, b[i], poisonByte))
}

// poison fills b in `invariants` builds.
func poison(b []byte) {
	if !invariants.Enabled || len(b) == 0 {
		return
	}
	b[0] = poisonByte
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// Account counts the buffers that somebody uses. It belongs to the thread of the
// pools that they are from.
type Account struct {
	Used int      // bytes
	N    int      // buffers
	Of   *Account // in which all of it is counted as well; nil: none
}

// Add counts n bytes more, or less, of something that is no buffer.
func (a *Account) Add(n int) {
	for ; a != nil; a = a.Of {
		a.Used += n
	}
}

func (a *Account) open(n int) {
	for ; a != nil; a = a.Of {
		a.Used += n
		a.N++
	}
}

func (a *Account) close(n int) {
	for ; a != nil; a = a.Of {
		a.Used -= n
		a.N--
	}
}

// Loan is memory of another owner behind a Ref, so that what sends from buffers
// can send from it without a copy. It is embedded in the lender's own record of
// what it has lent and reused, so that lending allocates nothing.
type Loan struct {
	ref   Ref
	data  []byte
	owner Lender
	node  int // of SendFrom, plus 1
}

// Lender hears of the last Release of what it has lent, on the thread of the
// Loan's Pool. The memory is its own again.
type Lender interface{ Returned(*Loan) }

// Lend makes l a loan of data with one reference, which the caller must Release
// as one of a buffer of the pool; whoever waits for memory of the pool hears of
// the last Release too. owner keeps data as they are until Returned. Of a nil Pool
// it is a loan that is charged to nobody, and that nobody waits for.
func (p *Pool) Lend(l *Loan, data []byte, owner Lender) *Ref {
	if l.ref.count != 0 {
		panic("buf: a loan was lent again before it was returned")
	}
	l.data, l.owner, l.node = data, owner, 0
	l.ref = Ref{pool: p, size: uint32(len(data)), count: 1, loan: l}
	return &l.ref
}

// Lent reports whether the Ref is a loan.
func (r *Ref) Lent() bool { return r.loan != nil }

// SendFrom asks whoever sends the loan to let a thread of a NUMA node do so.
func (r *Ref) SendFrom(node int) { r.loan.node = node + 1 }

// Node is the node of SendFrom, if anybody has asked.
func (r *Ref) Node() (node int, ok bool) {
	if r.loan == nil || r.loan.node == 0 {
		return 0, false
	}
	return r.loan.node - 1, true
}

// ChargeAs counts the buffer's bytes where other's are counted, as Charge does,
// if they are.
func (r *Ref) ChargeAs(other *Ref) {
	if other.account != nil {
		r.Charge(other.account)
	}
}

// repay gives a loan back.
func (l *Loan) repay() {
	pool, owner := l.ref.pool, l.owner
	l.data, l.owner, l.ref = nil, nil, Ref{}
	owner.Returned(l)
	if pool != nil && pool.freed != nil {
		pool.freed()
	}
}

var copied atomic.Uint64

// Copy is copy, for data between a transport and a store. In `invariants` builds
// what it copies is counted, so that a test can prove that some way has no copies.
func Copy(dst, src []byte) int {
	n := copy(dst, src)
	if invariants.Enabled {
		copied.Add(uint64(n))
	}
	return n
}

// Copied is how many bytes Copy has copied in this process, 0 in other builds.
func Copied() uint64 { return copied.Load() }
