package buf

import (
	"math/bits"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"lunar/internal/invariants"
)

func newPool(t testing.TB, bytes int) *Pool {
	t.Helper()
	p, err := NewPool(bytes, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestGetSizes(t *testing.T) {
	p := newPool(t, 4<<20)
	for _, c := range []struct{ ask, block int }{
		{1, 4096}, {4095, 4096}, {4096, 4096}, {4097, 8192}, {65536, 65536}, {65537, 131072}, {MaxSize - 1, MaxSize}, {MaxSize, MaxSize},
	} {
		r := p.Get(c.ask)
		b := r.Bytes()
		if len(b) != c.ask || cap(b) != c.block {
			t.Errorf("Get(%d): len %d cap %d, expected %d and %d", c.ask, len(b), cap(b), c.ask, c.block)
		}
		if addr := uintptr(unsafe.Pointer(&b[0])); addr%PageSize != 0 {
			t.Errorf("Get(%d): address %#x is not page-aligned", c.ask, addr)
		}
		if p.Free() != p.Size()-c.block || p.InUse() != 1 {
			t.Errorf("Get(%d): %d free and %d in use of %d", c.ask, p.Free(), p.InUse(), p.Size())
		}
		r.Release()
	}
	if p.Free() != p.Size() || p.InUse() != 0 {
		t.Errorf("after all releases: %d free of %d, %d in use", p.Free(), p.Size(), p.InUse())
	}
}

func TestGetOutsideLimitsPanics(t *testing.T) {
	p := newPool(t, 1<<20)
	for _, n := range []int{-1, 0, MaxSize + 1} {
		expectPanic(t, func() { p.Get(n) })
	}
}

func TestNewPoolRefusesNonsense(t *testing.T) {
	for _, c := range []struct{ bytes, node int }{{0, -1}, {-1, -1}, {1 << 20, 1024}} {
		if p, err := NewPool(c.bytes, c.node); err == nil {
			t.Errorf("NewPool(%d, %d) succeeded with %d bytes, expected an error", c.bytes, c.node, p.Size())
		}
	}
}

func TestPoolOnNode(t *testing.T) {
	p, err := NewPool(1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := p.Get(MaxSize)
	r.Bytes()[MaxSize-1] = 1
	r.Release()
	t.Logf("bound to node 0: %v", p.Bound())
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestExhaustionReturnsNil(t *testing.T) {
	p := newPool(t, 3*PageSize)
	var refs []*Ref
	for r := p.Get(1); r != nil; r = p.Get(1) {
		refs = append(refs, r)
	}
	if len(refs) != 3 || p.Free() != 0 {
		t.Fatalf("got %d pages of 3, %d bytes free", len(refs), p.Free())
	}
	for _, r := range refs {
		r.Release()
	}
}

// A pool cut into pages serves its largest size again once they are back.
func TestJoinAfterFragmentation(t *testing.T) {
	p := newPool(t, 2*MaxSize)
	var refs []*Ref
	for r := p.Get(1); r != nil; r = p.Get(1) {
		refs = append(refs, r)
	}
	for _, r := range refs[1:] {
		r.Release()
	}
	if r := p.Get(MaxSize); r == nil {
		t.Error("no joined block although one half of the arena is free")
	} else if r2 := p.Get(MaxSize); r2 != nil {
		t.Error("two joined blocks although a page between them is in use")
	} else {
		r.Release()
	}
	refs[0].Release()
	a, b := p.Get(MaxSize), p.Get(MaxSize)
	if a == nil || b == nil {
		t.Fatal("the whole arena is free but does not join")
	}
	a.Release()
	b.Release()
}

func TestRetain(t *testing.T) {
	p := newPool(t, 1<<20)
	r := p.Get(100)
	r.Retain()
	r.Release()
	if p.InUse() != 1 {
		t.Errorf("%d in use after one of two releases, expected 1", p.InUse())
	}
	if leaked := p.Leaked(); len(leaked) != 1 || leaked[0] != r {
		t.Errorf("leaked %v, expected the one buffer", leaked)
	}
	if err := p.Close(); err == nil {
		t.Error("Close with a buffer in use succeeded")
	}
	r.Release()
	if p.InUse() != 0 || p.Leaked() != nil {
		t.Errorf("%d in use after the last release, expected 0", p.InUse())
	}
}

func TestDoubleReleasePanics(t *testing.T) {
	p := newPool(t, 1<<20)
	r := p.Get(1)
	r.Release()
	expectPanic(t, r.Release)
	expectPanic(t, r.Retain)
}

// These checks exist only under the build tag.
func TestInvariantChecks(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs -tags invariants")
	}
	p := newPool(t, PageSize)
	r := p.Get(PageSize)
	b := r.Bytes()
	b[7] = 1
	r.Release()
	if b[7] != poisonByte {
		t.Errorf("byte of a released buffer is %#x, expected %#x", b[7], poisonByte)
	}
	expectPanic(t, func() { r.Bytes() })
	b[7] = 1
	expectPanic(t, func() { p.Get(1) })
	p.inUse, p.free = 0, p.Size() // the panic left them counting the refused buffer
}

func TestCloseTwice(t *testing.T) {
	p := newPool(t, 1<<20)
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if r := p.Get(1); r != nil {
		t.Error("a closed pool handed out a buffer")
	}
}

// Whatever is asked and released: blocks never overlap, the sums are right, and
// in the end everything joins again.
func TestPoolProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pages := rapid.IntRange(1, 600).Draw(rt, "pages")
		p, err := NewPool(pages*PageSize, -1)
		if err != nil {
			rt.Fatal(err)
		}
		m := model{pool: p, owner: make([]*Ref, pages)}
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "get") {
				m.get(rt, rapid.IntRange(1, MaxSize).Draw(rt, "size"))
			} else if len(m.live) > 0 {
				m.release(rt, rapid.IntRange(0, len(m.live)-1).Draw(rt, "which"))
			}
		}
		m.finish(rt)
	})
}

