package tier

import (
	"fmt"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/cache/internal/volumes"
)

// enter gives v its number: the one that it had, if it had one.
func (c *Cache) enter(v *volume) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.rowFor(v.config.ID)
	if err != nil {
		return err
	}
	if c.mu.volumes[r.Number] != nil {
		return fmt.Errorf("volume %q has the identity %#x of volume %q, which is open", v.config.Name, v.config.ID, r.Name())
	}
	v.config.LU, v.room.lu, v.row = r.Number, r.Number, r
	c.mu.volumes[r.Number] = v
	return nil
}

// rowFor is called under c.mu.
func (c *Cache) rowFor(id uint64) (volumes.Row, error) {
	if r, ok := c.table.Find(id); ok {
		return r, nil
	}
	r, ok := c.table.Vacant(len(c.mu.volumes))
	if !ok {
		r, ok = c.reclaim()
	}
	if !ok {
		return volumes.Row{}, fmt.Errorf("the cache has %d volumes already, which is the most that it can have", len(c.mu.volumes))
	}
	r.Give(id)
	return r, nil
}

// reclaim frees the row of a volume that is not open and that has nothing dirty.
func (c *Cache) reclaim() (volumes.Row, bool) {
	for n, v := range c.mu.volumes {
		if r := c.table.Row(uint32(n)); v == nil && c.vacate(r) {
			return r, true
		}
	}
	return volumes.Row{}, false
}

// vacate frees the row of a volume that is not open, unless it has dirty data.
func (c *Cache) vacate(r volumes.Row) bool {
	c.blocks.Forget(r.Number)
	if c.blocks.Blocks(r.Number) > 0 {
		return false
	}
	r.Free()
	return true
}

// leave takes v's number from it. What is cached of it stays, and so does the
// number, for when the volume comes back.
func (c *Cache) leave(v *volume) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.volumes[v.config.LU] = nil
	c.room.recount(func() int64 { return c.dirtyOf(c.mu.volumes) })
	if c.config.Segment == nil && !v.keeps {
		v.row.Free()
	}
}

// dirtyOf returns the dirty bytes of the volumes that are not in open.
func (c *Cache) dirtyOf(open []*volume) (sum int64) {
	for lu := range uint32(c.config.LUs) {
		if int(lu) < len(open) && open[lu] != nil {
			continue
		}
		sum += c.blocks.DirtyBytes(lu)
	}
	return sum
}

// ErrChanged is in the error of Wrap for a store that somebody else has changed, or
// that is another one, while the cache has unwritten data for it.
var ErrChanged = volumes.ErrChanged

// readmit decides what stays of what the cache still has of the volume.
func (v *volume) readmit() error {
	if err := v.believe(); err != nil {
		return err
	}
	if err := v.fits(); err != nil {
		return err
	}
	stamp, _ := v.opened()
	v.row.Open(stamp.Medium, v.store.Info().Size, v.config.Name)
	v.row.Resize(v.store.Info().Size, 0)
	v.witness.Begin(v.row, v.store, v.cache.config.Segment != nil)
	v.witness.Look() // nothing has been written yet
	v.room.inherit()
	return nil
}

// believe judges the store by what was noted of it, and by what Meet has found.
func (v *volume) believe() error {
	noted, seen := v.row.Noted(), v.seen()
	met := v.cache.dismiss(v.config.ID)
	noted.Settled = noted.Settled || met && noted.Stamp == seen.Stamp
	return v.cache.believe(v.row, noted, seen, v.config.Adopt)
}

// believe drops what is clean of a volume if there is doubt whether the store still has
// it, and refuses a store that somebody else has changed while there are unwritten data,
// unless they are to go to it nevertheless.
func (c *Cache) believe(r volumes.Row, noted evidence.Noted, seen evidence.Seen, adopt bool) error {
	if !r.Opened() {
		return nil // it is new
	}
	dirty := c.blocks.DirtyBytes(r.Number)
	belief, why, err := r.Judge(noted, seen, dirty, adopt)
	if err != nil {
		return err
	}
	if blocks := c.blocks.Blocks(r.Number); belief != evidence.Same && blocks > 0 {
		c.log.Warn("clean cached data of a volume were dropped: its store may have changed", "volume", r.Name(), "blocks", blocks, "unwritten", dirty, "why", why)
		c.blocks.Forget(r.Number)
	}
	return nil
}

// opened returns the store's stamp as it was found.
func (v *volume) opened() (stamp backstore.Stamp, ok bool) {
	stamper, ok := v.store.(backstore.Stamper)
	if ok {
		stamp, ok = stamper.Opened()
	}
	return stamp, ok
}

// seen is what was found.
func (v *volume) seen() evidence.Seen {
	s := evidence.Seen{Size: v.store.Info().Size}
	s.Stamp, s.OK = v.opened()
	if w, ok := v.store.(backstore.Watched); ok {
		s.Exact = w.Exact()
	}
	return s
}

// fits refuses a store that has become too short for the dirty data, unless that
// was asked for: then what is behind the end that it was cut at is dropped, and is not
// to come back if the store has grown since.
func (v *volume) fits() error {
	stamp, _ := v.opened()
	cut, err := v.row.Fits(v.store.Info().Size, v.blocks.DirtyEnd(v.row.Number), int64(v.blocks.Geometry.SubBlock()), stamp)
	if cut {
		v.dropBehind(v.row.Size())
	}
	return err
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
	n := v.room.dirtyBytes()
	if n == 0 {
		return nil
	}
	f, err := v.newFlusher()
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
