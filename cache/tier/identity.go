package tier

import (
	"fmt"

	"lunar/backstore"
)

// enter gives v its number: the one that it had, if it had one.
func (c *Cache) enter(v *volume) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.rowFor(v.config.ID)
	if err != nil {
		return err
	}
	if c.mu.volumes[r.number] != nil {
		return fmt.Errorf("volume %q has the identity %#x of volume %q, which is open", v.config.Name, v.config.ID, r.name())
	}
	v.config.LU, v.row = r.number, r
	c.mu.volumes[r.number] = v
	return nil
}

// rowFor is called under c.mu.
func (c *Cache) rowFor(id uint64) (row, error) {
	if r, ok := c.table.find(id); ok {
		return r, nil
	}
	r, ok := c.table.vacant(len(c.mu.volumes))
	if !ok {
		r, ok = c.reclaim()
	}
	if !ok {
		return row{}, fmt.Errorf("the cache has %d volumes already, which is the most that it can have", len(c.mu.volumes))
	}
	r.give(id)
	return r, nil
}

// reclaim frees the row of a volume that is not open and that has nothing dirty.
func (c *Cache) reclaim() (row, bool) {
	for n, v := range c.mu.volumes {
		if r := c.table.row(uint32(n)); v == nil && c.vacate(r) {
			return r, true
		}
	}
	return row{}, false
}

// vacate frees the row of a volume that is not open, unless it has dirty data.
func (c *Cache) vacate(r row) bool {
	c.forget(r.number)
	for i := range c.parts {
		if blocks, _ := c.parts[i].Usage(r.number); blocks > 0 {
			return false
		}
	}
	r.free()
	return true
}

// forgetBudget bounds the time for which forget keeps a partition's lock, in
// slots.
const forgetBudget = 1024

// forget drops what is clean of a volume that nobody uses.
func (c *Cache) forget(lu uint32) {
	for i := range c.parts {
		p := c.parts[i].Partition
		for next := uint32(0); next < p.Slots(); {
			next = p.Forget(lu, next, forgetBudget)
		}
	}
}

// leave takes v's number from it. What is cached of it stays, and so does the
// number, for when the volume comes back.
func (c *Cache) leave(v *volume) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.volumes[v.config.LU] = nil
	c.dirty.correcting.Lock()
	c.unowned.Store(c.dirtyOf(c.mu.volumes))
	c.dirty.correcting.Unlock()
	if c.config.Segment == nil && !v.keeps {
		v.row.free()
	}
}

// dirtyOf returns the dirty bytes of the volumes that are not in open.
func (c *Cache) dirtyOf(open []*volume) (sum int64) {
	for lu := range uint32(c.config.LUs) {
		if int(lu) < len(open) && open[lu] != nil {
			continue
		}
		for i := range c.parts {
			_, n := c.parts[i].Usage(lu)
			sum += int64(n)
		}
	}
	return sum
}

// readmit decides what stays of what the cache still has of the volume. Dirty
// data always do.
func (v *volume) readmit() error {
	if err := v.fits(); err != nil {
		return err
	}
	blocks := 0
	for i := range v.cache.parts {
		n, _ := v.cache.parts[i].Usage(v.config.LU)
		blocks += n
	}
	stamp, why := v.changed()
	if blocks > 0 && why != "" {
		v.cache.log.Warn("what the cache had of a volume is dropped, but for unwritten data", "volume", v.config.Name, "blocks", blocks, "why", why)
		v.cache.forget(v.config.LU)
	}
	v.row.open(stamp.Medium, v.store.Info().Size, v.config.Name)
	v.own()
	return nil
}

// own counts the volume's dirty data as those of an open one.
func (v *volume) own() {
	c, n := v.cache, v.dirtyBytes()
	c.dirty.correcting.Lock()
	defer c.dirty.correcting.Unlock()
	v.dirty.estimate.Add(n)
	c.dirty.estimate.Add(n)
	c.unowned.Add(-n)
}

// fits refuses a store that has become too short for the dirty data, unless that
// was asked for.
func (v *volume) fits() error {
	end := int64(0)
	for i := range v.cache.parts {
		end = max(end, int64(v.cache.parts[i].DirtyEnd(v.config.LU)))
	}
	size, was, sub := v.store.Info().Size, v.row.size(), int64(v.cache.geometry.SubBlock())
	if end <= size || end <= (size+sub-1)/sub*sub && was <= size {
		return nil
	}
	if was == size {
		v.dropBehind(size)
		return nil
	}
	return fmt.Errorf("the cache holds unwritten data up to byte %d, the store has %d bytes now and had %d: give it at least its old size, so that they can be written", min(end, max(was, size)), size, was)
}

// changed says why clean data of the volume may not be what is in the store; and
// which medium that is. After a crash nobody has noted the store's state, but then
// nobody but the last process should have written to it; what a process in between
// left that served others, its Settle has forgotten.
func (v *volume) changed() (stamp backstore.Stamp, why string) {
	stamper, ok := v.store.(backstore.Stamper)
	if ok {
		stamp, ok = stamper.Opened()
	}
	was, size := v.row.stamp(), v.store.Info().Size
	switch {
	case !ok:
		return stamp, "nothing tells whether somebody else has written to the store"
	case v.row.size() != size:
		return stamp, fmt.Sprintf("the store has %d bytes, it had %d", size, v.row.size())
	case was.Medium != stamp.Medium:
		return stamp, "it is another store"
	case v.row.state() == rowClosed && was != stamp:
		return stamp, "somebody else has written to the store"
	}
	return stamp, ""
}

// stamp returns the store's, or one that no store has.
func (v *volume) stamp() backstore.Stamp {
	stamper, ok := v.store.(backstore.Stamper)
	if !ok {
		return backstore.Stamp{}
	}
	s, err := stamper.Stamp()
	if err != nil {
		v.cache.log.Warn("clean data of a volume will not be used again", "volume", v.config.Name, "err", err)
		return backstore.Stamp{}
	}
	return s
}

// drain writes what an earlier process has left dirty of a volume that does not
// write back any more.
func (v *volume) drain() error {
	n := v.dirtyBytes()
	if n == 0 {
		return nil
	}
	f, err := newFlusher(v)
	if err != nil {
		return err
	}
	if err := f.close(); err != nil {
		f.abandon()
		return fmt.Errorf("%d bytes that were left in the cache cannot be written, which write: %v does not allow: %w", n, v.config.Policy, err)
	}
	v.cache.log.Info("unwritten data that were left in the cache have been written", "volume", v.config.Name, "bytes", n)
	return nil
}
