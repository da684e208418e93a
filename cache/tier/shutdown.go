package tier

import (
	"errors"
	"fmt"
)

// Close frees the Cache. All volumes must have been closed; with a segment Close
// of a volume may have failed: what could not be written stays in the segment for
// the next process, and the error names it.
func (c *Cache) Close() error {
	stuck, err := c.stuckVolumes()
	if err != nil {
		return err
	}
	var errs []error
	for _, v := range stuck {
		errs = append(errs, v.abandon())
	}
	c.flusher.stop()
	c.unwatch()
	c.witnesses.stop()
	errs = append(errs, c.blocks.Close())
	if c.config.Segment != nil {
		errs = append(errs, c.config.Segment.Close())
	}
	for _, release := range c.release {
		errs = append(errs, release())
	}
	c.release = nil
	return errors.Join(errs...)
}

// stuckVolumes returns those that could not be closed, and an error if there are
// others that are open.
func (c *Cache) stuckVolumes() (stuck []*volume, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.mu.volumes {
		switch {
		case v == nil:
		case v.stuck && c.config.Segment != nil:
			stuck = append(stuck, v)
		default:
			return nil, fmt.Errorf("close cache: volume %q is still open", v.config.Name)
		}
	}
	return stuck, nil
}

// abandon ends a volume whose dirty data stay in the segment.
func (v *volume) abandon() error {
	v.gone.Store(true)
	v.flusher.abandon()
	v.lanes.Wait()
	n := v.room.dirtyBytes()
	v.witness.End()
	v.row.Close(v.stamp())
	v.cache.leave(v)
	err := fmt.Errorf("volume %q: %d bytes that could not be written stay in the cache segment, for the next start", v.config.Name, n)
	return errors.Join(err, v.store.Close())
}
