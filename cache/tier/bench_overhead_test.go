package tier

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"lunar/cache"
	"lunar/cache/segment"
)

// BenchmarkOverhead measures no time: it asks those who lay memory out what a
// GiB of cache needs beside the data, for the metadata with the index of all
// partitions and for the journal with the head of the segment.
func BenchmarkOverhead(b *testing.B) {
	const gib = 1 << 30
	for _, block := range []int{64 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("block=%dKiB", block>>10), func(b *testing.B) {
			slots := gib / block
			for b.Loop() {
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(benchPartitions*cache.MetadataSize(slots/benchPartitions)), "metadata-B/GiB")
			b.ReportMetric(float64(journalSize(b, slots, block)), "journal-B/GiB")
		})
	}
}

// journalSize is the size of a segment without areas.
func journalSize(b *testing.B, slots, block int) int64 {
	dir, err := os.MkdirTemp("/dev/shm", "tier")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := segment.Attach(filepath.Join(dir, "s"), segment.Options{
		Identity: "bench", Threads: 1,
		Geometry: segment.Geometry{Slots: slots, BlockSize: block, SubBlock: max(page, block/64)},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}()
	return s.Size()
}
