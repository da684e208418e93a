package tier

import (
	"errors"
	"fmt"
	"log/slog"

	"lunar/backstore"
	"lunar/backstore/evidence"
)

// Rehearse opens a copy of what the segment of o has, if Open would take it over; else it
// returns nil. It refuses what Open would refuse for what is in the segment. Whatever is
// asked of the copy, the segment stays as it is. EndRehearsal must follow.
func Rehearse(o Options) (*Cache, error) {
	if o.Segment == "" {
		return nil, nil
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	config := o.config()
	config.Logger = slog.New(slog.DiscardHandler)
	s, err := o.rehearse(&config)
	if s == nil || err != nil {
		return nil, err
	}
	config.Segment = s
	c := &Cache{config: config, log: config.Logger}
	if err := c.setUp(); err != nil {
		return nil, errors.Join(fmt.Errorf("cache: %w", err), c.EndRehearsal())
	}
	return c, nil
}

// EndRehearsal frees the copy.
func (c *Cache) EndRehearsal() error { return errors.Join(c.unmap(), c.config.Segment.Abandon()) }

// Prospect is a volume that is about to be opened.
type Prospect struct {
	ID         uint64
	Adopt      bool // as in VolumeConfig
	Enciphered bool // as in Meet
	ReadOnly   bool
	Size       int64 // bytes, when it is open
}

// Judge returns why Meet or Wrap would refuse the store of a volume. It is for a copy that
// Rehearse has opened.
func (c *Cache) Judge(p Prospect, store backstore.Watched) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, known := c.table.find(p.ID)
	if !known {
		return nil
	}
	noted, seen := r.noted(), evidence.Seen{Size: p.Size, Exact: store.Exact()}
	seen.Stamp, seen.OK = store.Opened()
	if p.Enciphered {
		seen.Stamp.Medium[2] = noted.Stamp.Medium[2]
	}
	if err := c.believe(r, noted, seen, p.Adopt); err != nil {
		return err
	}
	if dirty := c.dirtyOfLU(r.number); dirty > 0 && p.ReadOnly {
		return fmt.Errorf("the cache holds %d bytes of unwritten data of volume %q, which is read-only: open it for writing once, so that they are written", dirty, r.name())
	}
	_, err := c.fits(r, p.Size, seen.Stamp)
	return err
}
