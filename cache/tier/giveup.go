package tier

import (
	"fmt"
	"slices"

	"lunar/cache/internal/volumes"
)

// Keeps implements backstore.DirtyCloser.
func (v *volume) Keeps() bool { return v.cache.config.Segment != nil }

// CloseDirty implements backstore.DirtyCloser: what is dirty waits in the segment as an
// orphan's data do, until the volume is opened again.
func (v *volume) CloseDirty(discard bool) (dirty int64, err error) {
	if v.gone.Load() {
		return 0, fmt.Errorf("close volume %q: it went with the cache", v.config.Name)
	}
	if v.left.Load() {
		return v.abandoned, v.store.Close()
	}
	if v.flusher != nil {
		v.flusher.abandon()
	}
	v.lanes.Wait()
	v.untuned.Store(true)
	v.tuning.Wait()
	v.abandoned = v.room.dirtyBytes()
	if discard || !v.Keeps() {
		v.purge()
	}
	if v.Keeps() {
		v.witness.End()
		v.row.Close(v.stamp())
	}
	v.cache.leave(v)
	if !discard && v.abandoned > 0 {
		v.cache.orphaned(v.row)
	}
	v.left.Store(true)
	return v.abandoned, v.store.Close()
}

// orphaned notes what is left of a volume that has left.
func (c *Cache) orphaned(r volumes.Row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if dirty := c.blocks.DirtyBytes(r.Number); dirty > 0 && r.Used() {
		c.attached.Orphans = append(slices.Clone(c.attached.Orphans), Orphan{r.ID(), r.Name(), dirty, r.Stamp().Medium})
	}
}

// adopted forgets the orphan that has become a volume again, or whose data are gone.
func (c *Cache) adopted(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attached.Orphans = slices.DeleteFunc(slices.Clone(c.attached.Orphans), func(o Orphan) bool { return o.ID == id })
}

// Discard drops what the cache keeps of an orphan, and returns how many bytes were
// never written.
func (c *Cache) Discard(id uint64) (lost int64, err error) {
	lost, err = c.discard(id)
	if err == nil {
		c.adopted(id)
	}
	return lost, err
}

func (c *Cache) discard(id uint64) (lost int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.table.Find(id)
	if !ok || c.mu.volumes[r.Number] != nil {
		return 0, fmt.Errorf("the cache has nothing of a volume with identity %#x that is not open", id)
	}
	lost = c.blocks.DirtyBytes(r.Number)
	c.blocks.Purge(r.Number)
	r.Free()
	c.room.recount(func() int64 { return c.dirtyOf(c.mu.volumes) })
	return lost, nil
}
