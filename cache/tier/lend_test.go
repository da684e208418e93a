package tier

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/buf"
	"lunar/internal/eventually"
	"lunar/internal/evloop"
)

// lendingClient is one whose loop has a pool, as event threads do.
func lendingClient(t testing.TB, store backstore.Store) *backstoretest.Client {
	t.Helper()
	loop, err := evloop.New(evloop.Config{Name: "lending", CPU: -1, Node: -1, Buffers: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	go loop.Run()
	t.Cleanup(loop.Stop)
	return backstoretest.NewClient(t, store, loop)
}

// lending is a lending client of a new volume.
func (s setup) lending(t testing.TB) (*backstoretest.Client, *lane) {
	t.Helper()
	w, _ := s.wrap(t, newMem(t, false))
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	c := lendingClient(t, w)
	return c, c.Lane.(*lane)
}

func (l *lane) lend(off int64, n int) (ref *buf.Ref) {
	backstoretest.On(l.loop, func() { ref = l.Lend(off, n) })
	return ref
}

// waits is how often somebody has waited for a block.
func (l *lane) waits() (n uint64) {
	for i := range l.blocks.Parts {
		n += l.blocks.Parts[i].Stats().Waits
	}
	return n
}

// What was lent is the data of its time until it is given back: who writes waits.
func TestLentDataStay(t *testing.T) {
	for _, policy := range []Policy{Through, Back} {
		c, l := large.with(policy, "lru").lending(t)
		old, fresh := backstoretest.Pattern(8*page, 1), backstoretest.Pattern(8*page, 2)
		c.Write(t, 0, old)
		c.Read(t, 0, len(old))
		ref := l.lend(page+512, 4*page)
		if ref == nil || !bytes.Equal(ref.Bytes(), old[page+512:][:4*page]) {
			t.Fatalf("%v: nothing was lent, or other data", policy)
		}
		write := backstore.Op{Kind: backstore.Write, Data: fresh}
		written := c.Go(&write)
		eventually.Holds(t, "the write waits", func() bool { return l.waits() > 0 })
		if !bytes.Equal(ref.Bytes(), old[page+512:][:4*page]) {
			t.Errorf("%v: what was lent has changed", policy)
		}
		backstoretest.On(l.loop, ref.Release)
		<-written
		if write.Err != nil || !bytes.Equal(c.Read(t, 0, len(fresh)), fresh) {
			t.Errorf("%v: error %v, or not the data that were written", policy, write.Err)
		}
	}
}

// Only what is there is lent, over blocks that follow each other in memory.
func TestWhatIsLent(t *testing.T) {
	c, l := large.with(Through, "lru").lending(t)
	block := large.block
	c.Write(t, 0, backstoretest.Pattern(2*block, 1))
	c.Read(t, 0, 2*block)
	for _, tt := range []struct {
		off  int64
		n    int
		want int
	}{
		{0, 512, 512},
		{int64(block) - page, 3 * page, 3 * page},
		{0, 2 * block, 2 * block},
		{int64(block), 2 * block, block}, // the one behind is not there
		{4 * int64(block), page, 0},      // not there
		{backstoretest.Size - page, 2 * page, 0},
		{-512, page, 0},
		{0, 0, 0},
	} {
		ref := l.lend(tt.off, tt.n)
		got := 0
		if ref != nil {
			got = len(ref.Bytes())
			backstoretest.On(l.loop, ref.Release)
		}
		if got != tt.want {
			t.Errorf("%d bytes at %d: %d were lent, expected %d", tt.n, tt.off, got, tt.want)
		}
	}
}

// TestLentRuns: blocks that came in any order are lent with their own data, as far as they
// follow each other in memory, and all of them are given back.
func TestLentRuns(t *testing.T) {
	c, l := large.with(Back, "lru").lending(t)
	block, blocks := large.block, 8
	data := backstoretest.Pattern(blocks*block, 3)
	random := rand.New(rand.NewPCG(1, 2))
	for _, i := range random.Perm(blocks / 2) {
		c.Write(t, int64(2*i*block), data[2*i*block:][:2*block])
	}
	longer := 0
	for range 2000 {
		off := random.IntN(blocks*block/512) * 512
		n := min((1+random.IntN(6*block/512))*512, len(data)-off)
		ref := l.lend(int64(off), n)
		if ref == nil {
			t.Fatalf("%d bytes at %d: nothing was lent", n, off)
		}
		got := ref.Bytes()
		if least := min(n, block-off%block); len(got) < least || len(got) > n || !bytes.Equal(got, data[off:][:len(got)]) {
			t.Fatalf("%d bytes at %d: %d were lent, or others", n, off, len(got))
		}
		if off/block != (off+len(got)-1)/block {
			longer++
		}
		backstoretest.On(l.loop, ref.Release)
	}
	if longer == 0 {
		t.Error("no two blocks were lent together")
	}
	c.Write(t, 0, data) // waits for ever for what was not given back
}

// TestLendingDoesNotAllocate in steady state.
func TestLendingDoesNotAllocate(t *testing.T) {
	c, l := large.with(Through, "lru").lending(t)
	c.Write(t, 0, backstoretest.Pattern(page, 1))
	c.Read(t, 0, page)
	backstoretest.On(l.loop, func() {
		if n := testing.AllocsPerRun(100, func() { l.Lend(0, page).Release() }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// BenchmarkLend is a 4 KiB hit without a copy.
func BenchmarkLend(b *testing.B) {
	c, l := large.with(Through, "lru").lending(b)
	c.Write(b, 0, backstoretest.Pattern(page, 1))
	c.Read(b, 0, page)
	b.ReportAllocs()
	backstoretest.On(l.loop, func() {
		for b.Loop() {
			l.Lend(0, page).Release()
		}
	})
}

// What was lent stays while the volume is closed and wrapped anew under its user, and
// the volume lends through the slot that it is in.
func TestLentFromSlot(t *testing.T) {
	c, mem := newCache(t, large.config()), newMem(t, false)
	wrap := func(store backstore.Store) (backstore.Store, error) { return c.Wrap(store, VolumeConfig{ID: 7}) }
	store, err := wrap(mem)
	if err != nil {
		t.Fatal(err)
	}
	slot := backstore.NewSlot(store)
	t.Cleanup(func() {
		if err := slot.Close(); err != nil {
			t.Error(err)
		}
	})
	client := lendingClient(t, slot)
	lend := func() (ref *buf.Ref) {
		backstoretest.On(client.Loop, func() {
			if lender := backstore.LenderOf(client.Lane); lender != nil {
				ref = lender.Lend(0, page)
			}
		})
		return ref
	}
	want := backstoretest.Pattern(page, 1)
	client.Write(t, 0, want)
	client.Read(t, 0, page)
	ref := lend()
	if ref == nil {
		t.Fatal("found that nothing is lent through a slot")
	}
	err = slot.Exchange(t.Context(), func(old backstore.Store) (backstore.Store, error) {
		old.(Changeable).Keep()
		if err := old.(*volume).part(); err != nil { // all of Close but that of the store
			return old, err
		}
		return wrap(mem)
	})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ref.Bytes(), want) || !bytes.Equal(client.Read(t, 0, page), want) {
		t.Error("found other data in what was lent, or after it")
	}
	backstoretest.On(client.Loop, ref.Release)
	if err := slot.Exchange(t.Context(), func(old backstore.Store) (backstore.Store, error) { return mem, old.(*volume).part() }); err != nil {
		t.Fatal(err)
	}
	if ref := lend(); ref != nil {
		t.Error("found that a store lends which has no cache")
	}
}
