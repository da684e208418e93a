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

// TestRAMOrder: what meets a change that waits goes behind it, in the order in which it
// came, although nothing is lent of where they meet. What meets none passes.
func TestRAMOrder(t *testing.T) {
	const size, kb = 1 << 20, 1 << 10
	store := must[backstore.Store](t)(backstore.NewRAM(size, 0))
	defer store.Close()
	l := newRAMLender(t, store)
	old, first, second := backstoretest.Pattern(size, 1), backstoretest.Pattern(256*kb, 2), backstoretest.Pattern(64*kb, 3)
	l.Write(t, 0, old)
	lent := l.lend(0, 4*kb)
	read := func(off, n int64) *backstore.Op {
		return &backstore.Op{Kind: backstore.Read, Off: off * kb, Data: backstoretest.Buffer(int(n * kb))}
	}
	behind, between, last := read(192, 8), read(60, 8), read(64, 8)
	mapped := &backstore.Op{Kind: backstore.Map, Off: 160 * kb, Len: 8 * kb}
	ops := []*backstore.Op{
		{Kind: backstore.Write, Off: 0, Data: first}, behind, between,
		{Kind: backstore.Write, Off: 64 * kb, Data: second}, last,
		{Kind: backstore.Discard, Off: 160 * kb, Len: 8 * kb}, mapped,
	}
	var ended []<-chan struct{}
	for _, op := range ops {
		ended = append(ended, l.Go(op))
	}
	if ref := l.lend(224*kb, 4*kb); ref != nil {
		t.Error("what is to be changed was lent")
		l.release(ref)
	}
	l.Write(t, 256*kb, first) // others pass
	for i := range ops {
		select {
		case <-ended[i]:
			t.Errorf("op %d has passed the one that waits", i)
		default:
		}
	}
	l.release(lent)
	for i := range ops {
		if <-ended[i]; ops[i].Err != nil {
			t.Errorf("op %d: %v", i, ops[i].Err)
		}
	}
	if !bytes.Equal(behind.Data, first[192*kb:200*kb]) || !bytes.Equal(between.Data, first[60*kb:68*kb]) || !bytes.Equal(last.Data, second[:8*kb]) || mapped.Mapped {
		t.Error("an op has passed another")
	}
}

// TestRAMOrderAtRandom: of what one thread does, everything reads what came before it,
// whatever is lent to it and another.
func TestRAMOrderAtRandom(t *testing.T) {
	const size, sector = 256 << 10, 512
	store := must[backstore.Store](t)(backstore.NewRAM(size, 0))
	defer store.Close()
	l, other := newRAMLender(t, store), newRAMLender(t, store)
	model := backstoretest.Pattern(size, 1)
	l.Write(t, 0, model)
	random := rand.New(rand.NewPCG(1, 2))
	type step struct {
		op    *backstore.Op
		ended <-chan struct{}
		want  []byte
	}
	for round := range 300 {
		var steps []step
		var returns []func()
		for range 30 {
			off := random.Int64N(size/sector) * sector
			n := min(size-off, (1+random.Int64N(64))*sector)
			op := &backstore.Op{Kind: backstore.Kind(random.IntN(int(backstore.Map))), Off: off, Len: n}
			s := step{op: op}
			switch op.Kind {
			case backstore.Flush: // is where something is lent, here
				from := []*ramLender{l, other}[random.IntN(2)]
				if ref := from.lend(off, int(n)); ref != nil {
					if from == l && !bytes.Equal(ref.Bytes(), model[off:][:len(ref.Bytes())]) {
						t.Fatalf("round %d: other data were lent than were written before", round)
					}
					returns = append(returns, func() { from.release(ref) })
				}
				continue
			case backstore.Read:
				op.Data, s.want = backstoretest.Buffer(int(n)), bytes.Clone(model[off:off+n])
			case backstore.Write:
				op.Data = backstoretest.Pattern(int(n), random.Uint64())
				copy(model[off:], op.Data)
			default:
				clear(model[off : off+n])
			}
			s.ended = l.Go(op)
			steps = append(steps, s)
		}
		random.Shuffle(len(returns), func(i, j int) { returns[i], returns[j] = returns[j], returns[i] })
		for _, f := range returns {
			f()
		}
		for _, s := range steps {
			if <-s.ended; s.op.Err != nil || s.want != nil && !bytes.Equal(s.op.Data, s.want) {
				t.Fatalf("round %d: %v of %d bytes at %d: error %v, or other data than were written before", round, s.op.Kind, s.op.Length(), s.op.Off, s.op.Err)
			}
		}
	}
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
