package tier

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/cache/segment"
	"lunar/internal/numa"
)

const (
	setCache = 4 << 20 // bytes of the cache
	setReads = 6_000
)

// hitsOfSet is the share of hits among random reads of n bytes of as many bytes as the cache
// has, times over, when it is full.
func hitsOfSet(t testing.TB, block, n, times int) float64 {
	t.Helper()
	o := Options{Topology: numa.Topology{Nodes: make([]numa.Node, 1)}, PerNode: setCache, BlockSize: block, Volumes: 1, Logger: slog.New(slog.DiscardHandler)}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	store, err := backstore.NewRAM(int64(times*setCache), 0)
	if err != nil {
		t.Fatal(err)
	}
	c := newCache(t, o.config())
	volume, err := c.Wrap(store, VolumeConfig{ReadAhead: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = volume.Close() }) // after the client's lane
	client := backstoretest.NewClient(t, volume, backstoretest.NewLoop(t, false))
	r, data := rand.New(rand.NewPCG(1, 2)), backstoretest.Buffer(n)
	reads := func(count int) Stats {
		for range count {
			client.Must(t, backstore.Op{Kind: backstore.Read, Off: r.Int64N(int64(times*setCache/n)) * int64(n), Data: data})
		}
		return c.Stats()
	}
	before := reads(setReads)
	after := reads(setReads)
	return float64(after.Hits-before.Hits) / float64(after.Hits-before.Hits+after.Misses-before.Misses)
}

// TestUsualBlockHoldsWhatIsRead: where nobody says how large blocks are, much of the memory
// has what was read, also when that is little at a time and all over.
func TestUsualBlockHoldsWhatIsRead(t *testing.T) {
	if hits := hitsOfSet(t, 0, 16<<10, 2); hits < 0.45 {
		t.Errorf("%.3f of reads of 16 KiB are hits, expected about half", hits)
	}
	if hits := hitsOfSet(t, 0, 4<<10, 2); hits < 0.15 {
		t.Errorf("%.3f of reads of 4 KiB are hits, expected a fifth", hits)
	}
}

// BenchmarkWorkingSet measures no time: it counts hits.
func BenchmarkWorkingSet(b *testing.B) {
	for _, block := range []int{4 << 10, 8 << 10, usualBlock, 32 << 10, 64 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("block=%dKiB", block>>10), func(b *testing.B) {
			for b.Loop() {
			}
			b.ReportMetric(0, "ns/op")
			for _, times := range []int{2, 10} {
				for _, n := range []int{4 << 10, 16 << 10} {
					b.ReportMetric(100*hitsOfSet(b, block, n, times), fmt.Sprintf("hits%dKiB%dx", n>>10, times))
				}
			}
		})
	}
}

// TestSegmentKeepsItsBlocks: who does not say how large blocks are finds what a server left that
// had others, whether that has written it or not.
func TestSegmentKeepsItsBlocks(t *testing.T) {
	for _, neighbours := range []int{0, 2} {
		s := newSite(t)
		s.options.BlockSize, s.options.neighbours = 64<<10, neighbours
		p := s.start().outcome(segment.Fresh)
		data := backstoretest.Pattern(100<<10, 1)
		p.open("a", Back).Write(t, 8<<10, data)
		p.end()
		s.options.BlockSize, s.options.neighbours = 0, 0
		p = s.start().outcome(segment.Warm)
		if !p.hits(p.open("a", Back), 8<<10, data) {
			t.Error("the cache is cold")
		}
		p.end()
	}
}

// TestRowsAreAligned: an aligned request of a power of two has one node, or covers whole rows.
func TestRowsAreAligned(t *testing.T) {
	for _, size := range []int64{1 << 20, 3 << 20, 48 << 20, 100 << 20, 1 << 30} {
		for _, block := range []int{4 << 10, usualBlock, 256 << 10} {
			o := Options{PerNode: size, BlockSize: block}
			if row := o.layout(2).Neighbours; row&(row-1) != 0 || row < leastInRow || row > max(stripe/block, leastInRow) {
				t.Errorf("a cache of %d bytes with blocks of %d has rows of %d", size, block, row)
			}
		}
	}
}
