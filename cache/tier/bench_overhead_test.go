package tier

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lunar/cache/internal/blocks"
	"lunar/cache/segment"
	"lunar/internal/numa"
)

// BenchmarkOverhead measures no time: it lays out the segment of a cache of 1 GiB
// as Open does and asks for the size of all that is not block data: the metadata
// with the index of the partitions, the table of volumes and the intents, which do
// not grow with the cache, and the journal with the head.
func BenchmarkOverhead(b *testing.B) {
	for _, block := range []int{4 << 10, usualBlock, 64 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("block=%dKiB", block>>10), func(b *testing.B) {
			for b.Loop() {
			}
			b.ReportMetric(0, "ns/op")
			reportOverhead(b, block)
		})
	}
}

func reportOverhead(b *testing.B, block int) {
	b.Helper()
	o := Options{Topology: numa.Topology{Nodes: make([]numa.Node, 1)}, PerNode: 1 << 30, BlockSize: block, Volumes: 1}
	config := o.config()
	so, err := o.segment(&config)
	if err != nil {
		b.Fatal(err)
	}
	areas := so.Geometry.Areas
	so.Geometry.Areas = nil
	sizes := map[string]int64{"journal": segmentSize(b, so.Geometry)}
	for _, a := range areas {
		kind, _, _ := strings.Cut(a.Name, ".")
		if kind == "intents" {
			kind = blocks.TableArea
		}
		sizes[kind] += a.Size
	}
	for _, kind := range []string{"index", "volumes", "journal"} {
		if sizes[kind] == 0 {
			b.Errorf("no size of %s, found %v", kind, slices.Collect(maps.Keys(sizes)))
		}
		b.ReportMetric(float64(sizes[kind]), kind+"-B/GiB")
	}
}

func segmentSize(b *testing.B, g segment.Geometry) int64 {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tier")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := segment.Attach(filepath.Join(dir, "s"), segment.Options{Identity: "bench", Threads: 1, Geometry: g})
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
