package tier

import (
	"lunar/backstore"
	"lunar/backstore/evidence"
)

// Meet judges the store of a volume as Wrap does, before opening it changes anything:
// growth, interrupted atomic writes and the probe for holes change its stamp. It notes
// that the changes from then on are this process's, so that one that is killed
// before Wrap, or fails, does not look like somebody else to the next. Wrap or Dismiss must follow
// when the store was opened, or was not. Of an enciphered one the last word of the
// medium, into which the master key goes, is left to Wrap.
func (c *Cache) Meet(id uint64, adopt, enciphered bool, store backstore.Watched) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, known := c.table.Find(id)
	if !known || c.mu.volumes[r.Number] != nil || !r.Opened() {
		return nil
	}
	noted, seen := r.Noted(), evidence.Seen{Size: r.Size(), Exact: store.Exact()} // the size is known in Wrap
	seen.Stamp, seen.OK = store.Opened()
	if enciphered {
		seen.Stamp.Medium[2] = noted.Stamp.Medium[2]
	}
	noted.Settled = noted.Settled || c.mu.met[id] && noted.Stamp == seen.Stamp
	if err := c.believe(r, noted, seen, adopt); err != nil {
		return err
	}
	r.Open(seen.Stamp.Medium, r.Size(), r.Name())
	r.Note(seen.Stamp)
	c.mu.met[id] = true
	return nil
}

// Dismiss takes back what Meet has noted of a volume that was not opened: whoever
// changes its store from now on is somebody else.
func (c *Cache) Dismiss(id uint64) { c.dismiss(id) }

// dismiss reports whether Meet has judged the volume's store.
func (c *Cache) dismiss(id uint64) (met bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	met = c.mu.met[id]
	delete(c.mu.met, id)
	return met
}
