package tier

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"lunar/backstore"
	"lunar/cache"
	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// sizing is the state of a volume's size while it changes. The size is that of
// the store below otherwise.
type sizing struct {
	mu       sync.Mutex
	limit    atomic.Int64  // operations end before it; 0: there is none
	changing atomic.Bool   // no operation ends with the volume
	gates    quiesce.Gates // of the lanes
}

// least returns what of size operations may use.
func (s *sizing) least(size int64) int64 {
	if limit := s.limit.Load(); limit != 0 {
		return min(limit, size)
	}
	return size
}

// size returns what of the volume operations may use.
func (v *volume) size() int64 { return v.sizing.least(v.store.Info().Size) }

// endsAt reports whether what ends at end covers the rest of its sub-block:
// there is nothing behind.
func (v *volume) endsAt(end int64) bool {
	return !v.sizing.changing.Load() && end == v.store.Info().Size
}

// Dirty implements backstore.WriteBack.
func (v *volume) Dirty() int64 { return v.dirtyBytes() }

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
	v.sizing.gates.Wait() // for those who know another end
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
// for here do not wait for what is claimed here, since the gates have let only
// operations before end through, and none of them needs more than its claims.
//
// The row has the new size before the store has, and the old one until then: a process
// that comes after a crash knows what may be left behind the end (see fits).
func (v *volume) resizeBelow(end, size int64) error {
	c := v.claim(end)
	was := v.row.size()
	v.row.resize(size, was)
	err := backstore.Resize(v.store, size)
	if err != nil {
		size = was
	}
	v.row.resize(size, 0)
	c.release(err == nil)
	return err
}

// dropBehind drops what lies behind an end that a volume had, which is being opened,
// because a process that was shrinking it ended before it could. Zeroes follow that end.
func (v *volume) dropBehind(end int64) {
	before := v.dirtyBytes()
	v.claim(end).release(true)
	c := v.cache
	c.dirty.correcting.Lock()
	defer c.dirty.correcting.Unlock()
	c.unowned.Add(v.dirtyBytes() - before)
}

// claims are what Resize has claimed.
type claims struct {
	volume *volume
	waiter cache.Waiter
	ready  chan struct{}

	drops []claim
	last  claim  // the sub-block that end cuts
	from  uint32 // in its block: where that is behind end
	tail  int    // bytes behind; 0: nothing is there
}

type claim struct {
	part  *partition
	grant cache.Grant
}

// claim claims what lies behind byte end, and the sub-block that it cuts.
func (v *volume) claim(end int64) *claims {
	c := &claims{volume: v, ready: make(chan struct{}, 1)}
	c.waiter.Owner = c
	c.end(end)
	c.behind(end)
	return c
}

// resume implements waiting.
func (c *claims) resume() { c.ready <- struct{}{} }

// wait asks until the grant is no Wait.
func (c *claims) wait(part *partition, ask func() cache.Grant) claim {
	for {
		if g := ask(); g.Outcome != cache.Wait {
			return claim{part, g}
		}
		<-c.ready
	}
}

func (v *volume) partOf(k cache.Key) *partition {
	return &v.cache.parts[v.cache.geometry.Partition(k)]
}

// end claims the sub-block that byte end lies in, if that does not begin there.
func (c *claims) end(end int64) {
	g, v := c.volume.cache.geometry, c.volume
	block, sub := int64(g.BlockSize()), int64(g.SubBlock())
	if end%sub == 0 {
		return
	}
	key := cache.Key{LU: v.config.LU, Block: uint64(end / block)}
	part := v.partOf(key)
	touched, _ := g.Masks(uint32(end%block), 1)
	c.last = c.wait(part, func() cache.Grant {
		return part.BeginWrite(key, touched, 0, cache.WriteOptions{}, &c.waiter)
	})
	if grant := &c.last.grant; grant.Outcome == cache.Granted && grant.Missing == 0 {
		from := end % block
		c.from, c.tail = uint32(from), int(sub-from%sub)
	}
}

// residentSlots bounds the time for which behind keeps a partition's lock.
const residentSlots = 1024

// behind claims all sub-blocks behind end.
func (c *claims) behind(end int64) {
	g, v := c.volume.cache.geometry, c.volume
	block, sub := uint64(g.BlockSize()), int64(g.SubBlock())
	from := uint64((end + sub - 1) / sub * sub)
	for _, key := range v.resident(from / block) {
		part, off := v.partOf(key), uint64(0)
		if key.Block == from/block {
			off = from % block
		}
		mask, _ := g.Masks(uint32(off), uint32(block-off))
		c.drops = append(c.drops, c.wait(part, func() cache.Grant { return part.BeginDrop(key, mask, &c.waiter) }))
	}
}

// resident returns the blocks from first on that the cache has, in ascending
// order.
func (v *volume) resident(first uint64) (keys []cache.Key) {
	for i := range v.cache.parts {
		p := v.cache.parts[i].Partition
		for slot := uint32(0); slot < p.Slots(); {
			slot, keys = p.Resident(v.config.LU, first, slot, residentSlots, keys)
		}
	}
	slices.SortFunc(keys, func(a, b cache.Key) int {
		if a.Block < b.Block {
			return -1
		}
		return 1
	})
	return keys
}

// release ends the claims. If the size has changed, what was behind the end is
// dropped, and zeroes follow it in its sub-block.
func (c *claims) release(changed bool) {
	for i := range c.drops {
		wake(c.drops[i].part.EndDrop(&c.drops[i].grant, changed))
	}
	if c.last.part == nil {
		return
	}
	if cache := c.volume.cache; changed && c.tail > 0 {
		c.last.part.put(cache.anyIntent(), &c.last.grant, c.from, cache.zeroes[:c.tail])
	}
	// What is clean leaves the cache, what is dirty stays.
	wake(c.last.part.EndWrite(&c.last.grant, cache.Failed))
}

// flushBefore writes what is dirty in the blocks that end before byte end.
func (v *volume) flushBefore(end int64) error {
	if v.flusher == nil {
		return nil
	}
	s, l := sweeping{result: make(chan error, 1)}, v.flusher.lane
	l.loop.Post(evloop.Func(func() {
		l.sweepOver(0, uint64(end)>>blockShift(v.cache.geometry), true, s).run()
	}))
	return <-s.result
}

// sweeping is a sweep that a control goroutine waits for.
type sweeping struct{ result chan error }

// swept implements sweeper.
func (w sweeping) swept(s *sweep) {
	s.lane.sweeps = append(s.lane.sweeps, s)
	w.result <- s.err
}

// progressed implements sweeper.
func (sweeping) progressed(s *sweep) bool { return s.err == nil }

// Space implements backstore.Spacious, for a store below that does.
func (v *volume) Space() (backstore.Space, error) { return backstore.SpaceOf(v.store) }

// Temperature implements backstore.Thermal: the store below may know it.
func (v *volume) Temperature() (int, error) { return backstore.TemperatureOf(v.store) }
