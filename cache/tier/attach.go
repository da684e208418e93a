package tier

import (
	"math/bits"

	"lunar/cache/internal/blocks"
	"lunar/cache/internal/volumes"
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
		r := c.table.Row(uint32(n))
		if v != nil || !r.Used() {
			continue
		}
		if dirty := c.blocks.DirtyBytes(r.Number); dirty > 0 {
			found = append(found, Orphan{r.ID(), r.Name(), dirty, r.Stamp().Medium})
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
		r := c.table.Row(uint32(n))
		if v != nil || !r.Used() || c.vacate(r) {
			continue
		}
		if dirty := c.blocks.DirtyBytes(r.Number); dirty > 0 {
			found = append(found, Orphan{r.ID(), r.Name(), dirty, r.Stamp().Medium})
		}
	}
	c.attached.Orphans = found
	return found
}

// openTable finds the volumes that the segment knows. There are numbers for all
// of them, and for as many as were asked for.
func (c *Cache) openTable(sub int64) {
	s := c.config.Segment
	if s == nil {
		c.table = volumes.NewPrivateTable(c.config.LUs)
		c.attached = Attached{Outcome: "private", Generation: 1}
		return
	}
	c.table = volumes.NewTable(s.Area(blocks.TableArea))
	end, used := c.table.End()
	c.config.LUs = min(max(end, used+c.config.LUs), blocks.MaxVolumes)
	c.attached = Attached{Outcome: s.Outcome.String(), Previous: s.Previous, Generation: s.Generation, Replaced: s.Replaced}
	for _, d := range s.Dirty {
		c.attached.DirtyBytes += int64(bits.OnesCount64(d.Mask)) * sub
	}
}
