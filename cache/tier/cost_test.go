package tier

import (
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// typical is a cache as it is configured by default, but small.
var typical = setup{nodes: 1, block: 256 << 10, blocks: 8, parts: 4}

// direct is one op after the other on the loop's thread.
type direct struct {
	*backstoretest.Client
	op backstore.Op
}

func newDirect(t testing.TB, s setup, kind backstore.Kind, n int) *direct {
	volume, _ := s.wrap(t, newRAM(t))
	t.Cleanup(func() {
		if err := volume.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &direct{Client: backstoretest.NewClient(t, volume, backstoretest.NewLoop(t, false))}
	d.Write(t, 0, backstoretest.Pattern(256<<10, 1))
	for range 20 { // so often that it becomes popular
		d.Read(t, 0, 256<<10)
	}
	d.op = backstore.Op{Kind: kind, Data: backstoretest.Buffer(n)}
	return d
}

// now does the op in TryNow.
func (d *direct) now(t testing.TB) {
	if !t.Failed() && !d.Lane.TryNow(&d.op) || d.op.Err != nil {
		t.Errorf("%v was not done at once, error %v", d.op.Kind, d.op.Err)
	}
}

// submitted does the op in Submit.
func (d *direct) submitted(t testing.TB) {
	if !t.Failed() && !d.Lane.Submit(&d.op) || d.op.Err != nil {
		t.Errorf("%v did not end in Submit, error %v", d.op.Kind, d.op.Err)
	}
}

var costs = map[string]struct {
	setup setup
	kind  backstore.Kind
}{
	"hit, through":   {typical.with(Through, "lru"), backstore.Read},
	"hit, fussy":     {typical.with(Through, fussy), backstore.Read},
	"hit, back":      {typical.with(Back, "lru"), backstore.Read},
	"write, through": {typical.with(Through, "lru"), backstore.Write},
	"write, back":    {typical.with(Back, "lru"), backstore.Write},
}

// Neither of the two ways allocates.
func TestNoAllocations(t *testing.T) {
	for name, c := range costs {
		for _, n := range []int{sector, page, 64 << 10} {
			d := newDirect(t, c.setup, c.kind, n)
			backstoretest.On(d.Loop, func() {
				for way, do := range map[string]func(testing.TB){"TryNow": d.now, "Submit": d.submitted} {
					if got := testing.AllocsPerRun(100, func() { do(t) }); got != 0 {
						t.Errorf("%s of %d bytes by %s: %v allocations", name, n, way, got)
					}
				}
			})
		}
	}
}

// cold makes the next read a miss.
func (d *direct) cold() {
	p := &d.Lane.(*lane).blocks.Parts[0]
	p.Purge(0, 1)
}

// TestNoAllocationsOnMisses covers the way of a fill, once a lane has its
// transfers.
func TestNoAllocationsOnMisses(t *testing.T) {
	d := newDirect(t, typical.with(Through, "lru"), backstore.Read, page)
	backstoretest.On(d.Loop, func() {
		d.submitted(t)
		if got := testing.AllocsPerRun(100, func() { d.cold(); d.submitted(t) }); got != 0 {
			t.Errorf("a miss: %v allocations", got)
		}
	})
}

// BenchmarkTier is 4 KiB on the thread of the loop, over a store in memory.
func BenchmarkTier(b *testing.B) {
	for name, c := range costs {
		b.Run(name, func(b *testing.B) {
			d := newDirect(b, c.setup, c.kind, page)
			b.SetBytes(page)
			b.ReportAllocs()
			backstoretest.On(d.Loop, func() {
				for b.Loop() {
					d.now(b)
				}
			})
		})
	}
	b.Run("miss", func(b *testing.B) {
		d := newDirect(b, typical.with(Through, "lru"), backstore.Read, page)
		b.ReportAllocs()
		backstoretest.On(d.Loop, func() {
			for b.Loop() {
				d.cold()
				d.submitted(b)
			}
		})
	})
	b.Run("store below, read", func(b *testing.B) {
		store := newRAM(b)
		c := backstoretest.NewClient(b, store, backstoretest.NewLoop(b, false))
		c.Write(b, 0, backstoretest.Pattern(page, 1))
		op := backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(page)}
		backstoretest.On(c.Loop, func() {
			for b.Loop() {
				c.Lane.TryNow(&op)
			}
		})
	})
}
