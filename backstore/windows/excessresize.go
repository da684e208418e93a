package windows

import (
	"errors"
	"fmt"

	"lunar/backstore"
)

// Resize implements backstore.Resizer. What the log has behind a new end is written back
// before: a start finds nothing there that is not of the volume.
func (x *Excess) Resize(size int64) error {
	x.resizing.Lock()
	defer x.resizing.Unlock()
	old := x.size()
	err := x.sound(size)
	switch {
	case err != nil:
	case size < old:
		err = x.shrink(old, size)
	default:
		if err = backstore.Resize(x.config.Slow, size); err == nil {
			err = x.relabel(size)
		}
		if err == nil {
			x.resized(size)
		}
	}
	if err != nil {
		return fmt.Errorf("resize from %d to %d bytes: %w", old, size, err)
	}
	return nil
}

// shrink cuts the slow device when nothing is under way behind the new end, and the log has
// nothing of there.
func (x *Excess) shrink(old, size int64) error {
	x.resized(size)
	x.counters.Wait()
	err := x.drain()
	if err == nil {
		err = x.relabel(size)
	}
	if err == nil {
		if err = backstore.Resize(x.config.Slow, size); err == nil {
			return nil
		}
		err = errors.Join(err, x.relabel(old))
	}
	x.resized(old)
	return err
}

// drain writes back all that the log has now.
func (x *Excess) drain() error {
	for range segments {
		if err := x.writeBack(func() bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

// relabel makes it stable of which size the volume is.
func (x *Excess) relabel(size int64) error {
	b := x.memory.take()
	defer x.memory.give(b)
	l := x.journal.label
	l.size, l.slow = size, mediumOf(x.config.Slow)
	l.encode(b)
	if err := x.fast.write(0, b[:page], true); err != nil {
		return fmt.Errorf("fast device: write its label: %w", err)
	}
	x.gate.Lock() // segments get labels under it
	defer x.gate.Unlock()
	x.journal.label.size, x.journal.label.slow = l.size, l.slow
	return nil
}
