package tier

import (
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/evloop"
	"lunar/internal/numa"
)

const (
	benchVolume = 64 << 20
	benchBlock  = 256 << 10

	benchPartitions = 16
)

// hotVolume is a volume that is all in its cache.
func hotVolume(b *testing.B, partitions int) backstore.Store {
	b.Helper()
	store, err := backstore.NewRAM(benchVolume, 0)
	if err != nil {
		b.Fatal(err)
	}
	volume, _ := setup{nodes: 1, block: benchBlock, blocks: 2 * benchVolume / benchBlock / partitions, parts: partitions}.wrap(b, store)
	b.Cleanup(func() {
		if err := volume.Close(); err != nil {
			b.Error(err)
		}
	})
	return volume
}

// readAll reads all of a volume through a lane.
func readAll(b *testing.B, c *backstoretest.Client) {
	for off := int64(0); off < benchVolume; off += benchBlock {
		c.Read(b, off, benchBlock)
	}
}

// benchLoop is a loop with buffers on a CPU, for the time of the benchmark.
func benchLoop(b *testing.B, cpu int, ring uint32) *evloop.Loop {
	b.Helper()
	loop, err := evloop.New(evloop.Config{Name: "bench", CPU: cpu, Node: -1, Buffers: 1 << 20, RingEntries: ring, Workers: evloop.NewWorkers(1)})
	if err != nil {
		b.Fatal(err)
	}
	go loop.Run()
	b.Cleanup(func() {
		loop.Workers().Close()
		loop.Stop()
	})
	return loop
}

// walk is a pseudo random sequence of pages of a volume.
type walk uint64

// next is xorshift64.
func (w *walk) next(pages int64) int64 {
	*w ^= *w << 13
	*w ^= *w >> 7
	*w ^= *w << 17
	return int64(uint64(*w)%uint64(pages)) * page
}

// BenchmarkRandomHit is random hits of 4 KiB by one thread: copied into the
// buffer of a command, and lent to the transport without a copy.
func BenchmarkRandomHit(b *testing.B) {
	volume := hotVolume(b, benchPartitions)
	c := backstoretest.NewClient(b, volume, benchLoop(b, numa.Allowed()[0], 0))
	readAll(b, c)
	b.Run("copied", func(b *testing.B) {
		op := backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(page)}
		measureHits(b, c.Loop, func(off int64) bool {
			op.Off = off
			return c.Lane.TryNow(&op)
		})
	})
	lender := c.Lane.(backstore.Lender)
	b.Run("lent", func(b *testing.B) {
		measureHits(b, c.Loop, func(off int64) bool {
			ref := lender.Lend(off, page)
			if ref == nil {
				return false
			}
			ref.Release()
			return true
		})
	})
}

// measureHits measures hit on the loop's thread.
func measureHits(b *testing.B, loop *evloop.Loop, hit func(off int64) bool) {
	b.SetBytes(page)
	b.ReportAllocs()
	w := walk(1)
	backstoretest.On(loop, func() {
		cycles := countCycles(b)
		for b.Loop() {
			if !hit(w.next(benchVolume / page)) {
				b.Error("a miss, expected all to be in the cache")
				break
			}
		}
		cycles.report(b)
	})
}
