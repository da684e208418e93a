package tier

import (
	"time"

	"lunar/backstore"
	"lunar/cache"
)

// Stats are a Cache's counters and state.
type Stats struct {
	cache.Stats        // of all partitions
	Flushed     uint64 // bytes of dirty data that were written below
	FlushErrors uint64 // writes of dirty data that failed
	Throttled   uint64 // writes that had to wait for the dirty limit
	ReadAhead   uint64 // bytes read ahead
	Damaged     uint64 // sub-blocks that were found to have another checksum
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	s := c.counted()
	for i := range c.blocks.Parts {
		add(&s.Stats, c.blocks.Parts[i].Stats())
	}
	return s
}

// counted returns what partitions do not know.
func (c *Cache) counted() Stats {
	return Stats{
		Flushed: c.counters.flushed.Load(), FlushErrors: c.counters.flushErrors.Load(),
		Throttled: c.room.throttled.Load(), ReadAhead: c.counters.ahead.Load(), Damaged: c.blocks.Damaged(),
	}
}

func add(s *cache.Stats, p cache.Stats) {
	s.Hits += p.Hits
	s.Misses += p.Misses
	s.Bypassed += p.Bypassed
	s.Waits += p.Waits
	s.Evictions += p.Evictions
	s.FillFails += p.FillFails
	s.Free += p.Free
	s.Used += p.Used
	s.InFlight += p.InFlight
	s.DirtyBytes += p.DirtyBytes
}

// Snapshot is all that a Cache tells of itself. Partitions are asked one after
// the other, so sums may be of slightly different times.
type Snapshot struct {
	Stats
	Size       int64 // bytes of block data
	Block      int64 // bytes of a block
	DirtyLimit int64 // bytes
	Waiting    int64 // writes that wait for the dirty limit now
	Lost       bool  // the segment is not where the next process looks for it
	Nodes      []NodeStats
	Volumes    map[backstore.Store]VolumeStats // by what Wrap has returned
}

// NodeStats are a NUMA node's part of a Cache.
type NodeStats struct {
	cache.Stats       // of the node's partitions
	Partitions  int   // how many they are
	Size        int64 // bytes of block data
}

// VolumeStats are a volume's part of a Cache. Hits and misses are counted since
// the Cache was opened, also for a volume that was closed and wrapped again.
type VolumeStats struct {
	Policy       Policy
	Admission    string    // lru or fussy
	Resident     int64     // bytes of blocks
	Dirty        int64     // bytes
	Hits         uint64    // reads of a block that found all they wanted
	Misses       uint64    // reads that did not
	Throttled    uint64    // writes that had to wait for a dirty limit
	FailingSince time.Time // zero: dirty data can be written, as far as is known
	Fussy        FussyStats
}

// FussyStats sum up the FussyCaches that a volume has in the partitions.
type FussyStats struct {
	Params     cache.FussyParams // of each; zero: none
	Partitions int
	Warming    int // of them, those that admit everything until their parameters are found
	LRU        int // of them, those that admit everything now, because their hit rate fell
	Switches   int // between both modes
	Counted    int // blocks
	Popular    int // of them
}

// Snapshot returns state and counters of the Cache, its nodes and its volumes.
// It locks each partition for a time that grows with the number of volumes: it
// is for a question a second, not for the data path.
func (c *Cache) Snapshot() Snapshot {
	s := Snapshot{
		Stats: c.counted(), Block: int64(c.blocks.Geometry.BlockSize()), DirtyLimit: c.room.dirty.limit.Load(),
		Waiting: c.room.waiting.Load(), Lost: c.lost.Load(), Nodes: make([]NodeStats, c.config.Layout.Nodes),
	}
	sums, units := make([]VolumeStats, c.config.LUs), []cache.LUStats(nil)
	for i := range c.blocks.Parts {
		p := &c.blocks.Parts[i]
		stats, size := p.Stats(), int64(p.Size())
		node := &s.Nodes[c.blocks.Geometry.NodeOf(uint32(i))]
		add(&s.Stats.Stats, stats)
		add(&node.Stats, stats)
		node.Partitions++
		node.Size += size
		s.Size += size
		units = p.AppendLUStats(units[:0])
		for lu := range sums {
			sums[lu].add(&units[lu], s.Block)
		}
	}
	s.Volumes = c.describe(sums)
	return s
}

// add adds a partition's part.
func (v *VolumeStats) add(u *cache.LUStats, block int64) {
	v.Resident += int64(u.Blocks) * block
	v.Dirty += int64(u.DirtyBytes)
	v.Hits += u.Hits
	v.Misses += u.Misses
	if u.Fussy.Params == (cache.FussyParams{}) {
		return
	}
	f := &v.Fussy
	f.Params = u.Fussy.Params
	f.Partitions++
	f.Switches += u.Fussy.Switches
	f.Counted += u.Fussy.Counted
	f.Popular += u.Fussy.Popular
	if u.Fussy.Warming {
		f.Warming++
	}
	if u.Fussy.LRU {
		f.LRU++
	}
}

// describe completes what was summed up by number for the volumes that are open.
func (c *Cache) describe(sums []VolumeStats) map[backstore.Store]VolumeStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	volumes := make(map[backstore.Store]VolumeStats, len(sums))
	for number, v := range c.mu.volumes {
		if v == nil {
			continue
		}
		s := sums[number]
		s.Policy, s.Throttled, s.Admission = v.changes.Load().Policy, v.room.throttled.Load(), "lru"
		if v.config.Admission != "" {
			s.Admission = v.config.Admission
		}
		if since := v.failingSince.Load(); since != 0 {
			s.FailingSince = time.Unix(0, since)
		}
		volumes[v] = s
	}
	return volumes
}
