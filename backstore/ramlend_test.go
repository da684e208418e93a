package backstore_test

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

// ramLender is a thread with a pool that borrows from a RAM store.
type ramLender struct {
	*backstoretest.Client
	loop *evloop.Loop
}

func newRAMLender(t *testing.T, store backstore.Store) *ramLender {
	t.Helper()
	loop := newLendingLoop(t)
	return &ramLender{backstoretest.NewClient(t, store, loop), loop}
}

func newLendingLoop(t *testing.T) *evloop.Loop {
	t.Helper()
	loop, err := evloop.New(evloop.Config{Name: "lending", CPU: -1, Node: -1, Buffers: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	go loop.Run()
	t.Cleanup(loop.Stop)
	return loop
}

func (l *ramLender) lend(off int64, n int) (ref *buf.Ref) {
	backstoretest.On(l.loop, func() { ref = backstore.LenderOf(l.Lane).Lend(off, n) })
	return ref
}

func (l *ramLender) release(ref *buf.Ref) { backstoretest.On(l.loop, ref.Release) }

// TestRAMLends: what was written is lent, to the end of what was written, and nothing else.
func TestRAMLends(t *testing.T) {
	const page = 4096
	store := must[backstore.Store](t)(backstore.NewRAM(1<<20+512, 0))
	defer store.Close()
	l := newRAMLender(t, store)
	data := backstoretest.Pattern(9*page, 1)
	l.Write(t, 3*page, data)
	l.Write(t, 1<<20, data[:512])
	for _, c := range []struct {
		off     int64
		n, want int
	}{
		{3 * page, 512, 512}, {3*page + 512, 9*page - 512, 9*page - 512}, {4*page + 1, 20 * page, 8*page - 1}, {2 * page, page, 0}, {2 * page, 2 * page, 0},
		{12 * page, page, 0}, {1 << 20, 512, 512}, {1 << 20, 513, 0}, {-1, 1, 0}, {0, 0, 0},
	} {
		ref := l.lend(c.off, c.n)
		if c.want == 0 {
			if ref != nil {
				t.Errorf("%+v: %d bytes were lent", c, len(ref.Bytes()))
			}
			continue
		}
		if ref == nil {
			t.Errorf("%+v: nothing was lent", c)
			continue
		}
		if !bytes.Equal(ref.Bytes(), l.Read(t, c.off, c.want)) {
			t.Errorf("%+v: other data, or %d bytes", c, len(ref.Bytes()))
		}
		l.release(ref)
	}
}

// TestLentRAMStays: who changes what is lent waits, and nobody is lent it meanwhile.
// Other parts are changed at once.
func TestLentRAMStays(t *testing.T) {
	const size, span = 1 << 20, 64 << 10
	for _, kind := range []backstore.Kind{backstore.Write, backstore.Discard, backstore.WriteZeroes} {
		store := must[backstore.Store](t)(backstore.NewRAM(size, 0))
		l, other := newRAMLender(t, store), newRAMLender(t, store)
		old, want := backstoretest.Pattern(size, 1), make([]byte, span)
		l.Write(t, 0, old)
		first, second := l.lend(span, 4096), other.lend(span+span/2, 4096)
		op := backstore.Op{Kind: kind, Off: span, Len: span}
		if kind == backstore.Write {
			want = backstoretest.Pattern(span, 2)
			op.Data = want
		}
		ended := l.Go(&op)
		l.Write(t, 3*span, want) // others pass
		eventually.Holds(t, "a change waits", func() bool {
			ref := other.lend(span, 4096)
			if ref != nil {
				other.release(ref)
			}
			return ref == nil
		})
		l.release(first)
		select {
		case <-ended:
			t.Errorf("%v: ended while something was lent", kind)
		default:
		}
		if !bytes.Equal(second.Bytes(), old[span+span/2:][:4096]) {
			t.Errorf("%v: what was lent has changed", kind)
		}
		other.release(second)
		<-ended
		if op.Err != nil || !bytes.Equal(l.Read(t, span, span), want) || !bytes.Equal(l.Read(t, 0, span), old[:span]) || !bytes.Equal(l.Read(t, 2*span, span), old[2*span:3*span]) {
			t.Errorf("%v: error %v, or other data", kind, op.Err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCutLentRAM: what is cut off stays until it is returned; and a change that waited is
// refused when its place is not there any more.
func TestCutLentRAM(t *testing.T) {
	const size = 1 << 20
	store := must[backstore.Store](t)(backstore.NewRAM(size, 0))
	defer store.Close()
	l := newRAMLender(t, store)
	old := backstoretest.Pattern(size, 1)
	l.Write(t, 0, old)
	ref := l.lend(size-4096, 4096)
	op := backstore.Op{Kind: backstore.Write, Off: size - 4096, Data: make([]byte, 4096)}
	ended, cut := l.Go(&op), make(chan error)
	go func() { cut <- backstore.Resize(store, size/2) }()
	eventually.Finds(t, "size", size/2, func() int64 { return store.Info().Size })
	if !bytes.Equal(ref.Bytes(), old[size-4096:]) {
		t.Error("what was lent has changed")
	}
	l.release(ref)
	if err := <-cut; err != nil {
		t.Error(err)
	}
	if <-ended; op.Err == nil {
		t.Error("a write behind the end has no error")
	}
	if err := backstore.Resize(store, size); err != nil || !bytes.Equal(l.Read(t, size/2, size/2), make([]byte, size/2)) {
		t.Errorf("error %v, or what was cut off is still there", err)
	}
}

// TestClosedLentRAM: what is lent lasts longer than the lane and the store.
func TestClosedLentRAM(t *testing.T) {
	store := must[backstore.Store](t)(backstore.NewRAM(1<<20, 0))
	loop, data := newLendingLoop(t), backstoretest.Pattern(4096, 1)
	lane := must[backstore.Lane](t)(store.Lane(loop))
	var ref *buf.Ref
	backstoretest.On(loop, func() {
		lane.TryNow(&backstore.Op{Kind: backstore.Write, Data: data})
		ref = backstore.LenderOf(lane).Lend(0, 4096)
		lane.Close()
	})
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(ref.Bytes(), data) {
		t.Error("what was lent is not there any more")
	}
	backstoretest.On(loop, ref.Release)
}

// TestRAMLoansAtRandom: two threads borrow, write and discard all over each other, and what is lent
// never changes. All operations end.
func TestRAMLoansAtRandom(t *testing.T) {
	const size = 256 << 10
	store := must[backstore.Store](t)(backstore.NewRAM(size, 0))
	defer store.Close()
	done := make(chan struct{})
	for seed := range uint64(2) {
		l := newRAMLender(t, store)
		go func() {
			defer func() { done <- struct{}{} }()
			random := rand.New(rand.NewPCG(seed, 0))
			type loan struct {
				ref *buf.Ref
				was []byte
			}
			var loans []loan
			for range 2000 {
				off, n := random.Int64N(size-64<<10), 1+random.IntN(32<<10)
				switch ref := l.lend(off, n); {
				case ref != nil && len(loans) < 4:
					loans = append(loans, loan{ref, bytes.Clone(ref.Bytes())})
					continue
				case ref != nil:
					l.release(ref)
				}
				ops := [2]backstore.Op{{Kind: backstore.Write, Off: off, Data: backstoretest.Pattern(n, uint64(n))}, {Kind: backstore.Discard, Off: off + int64(n)/2, Len: int64(n)}}
				ended := [2]<-chan struct{}{l.Go(&ops[0]), l.Go(&ops[1])}
				for _, o := range loans {
					if !bytes.Equal(o.ref.Bytes(), o.was) {
						t.Error("what was lent has changed")
					}
					l.release(o.ref)
				}
				loans = loans[:0]
				for i := range ops {
					if <-ended[i]; ops[i].Err != nil {
						t.Error(ops[i].Err)
					}
				}
			}
			for _, o := range loans {
				l.release(o.ref)
			}
		}()
	}
	<-done
	<-done
}
