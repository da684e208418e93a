package blocks

import (
	"fmt"
	"strings"

	"lunar/cache"
	"lunar/cache/internal/volumes"
	"lunar/cache/segment"
)

// MaxVolumes is how many volumes a segment can know.
const MaxVolumes = 1024

// layoutVersion is that of the areas' arrangement and of the table's rows.
const layoutVersion = 4

// layoutText is the layout of a segment: version, format of the partitions, their number, that
// of the nodes, of neighbouring blocks in a partition, and whether partitions of a node follow
// each other.
const layoutText = "v%d, partition %s, %d partitions on %d nodes, groups of %d, contiguous %t"

// Neighbours returns how many consecutive blocks share a partition by the layout of a segment;
// 0: it does not tell.
func Neighbours(layout string) (n int) {
	_, rest, _ := strings.Cut(layout, "groups of ")
	if _, err := fmt.Sscanf(rest, "%d,", &n); err != nil {
		return 0
	}
	return n
}

func dataArea(node int) string  { return fmt.Sprintf("data.%d", node) }
func indexArea(node int) string { return fmt.Sprintf("index.%d", node) }

// TableArea is the name of the table of volumes.
const TableArea = "volumes"

// metadataStride is what the metadata of a partition take in their area.
func metadataStride(slots int) int { return (cache.MetadataSize(slots) + 63) &^ 63 }

// SegmentGeometry returns that of the segment for a Cache with this Config. nodes
// are the kernel's numbers of the NUMA nodes of Layout, -1 for any.
func (c *Config) SegmentGeometry(nodes []int) (segment.Geometry, error) {
	g, err := cache.NewGeometry(c.Layout)
	if err != nil {
		return segment.Geometry{}, err
	}
	slots, err := c.Slots()
	if err != nil {
		return segment.Geometry{}, err
	}
	perNode := c.perNode()
	out := segment.Geometry{
		Slots: slots * c.Layout.Partitions, BlockSize: g.BlockSize(), SubBlock: g.SubBlock(),
		Layout: fmt.Sprintf(layoutText,
			layoutVersion, cache.Format(), c.Layout.Partitions, c.Layout.Nodes, c.Layout.Neighbours, c.Layout.Contiguous),
		Areas: []segment.Area{
			{Name: TableArea, Size: MaxVolumes * volumes.RowBytes, Node: -1, Checksum: true},
			{Name: intentArea, Size: intentCount * intentStride, Node: -1},
		},
	}
	for i, node := range nodes {
		out.Areas = append(out.Areas,
			segment.Area{Name: indexArea(i), Size: int64(perNode * metadataStride(slots)), Node: node, Checksum: true},
			segment.Area{Name: dataArea(i), Size: int64(perNode*slots) * int64(g.BlockSize()), Node: node})
		if c.Checksum {
			out.Areas = append(out.Areas, segment.Area{Name: sumArea(i), Size: int64(perNode*slots*(g.BlockSize()/g.SubBlock())) * 4, Node: node})
		}
	}
	return out, nil
}

// metadata returns a partition's part of what its node has for them.
func (c *Config) metadata(node []byte, id uint32, slots int) []byte {
	from, n := c.within(id)*metadataStride(slots), metadataStride(slots)
	return node[from : from+n]
}

// within returns a partition's place among those of its node.
func (c *Config) within(id uint32) int {
	l := &c.Layout
	if l.Contiguous {
		return int(id) % c.perNode()
	}
	return int(id) / l.Nodes
}
