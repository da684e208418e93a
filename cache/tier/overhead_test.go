package tier

import (
	"strings"
	"testing"

	"lunar/cache"
	"lunar/internal/numa"
)

// journalRecord is what the segment's journal keeps of a block, in bytes.
const journalRecord = 64

// overhead returns what is known of the blocks of a cache in a segment, with the
// journal, as a share of their data.
func overhead(t *testing.T, perNode int64, nodes, block int) float64 {
	t.Helper()
	o := Options{Topology: numa.Topology{Nodes: make([]numa.Node, nodes)}, PerNode: perNode, BlockSize: block, Volumes: 1}
	config := o.config()
	memory := config.memory(nil)
	g, err := memory.SegmentGeometry(make([]int, nodes))
	if err != nil {
		t.Fatal(err)
	}
	index, data := int64(g.Slots)*journalRecord, int64(0)
	for _, a := range g.Areas {
		switch {
		case strings.HasPrefix(a.Name, "index."):
			index += a.Size
		case strings.HasPrefix(a.Name, "data."):
			data += a.Size
		}
	}
	if want := int64(config.Layout.Partitions) * int64(cache.MetadataSize(g.Slots/config.Layout.Partitions)); index < want || data != perNode*int64(nodes) {
		t.Fatalf("%d bytes of metadata, %d of data: expected at least %d, and %d", index, data, want, perNode*int64(nodes))
	}
	return float64(index) / float64(data)
}

// TestMemoryOverhead: with blocks of the default size and from 32 KiB on, what is
// known of the blocks takes at most 1 % of their memory, whatever the cache's
// size; with the smallest blocks at most 6 %.
func TestMemoryOverhead(t *testing.T) {
	for _, test := range []struct {
		block int
		most  float64
	}{{4 << 10, 0.06}, {8 << 10, 0.03}, {32 << 10, 0.01}, {64 << 10, 0.01}, {256 << 10, 0.01}, {1 << 20, 0.01}} {
		for _, perNode := range []int64{64 << 20, 1 << 30, 64 << 30} {
			for _, nodes := range []int{1, 2, 4} {
				share := overhead(t, perNode, nodes, test.block)
				if share > test.most {
					t.Errorf("blocks of %d KiB, %d MiB on each of %d nodes: %.3f %%, expected at most %g %%", test.block>>10, perNode>>20, nodes, share*100, test.most*100)
				}
				if perNode == 1<<30 && nodes == 1 {
					t.Logf("blocks of %d KiB: %.3f %%", test.block>>10, share*100)
				}
			}
		}
	}
}
