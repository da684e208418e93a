package tier

import (
	"fmt"
	"math/bits"

	"lunar/cache"
	"lunar/cache/segment"
)

// Attached says what a Cache found in its segment, and what became of it.
type Attached struct {
	Outcome    string // private (there is no segment), fresh, warm or crashed
	Previous   string // build that used the segment before, empty if none did
	Generation uint64 // processes that have used the segment, this one included
	DirtyBytes int64  // that were not written when the last process ended
	WarmBlocks int    // blocks that were taken over, dirty ones included
	Dropped    int    // clean blocks that were not, because their records were doubtful
	Replaced   string // how the segment differed that was replaced, empty if none was

	Orphans []Orphan // volumes with dirty data that nobody has opened; see Settle
}

// Orphan is a volume that is not there any more while the segment still has data
// that were never written to its store.
type Orphan struct {
	ID     uint64
	Name   string
	Bytes  int64
	Medium [3]uint64 // of the store's stamp
}

// Attached returns what the Cache found when it was made. Orphans are as Settle
// last found them.
func (c *Cache) Attached() Attached {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attached
}

// Settle must be called when all volumes that there are have been wrapped, before
// they are served. What the segment has of others is dropped if it is clean; if it is dirty, they are
// orphans: their data are kept until a volume of the same identity is wrapped.
func (c *Cache) Settle() []Orphan {
	orphans := c.orphans()
	for _, o := range orphans {
		c.log.Error("the cache holds data of a volume that is not configured: they are kept; configure it again, with the same name and store, so that they are written",
			"volume", o.Name, "bytes", o.Bytes)
	}
	return orphans
}

// Unwritten returns the volumes that are not open and have unwritten data.
func (c *Cache) Unwritten() (found []Orphan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, v := range c.mu.volumes {
		r := c.table.row(uint32(n))
		if v != nil || !r.used() {
			continue
		}
		if dirty := c.dirtyOfLU(r.number); dirty > 0 {
			found = append(found, Orphan{r.id(), r.name(), dirty, r.stamp().Medium})
		}
	}
	return found
}

// orphans forgets what is clean of volumes that are not open, and returns those
// of which something is left.
func (c *Cache) orphans() (found []Orphan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, v := range c.mu.volumes {
		r := c.table.row(uint32(n))
		if v != nil || !r.used() || c.vacate(r) {
			continue
		}
		if dirty := c.dirtyOfLU(r.number); dirty > 0 {
			found = append(found, Orphan{r.id(), r.name(), dirty, r.stamp().Medium})
		}
	}
	c.attached.Orphans = found
	return found
}

// maxVolumes is how many volumes a segment can know.
const maxVolumes = 1024

// layoutVersion is that of the areas' arrangement and of the table's rows.
const layoutVersion = 4

func dataArea(node int) string  { return fmt.Sprintf("data.%d", node) }
func indexArea(node int) string { return fmt.Sprintf("index.%d", node) }

const tableArea = "volumes"

// metadataStride is what the metadata of a partition take in their area.
func metadataStride(slots int) int { return (cache.MetadataSize(slots) + 63) &^ 63 }