// model knows which page belongs to which buffer.
type model struct {
	pool  *Pool
	owner []*Ref
	live  []*Ref
	used  int
}

func (m *model) get(rt *rapid.T, n int) {
	r := m.pool.Get(n)
	if r == nil {
		m.expectNoRoom(rt, n)
		return
	}
	for page := int(r.page); page < int(r.page)+cap(r.Bytes())/PageSize; page++ {
		if m.owner[page] != nil {
			rt.Fatalf("page %d was handed out twice", page)
		}
		m.owner[page] = r
	}
	m.live = append(m.live, r)
	m.used += cap(r.Bytes())
	m.checkSums(rt)
}

// expectNoRoom proves that no aligned run of free pages would have served n bytes.
func (m *model) expectNoRoom(rt *rapid.T, n int) {
	block := 1 << orderOf(n)
	for at := 0; at+block <= len(m.owner); at += block {
		free := true
		for _, r := range m.owner[at : at+block] {
			free = free && r == nil
		}
		if free {
			rt.Fatalf("Get(%d) found nothing, but pages %d to %d are free", n, at, at+block-1)
		}
	}
}

func (m *model) release(rt *rapid.T, i int) {
	r := m.live[i]
	m.used -= cap(r.Bytes())
	for page := range m.owner {
		if m.owner[page] == r {
			m.owner[page] = nil
		}
	}
	m.live = append(m.live[:i], m.live[i+1:]...)
	r.Release()
	m.checkSums(rt)
}

func (m *model) checkSums(rt *rapid.T) {
	if m.pool.Free() != m.pool.Size()-m.used || m.pool.InUse() != len(m.live) {
		rt.Fatalf("%d free and %d in use, expected %d and %d", m.pool.Free(), m.pool.InUse(), m.pool.Size()-m.used, len(m.live))
	}
}

func (m *model) finish(rt *rapid.T) {
	for len(m.live) > 0 {
		m.release(rt, 0)
	}
	m.get(rt, min(MaxSize, PageSize<<(bits.Len(uint(len(m.owner)))-1)))
	m.release(rt, 0)
	if err := m.pool.Close(); err != nil {
		rt.Fatal(err)
	}
}

func TestGetReleaseAllocateNothing(t *testing.T) {
	p := newPool(t, 8<<20)
	keep := p.Get(4096)
	n := testing.AllocsPerRun(100, func() {
		a, b := p.Get(4096), p.Get(1<<16)
		a.Retain()
		a.Release()
		a.Release()
		b.Release()
		p.Get(MaxSize).Release()
	})
	keep.Release()
	if n != 0 {
		t.Errorf("%v allocations, expected none", n)
	}
}

func BenchmarkGetRelease(b *testing.B) {
	p := newPool(b, 64<<20)
	for b.Loop() {
		p.Get(4096).Release()
	}
}

func expectPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

// A buffer counts in its account until the last release, of which the pool
// tells.
func TestChargeAndOnFree(t *testing.T) {
	p := newPool(t, 1<<20)
	freed, account := 0, Account{Used: 7}
	p.OnFree(func() { freed++ })
	r := p.Get(5000)
	r.Charge(&account)
	r.Retain()
	r.Release()
	if account != (Account{Used: 5007, N: 1}) || freed != 0 {
		t.Errorf("account %v and %d notices while a reference is left, expected 5007 and 0", account, freed)
	}
	r.Release()
	p.Get(5000).Release() // the same block, not charged
	if account != (Account{Used: 7}) || freed != 2 {
		t.Errorf("account %v and %d notices in the end, expected 7 and 2", account, freed)
	}
}

// Blocks that are set aside are there for GetAside alone, however the rest is split.
func TestSetAside(t *testing.T) {
	const block = 256 << 10
	p := newPool(t, 1<<20)
	p.SetAside(2, block)
	if p.Asides() != 2 || p.Free() != 1<<20 || p.Unreserved() != 1<<19 || p.InUse() != 0 {
		t.Fatalf("%d blocks, %d free, %d of them common, %d in use", p.Asides(), p.Free(), p.Unreserved(), p.InUse())
	}
	var all []*Ref
	for r := p.Get(PageSize); r != nil; r = p.Get(PageSize) {
		all = append(all, r)
	}
	if len(all) != 128 {
		t.Errorf("%d pages to be had, expected half of 256", len(all))
	}
	if p.GetAside(block+1) != nil {
		t.Error("a block of more than its size")
	}
	a, b := p.GetAside(block), p.GetAside(1)
	if a == nil || b == nil || p.GetAside(1) != nil || p.Free() != 0 || p.Unreserved() != 0 {
		t.Fatalf("blocks %v and %v, %d free, %d of them common", a, b, p.Free(), p.Unreserved())
	}
	if len(a.Bytes()) != block || len(b.Bytes()) != 1 {
		t.Errorf("%d and %d bytes", len(a.Bytes()), len(b.Bytes()))
	}
	a.Release()
	if p.Get(PageSize) != nil {
		t.Error("anybody gets a block that is set aside")
	}
	if a = p.GetAside(PageSize); a == nil {
		t.Fatal("the block has not come back")
	}
	for _, r := range append(all, a, b) {
		r.Release()
	}
	if p.Free() != 1<<20 || p.Unreserved() != 1<<19 || p.InUse() != 0 {
		t.Errorf("in the end %d free, %d of them common, %d in use", p.Free(), p.Unreserved(), p.InUse())
	}
}
