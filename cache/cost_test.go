package cache

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"unsafe"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Nothing of the default cache allocates in steady state.
func TestNothingAllocates(t *testing.T) {
	p := partition(t, 64)
	g := geometry(t, Layout{BlockSize: 16 << 10, Neighbours: 4, Partitions: 8, Nodes: 2})
	var threshold atomic.Int64
	router := NewRouter(g, 0, &threshold)
	pieces := make([]Piece, MaxNodes)
	extents := make([]Extent, 8)
	var w Waiter
	n := uint64(0)
	logged, err := NewPartition(Config{Slots: 64, BlockSize: 16 << 10, LUs: 3, Journal: newNotebook(t, 64)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"route", func() { router.Route(&Request{LU: 1, Off: 12345, Len: 256 << 10}, pieces) }},
		{"hit", func() { access(p, Key{1, 0}) }},
		{"miss and evict", func() { n++; access(p, Key{1, n}) }},
		{"write, wait, flush", func() {
			n++
			k := Key{1, n % 50}
			dirtyWrite(p, k, 7)
			run := p.TakeDirty(Key{}, Key{LU: 9}, extents, nil)
			p.BeginWrite(k, 1, 1, false, &w)
			p.EndFlush(extents[:run.Extents], true)
		}},
		{"write and flush with a journal", func() {
			n++
			dirtyWrite(logged, Key{1, n % 50}, 7)
			run := logged.TakeDirty(Key{}, Key{LU: 9}, extents, nil)
			logged.EndFlush(extents[:run.Extents], true)
		}},
		{"drop", func() {
			g := p.BeginDrop(Key{1, 0}, 1, nil)
			p.EndDrop(&g, true)
		}},
	} {
		if allocs := testing.AllocsPerRun(200, c.f); allocs != 0 {
			t.Errorf("%s: %v allocations, expected none", c.name, allocs)
		}
	}
}

// Metadata cost at most 1 % of the cache for blocks of 16 KiB and more.
func TestMetadataOverhead(t *testing.T) {
	const cache = 1 << 30
	for size := MinBlock; size <= MaxBlock; size *= 2 {
		// One slot more than a power of two: the index is at its largest.
		slots := cache / size
		worst := max(MetadataSize(slots)*slots, MetadataSize(slots+1)*slots) / slots
		share := float64(worst) / cache
		t.Logf("block %4d KiB: %9d bytes of metadata per GiB, %.3f %%", size>>10, worst, share*100)
		if size >= 16<<10 && share > 0.01 {
			t.Errorf("block %d: %.2f %% of the cache, expected at most 1 %%", size, share*100)
		}
	}
	if n := unsafe.Sizeof(block{}); n%8 != 0 {
		t.Errorf("a block record of %d bytes, expected a multiple of 8", n)
	}
}

const benchSlots = 1 << 16

// keys is a shuffled walk through n blocks; walks of different seeds differ, so
// that memory is not visited in the order in which it was filled.
func keys(n int, seed uint64) []uint64 {
	out := make([]uint64, n)
	for i, v := range rand.New(rand.NewPCG(3, seed)).Perm(n) {
		out[i] = uint64(v)
	}
	return out
}

// BenchmarkHit: one lookup that finds its block, with what the order of use
// costs. The partition also takes its lock, pins and unpins.
func BenchmarkHit(b *testing.B) {
	fill, walk := keys(benchSlots, 1), keys(benchSlots, 2)
	b.Run("partition", func(b *testing.B) {
		p := benchPartition(b, "lru")
		for _, n := range fill {
			access(p, Key{0, n})
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			r := p.Read(Key{0, walk[i%benchSlots]}, 1, nil)
			p.Unpin(r.Slot)
		}
	})
	b.Run("index and list", func(b *testing.B) {
		p := benchPartition(b, "lru")
		for _, n := range fill {
			access(p, Key{0, n})
		}
		order := p.lus[0].order.(*lruList)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			k := Key{0, walk[i%benchSlots]}
			order.Touch(p.index.find(p.blocks, k, k.hash()))
		}
	})
	for name, c := range references(b) {
		b.Run(name, func(b *testing.B) {
			for _, n := range fill {
				c.add(n)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.get(walk[i%benchSlots])
			}
		})
	}
}

// BenchmarkInsertEvict: a miss whose block enters and pushes another out.
func BenchmarkInsertEvict(b *testing.B) {
	walk := keys(8*benchSlots, 3)
	b.Run("partition", func(b *testing.B) {
		p := benchPartition(b, "lru")
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			r := p.Read(Key{0, walk[i%len(walk)]}, 1, nil)
			p.EndFill(r.Slot, r.Mask, 0, nil)
		}
	})
	for name, c := range references(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.add(walk[i%len(walk)])
			}
		})
	}
}

func benchPartition(b *testing.B, policy string) *Partition {
	p, err := NewPartition(Config{Slots: benchSlots, BlockSize: 256 << 10, LUs: 1}, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := p.SetLU(0, LUConfig{Replacement: policy}); err != nil {
		b.Fatal(err)
	}
	return p
}

// reference is a cache of golang-lru with the same entries.
type reference struct {
	get func(uint64)
	add func(uint64)
}

func references(b *testing.B) map[string]reference {
	simple, err1 := simplelru.NewLRU[uint64, uint32](benchSlots, nil)
	locked, err2 := lru.New[uint64, uint32](benchSlots)
	twoQ, err3 := lru.New2Q[uint64, uint32](benchSlots)
	if err1 != nil || err2 != nil || err3 != nil {
		b.Fatal(err1, err2, err3)
	}
	return map[string]reference{
		"golang-lru simplelru": {func(n uint64) { simple.Get(n) }, func(n uint64) { simple.Add(n, 1) }},
		"golang-lru lru":       {func(n uint64) { locked.Get(n) }, func(n uint64) { locked.Add(n, 1) }},
		"golang-lru 2q":        {func(n uint64) { twoQ.Get(n) }, func(n uint64) { twoQ.Add(n, 1) }},
	}
}

// BenchmarkAlgorithm1: interpreting one request, by its size in blocks.
func BenchmarkAlgorithm1(b *testing.B) {
	var threshold atomic.Int64
	threshold.Store(64 << 10)
	for _, c := range []struct {
		name  string
		block int
		n     int
	}{{"4 KiB in 256 KiB blocks", 256 << 10, 4 << 10}, {"512 KiB in 256 KiB blocks", 256 << 10, 512 << 10}, {"512 KiB in 4 KiB blocks", 4 << 10, 512 << 10}} {
		b.Run(c.name, func(b *testing.B) {
			g := geometry(b, Layout{BlockSize: c.block, Neighbours: 4, Partitions: 144, Nodes: 4})
			r := NewRouter(g, 0, &threshold)
			out := make([]Piece, 160)
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				r.Route(&Request{LU: 3, Off: i % 1000000 * 4096, Len: c.n}, out)
			}
		})
	}
}
