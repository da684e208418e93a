package tier

import (
	"fmt"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// Dirty implements backstore.WriteBack.
func (v *volume) Dirty() int64 { return v.room.dirtyBytes() }

// Resize implements backstore.Resizer, for a store below that does. Before the
// volume shrinks, what is dirty in the blocks before the one with the new end is
// written; if that fails, nothing has changed. What lies behind the end is gone
// afterwards, dirty or not. Whoever sends from blocks behind the end, or from
// the last sub-block, is waited for. Volumes that are being closed must not be
// resized.
func (v *volume) Resize(size int64) error {
	v.sizing.mu.Lock()
	defer v.sizing.mu.Unlock()
	if err := v.checkResize(size); err != nil {
		return fmt.Errorf("resize the cache of %s: %w", v.store.Info().Describe, err)
	}
	old := v.store.Info().Size
	v.sizing.changing.Store(true)
	v.sizing.limit.Store(min(old, size))
	defer func() {
		v.sizing.changing.Store(false)
		v.sizing.limit.Store(0)
	}()
	v.sizing.counters.Wait() // for those who know another end
	if size < old {
		if err := v.flushBefore(size); err != nil {
			return fmt.Errorf("resize %s: what is in the cache could not be written: %w", v.store.Info().Describe, err)
		}
	}
	return v.resizeBelow(min(old, size), size)
}

func (v *volume) checkResize(size int64) error {
	unit := int64(max(v.store.Info().BlockSize, 1))
	if _, ok := v.store.(backstore.Resizer); !ok {
		return backstore.ErrUnsupported
	}
	if size <= 0 || size%unit != 0 {
		return fmt.Errorf("size %d: expected a positive multiple of %d bytes", size, unit)
	}
	return nil
}

// resizeBelow changes the size of the store below while nobody can use, write or
// flush what is cached behind end, where the smaller of both sizes ends.
//
// INVARIANT: all who claim take blocks in ascending order; those who are waited
// for here do not wait for what is claimed here, since they are operations before end,
// and none of them needs more than its claims.
//
// The row has the new size before the store has, and the old one until then: a process
// that comes after a crash knows what may be left behind the end (see fits).
func (v *volume) resizeBelow(end, size int64) error {
	tail := v.blocks.ClaimTail(v.config.LU, end)
	was := v.row.Size()
	v.row.Resize(size, was)
	err := backstore.Resize(v.store, size)
	if err != nil {
		size = was
	}
	v.row.Resize(size, 0)
	tail.Release(err == nil)
	return err
}

// dropBehind drops what lies behind an end that a volume had, which is being opened,
// because a process that was shrinking it ended before it could. Zeroes follow that end.
func (v *volume) dropBehind(end int64) {
	before, c := v.room.dirtyBytes(), v.room.common
	v.blocks.ClaimTail(v.config.LU, end).Release(true)
	c.recount(func() int64 { return c.unowned.Load() + v.room.dirtyBytes() - before })
}

// flushBefore writes what is dirty in the blocks that end before byte end.
func (v *volume) flushBefore(end int64) error {
	if v.flusher == nil {
		return nil
	}
	result, l := make(chan error, 1), v.flusher.lane
	l.loop.Post(evloop.Func(func() {
		l.sweeps.over(0, uint64(end)>>v.blocks.BlockShift(), true, sweeping{l, result}).run()
	}))
	return <-result
}

// sweeping is a sweep that a control goroutine waits for.
type sweeping struct {
	lane   *lane
	result chan error
}

// swept implements sweeper.
func (w sweeping) swept(s *sweep) {
	w.lane.sweeps.put(s)
	w.result <- s.err
}

// progressed implements sweeper.
func (sweeping) progressed(s *sweep) bool { return s.err == nil }

// Space implements backstore.Spacious, for a store below that does.
func (v *volume) Space() (backstore.Space, error) { return backstore.SpaceOf(v.store) }

// Temperature implements backstore.Thermal: the store below may know it.
func (v *volume) Temperature() (int, error) { return backstore.TemperatureOf(v.store) }