// SegmentGeometry returns that of the segment for a Cache with this Config. nodes
// are the kernel's numbers of the NUMA nodes of Layout, -1 for any.
func (c *Config) SegmentGeometry(nodes []int) (segment.Geometry, error) {
	g, err := cache.NewGeometry(c.Layout)
	if err != nil {
		return segment.Geometry{}, err
	}
	slots, err := c.slots()
	if err != nil {
		return segment.Geometry{}, err
	}
	perNode := c.Layout.Partitions / c.Layout.Nodes
	out := segment.Geometry{
		Slots: slots * c.Layout.Partitions, BlockSize: g.BlockSize(), SubBlock: g.SubBlock(),
		Layout: fmt.Sprintf("v%d, partition %s, %d partitions on %d nodes, groups of %d, contiguous %t",
			layoutVersion, cache.Format(), c.Layout.Partitions, c.Layout.Nodes, c.Layout.Neighbours, c.Layout.Contiguous),
		Areas: []segment.Area{
			{Name: tableArea, Size: maxVolumes * rowBytes, Node: -1, Checksum: true},
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

// metadata returns the memory of a partition's.
func (c *Cache) metadata(id uint32, slots int) []byte {
	from, n := c.within(id)*metadataStride(slots), metadataStride(slots)
	return c.config.Segment.Area(indexArea(int(c.geometry.NodeOf(id))))[from : from+n]
}

// within returns a partition's place among those of its node.
func (c *Cache) within(id uint32) int {
	l := &c.config.Layout
	if l.Contiguous {
		return int(id) % (l.Partitions / l.Nodes)
	}
	return int(id) / l.Nodes
}

// openTable finds the volumes that the segment knows. There are numbers for all
// of them, and for as many as were asked for.
func (c *Cache) openTable() {
	s := c.config.Segment
	if s == nil {
		c.table = ownTable(c.config.LUs)
		c.attached = Attached{Outcome: "private", Generation: 1}
		return
	}
	c.table = newTable(s.Area(tableArea))
	end, used := c.table.end()
	c.config.LUs = min(max(end, used+c.config.LUs), maxVolumes)
	c.attached = Attached{Outcome: s.Outcome.String(), Previous: s.Previous, Generation: s.Generation, Replaced: s.Replaced}
	for _, d := range s.Dirty {
		c.attached.DirtyBytes += int64(bits.OnesCount64(d.Mask)) * int64(c.geometry.SubBlock())
	}
}

// remains are what an earlier process has left in a segment.
type remains struct {
	segment  *segment.Segment
	table    table
	geometry *cache.Geometry
}

func (c *Cache) remains() remains { return remains{c.config.Segment, c.table, c.geometry} }

// journalled returns what the segment's journal says is dirty, by partition.
func (f remains) journalled(slots int) (map[uint32][]cache.DirtySlot, error) {
	if f.segment == nil {
		return nil, nil
	}
	if err := f.table.check(); err != nil {
		return nil, fmt.Errorf("%s has a damaged table of volumes: %w; keep a copy of the file if its unwritten data may be needed, then remove it, and check the volumes", f.segment.Path(), err)
	}
	out := map[uint32][]cache.DirtySlot{}
	for _, d := range f.segment.Dirty {
		id := d.Slot / uint32(slots)
		r, known := f.table.find(d.Volume)
		key := cache.Key{LU: r.number, Block: d.Block}
		if !known || f.geometry.Partition(key) != id {
			return nil, fmt.Errorf("%s has unwritten data of block %d of a volume with identity %#x in slot %d, which its table of volumes contradicts; keep a copy of the file if the data may be needed, then remove it, and check the volumes", f.segment.Path(), d.Block, d.Volume, d.Slot)
		}
		out[id] = append(out[id], cache.DirtySlot{Slot: d.Slot % uint32(slots), Key: key, Mask: d.Mask})
	}
	return out, nil
}

// dirtyOfLU returns the dirty bytes of one volume.
func (c *Cache) dirtyOfLU(lu uint32) (sum int64) {
	for i := range c.parts {
		_, n := c.parts[i].Usage(lu)
		sum += int64(n)
	}
	return sum
}

// journal is what a partition writes in the segment's. Volumes are told by their
// identities there.
type journal struct {
	*segment.Journal
	table table
	base  uint32 // of the partition's slots
}

// Assign implements cache.Journal.
func (j *journal) Assign(slot, lu uint32, block uint64) {
	if err := j.Journal.Assign(j.base+slot, j.table.row(lu).id(), block); err != nil {
		panic(fmt.Sprintf("slot %d: %v", slot, err)) // or data of two blocks would be taken for those of one
	}
}

// MarkDirty implements cache.Journal.
func (j *journal) MarkDirty(slot uint32, mask uint64) { j.Journal.MarkDirty(j.base+slot, mask) }

// MarkClean implements cache.Journal.
func (j *journal) MarkClean(slot uint32, mask uint64) { j.Journal.MarkClean(j.base+slot, mask) }
