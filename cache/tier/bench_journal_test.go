package tier

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/cache/segment"
	"lunar/internal/numa"
)

// BenchmarkJournal is 4 KiB at a time written back: to pages at random of which
// none is dirty yet, so that each write needs its mark in the journal, and to one
// that is dirty already, in private memory and in a segment.
func BenchmarkJournal(b *testing.B) {
	for _, memory := range []string{"private", "segment"} {
		for _, dirty := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s, dirty before %t", memory, dirty), func(b *testing.B) {
				c := writeBack(b, memory)
				readAll(b, c)
				if dirty {
					rewrite(b, c)
				} else {
					dirtyAll(b, c)
				}
			})
		}
	}
}

// writeBack is a lane of a volume that is never written to its store unasked, in private
// memory, in a segment, or in one with checksums.
func writeBack(b *testing.B, memory string) *backstoretest.Client {
	b.Helper()
	s := setup{nodes: 1, block: benchBlock, blocks: 2 * benchVolume / benchBlock / benchPartitions, parts: benchPartitions}
	config := s.config()
	config.DirtyLimit = 4 * benchVolume
	if memory != "private" {
		config.Checksum = memory == "checksums"
		config.Segment = benchSegment(b, config)
	}
	store, err := backstore.NewRAM(benchVolume, 0)
	if err != nil {
		b.Fatal(err)
	}
	volume, err := newCache(b, config).Wrap(store, VolumeConfig{ID: 1, Policy: Back, Age: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := volume.Close(); err != nil {
			b.Error(err)
		}
	})
	return backstoretest.NewClient(b, volume, benchLoop(b, numa.Allowed()[0], 0))
}

// benchSegment is one on tmpfs, which the Cache closes.
func benchSegment(b *testing.B, config Config) *segment.Segment {
	b.Helper()
	memory := config.memory(nil)
	geometry, err := memory.SegmentGeometry([]int{-1})
	if err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "tier")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := segment.Attach(filepath.Join(dir, "s"), segment.Options{Identity: "bench", Geometry: geometry, Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// rewrite writes one page again and again.
func rewrite(b *testing.B, c *backstoretest.Client) {
	op := backstore.Op{Kind: backstore.Write, Data: backstoretest.Buffer(page)}
	b.ReportAllocs()
	backstoretest.On(c.Loop, func() {
		for b.Loop() {
			writeNow(b, c, &op)
		}
	})
}

// dirtyAll writes all pages in random order, and flushes them whenever all are
// dirty, which does not count.
func dirtyAll(b *testing.B, c *backstoretest.Client) {
	op := backstore.Op{Kind: backstore.Write, Data: backstoretest.Buffer(page)}
	order := shuffled(benchVolume / page)
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= len(order) {
		backstoretest.On(c.Loop, func() {
			for _, n := range order[:min(left, len(order))] {
				op.Off = n * page
				writeNow(b, c, &op)
			}
		})
		b.StopTimer()
		c.Must(b, backstore.Op{Kind: backstore.Flush})
		b.StartTimer()
	}
}

func writeNow(b *testing.B, c *backstoretest.Client, op *backstore.Op) {
	if !c.Lane.TryNow(op) || op.Err != nil {
		b.Errorf("write at %d was not done at once, error %v", op.Off, op.Err)
	}
}

// BenchmarkOverwrite is 4 KiB at a time written over pages at random, all of which are
// dirty: in a segment each write is prepared by an intent, and with checksums summed.
func BenchmarkOverwrite(b *testing.B) {
	for _, memory := range []string{"private", "segment", "checksums"} {
		b.Run(memory, func(b *testing.B) {
			c := writeBack(b, memory)
			op := backstore.Op{Kind: backstore.Write, Data: backstoretest.Buffer(page)}
			order := shuffled(benchVolume / page)
			over := func(n int) {
				op.Off = order[n%len(order)] * page
				writeNow(b, c, &op)
			}
			backstoretest.On(c.Loop, func() {
				for n := range order {
					over(n)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for n := range b.N {
					over(n)
				}
			})
		})
	}
}

// shuffled is the numbers below n in an order that is always the same.
func shuffled(n int) []int64 {
	list, w := make([]int64, n), walk(1)
	for i := range list {
		list[i] = int64(i)
	}
	for i := range list {
		j := i + int(w.next(int64(n-i))/page)
		list[i], list[j] = list[j], list[i]
	}
	return list
}
