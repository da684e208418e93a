package tier

import (
	"errors"
	"fmt"

	"lunar/backstore"
	"lunar/backstore/evidence"
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

// ErrChanged is in the error of Wrap for a store that somebody else has changed, or
// that is another one, while the cache has unwritten data for it.
var ErrChanged = errors.New("unwritten data of the store as it was")

// readmit decides what stays of what the cache still has of the volume.
func (v *volume) readmit() error {
	if err := v.believe(); err != nil {
		return err
	}
	if err := v.fits(); err != nil {
		return err
	}
	stamp, _ := v.opened()
	v.row.open(stamp.Medium, v.store.Info().Size, v.config.Name)
	v.row.resize(v.store.Info().Size, 0)
	v.witness.begin(v)
	v.witness.look(v) // nothing has been written yet
	v.own()
	return nil
}

// believe judges the store by what was noted of it, and by what Meet has found.
func (v *volume) believe() error {
	noted, seen := v.row.noted(), v.seen()
	met := v.cache.dismiss(v.config.ID)
	noted.Settled = noted.Settled || met && noted.Stamp == seen.Stamp
	return v.cache.believe(v.row, noted, seen, v.config.Adopt)
}

// believe drops what is clean of a volume if there is doubt whether the store still has
// it, and refuses a store that somebody else has changed while there are unwritten data,
// unless they are to go to it nevertheless.
func (c *Cache) believe(r row, noted evidence.Noted, seen evidence.Seen, adopt bool) error {
	if r.state() == 0 {
		return nil // it is new
	}
	dirty := c.dirtyOfLU(r.number)
	belief, why, err := r.judge(noted, seen, dirty, adopt)
	if err != nil {
		return err
	}
	blocks := 0
	for i := range c.parts {
		n, _ := c.parts[i].Usage(r.number)
		blocks += n
	}
	if belief != evidence.Same && blocks > 0 {
		c.log.Warn("what the cache had of a volume is dropped, but for unwritten data", "volume", r.name(), "blocks", blocks, "unwritten", dirty, "why", why)
		c.forget(r.number)
	}
	return nil
}

// judge decides about a store while there are unwritten data for it, in bytes.
func (r row) judge(noted evidence.Noted, seen evidence.Seen, dirty int64, adopt bool) (belief evidence.Belief, why string, err error) {
	belief, why = evidence.Content(noted, seen)
	if belief == evidence.Changed && dirty > 0 && !adopt {
		err = fmt.Errorf("the cache holds %d bytes of %w, volume %q, and %s", dirty, ErrChanged, r.name(), why)
	}
	return belief, why, err
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
// was asked for: then what is behind the end that it was cut at is dropped, and is not
// to come back if the store has grown since.
func (v *volume) fits() error {
	stamp, _ := v.opened()
	end := int64(0)
	for i := range v.cache.parts {
		end = max(end, int64(v.cache.parts[i].DirtyEnd(v.row.number)))
	}
	cut, err := v.row.fits(v.store.Info().Size, end, int64(v.cache.geometry.SubBlock()), stamp)
	if cut {
		v.dropBehind(v.row.size())
	}
	return err
}

// fits is of a store of size bytes, with the stamp that it was opened with, and of dirty
// data up to the end, in sub-blocks of sub bytes; cut says that what lies behind the size of
// before is to be dropped.
func (r row) fits(size, end, sub int64, opened backstore.Stamp) (cut bool, err error) {
	was := r.size()
	switch {
	case was > 0 && end > was/sub*sub && (was == size || was < size && !uncut(r, size, opened)):
		return true, nil
	case end <= size:
		return false, nil
	}
	return false, fmt.Errorf("the cache holds unwritten data up to byte %d, the store has %d bytes now and had %d: give it at least its old size, so that they can be written", min(end, max(was, size)), size, was)
}

// uncut reports whether a process ended before it could cut the store, which has still
// the size that it had, and did not get it back by being opened.
func uncut(r row, size int64, opened backstore.Stamp) bool {
	known := opened != backstore.Stamp{}
	grown := known && !opened.Device() && int64(opened.State[0]) < size
	return int64(r.load(atBefore)) == size && !grown
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
