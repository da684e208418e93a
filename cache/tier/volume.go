package tier

import (
	"fmt"
	"sync"
	"sync/atomic"

	"lunar/backstore"
	"lunar/cache"
	"lunar/cache/internal/blocks"
	"lunar/cache/internal/volumes"
	"lunar/internal/evloop"
)

// volume is a backing store behind the cache.
type volume struct {
	shared
	cache   *Cache
	row     volumes.Row
	witness volumes.Witness

	keeps     bool         // Close leaves what is clean
	stuck     bool         // Close could not write what is dirty
	gone      atomic.Bool  // the Cache was closed nevertheless
	settling  atomic.Int32 // changes after which writes that began before are waited for
	flusher   *flusher     // of Back
	tuning    sync.WaitGroup
	untuned   atomic.Bool // it is too late for tuning
	abandoned int64       // dirty bytes that CloseDirty has kept or dropped
}

// Wrap returns store behind the cache; it owns store from then on. Close of the
// result writes what is dirty, closes store, and may be called again if it fails:
// nothing is lost meanwhile. It must not be called on an event thread.
func (c *Cache) Wrap(store backstore.Store, config VolumeConfig) (backstore.Store, error) {
	v := &volume{cache: c}
	v.blocks, v.store, v.config = c.blocks, store, settings{VolumeConfig: config}
	v.room.common, v.choose, v.counters = &c.room, c.choose, &c.counters
	v.agents.stations, v.agents.open, v.agents.lanes = c.stations, v.agent, make([]backstore.Lane, len(c.stations))
	if err := v.setUp(); err != nil {
		return nil, fmt.Errorf("cache of %s: %w", store.Info().Describe, err)
	}
	return v, nil
}

func (v *volume) setUp() error {
	if v.config.Policy > Back {
		return fmt.Errorf("write policy %d: expected through or back", v.config.Policy)
	}
	if unit := v.store.Info().BlockSize; v.blocks.Geometry.SubBlock()%max(unit, 1) != 0 {
		return fmt.Errorf("the store works in units of %d bytes: expected a divisor of %d, the cache's own", unit, v.blocks.Geometry.SubBlock())
	}
	v.config.Retry = positive(v.config.Retry, defaultRetry)
	v.adopt(Changes{Policy: v.config.Policy, Min: v.config.Min, Max: v.config.Max, Age: v.config.Age, DirtyLimit: v.config.DirtyLimit})
	if err := v.cache.enter(v); err != nil {
		return err
	}
	if err := v.begin(); err != nil {
		v.witness.End()
		v.cache.leave(v)
		return err
	}
	v.cache.adopted(v.config.ID)
	return nil
}

// begin makes the cache serve the volume, with what it still has of it.
func (v *volume) begin() error {
	if err := v.readmit(); err != nil {
		return err
	}
	if err := v.share(); err != nil {
		return err
	}
	if v.config.Policy != Back {
		return v.drain()
	}
	return v.startFlusher()
}

func (v *volume) startFlusher() error {
	f, err := v.newFlusher()
	if err != nil {
		return err
	}
	v.room.flusher = &f.kicks
	v.cache.mu.Lock()
	defer v.cache.mu.Unlock()
	v.flusher = f
	return nil
}

// newFlusher starts one on the thread of flushers.
func (v *volume) newFlusher() (*flusher, error) {
	loop, err := v.cache.flusher.get(&v.cache.config)
	if err != nil {
		return nil, err
	}
	return newFlusher(&v.shared, loop, v.cache.log)
}

// share tells all partitions what the volume may have of them.
func (v *volume) share() error {
	for i := range v.blocks.Parts {
		admission, err := v.admission(&v.blocks.Parts[i])
		if err != nil {
			return err
		}
		err = v.blocks.Parts[i].SetLU(v.config.LU, cache.LUConfig{
			Min: v.blocksOf(v.config.Min), Max: v.blocksOf(v.config.Max),
			Replacement: v.config.Replacement, Admission: admission,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// blocksOf returns the blocks of each partition that make n bytes, rounded up.
func (v *volume) blocksOf(n int64) uint32 {
	unit := int64(v.blocks.Geometry.BlockSize()) * int64(len(v.blocks.Parts))
	return uint32((n + unit - 1) / unit)
}

// admission returns the policy for one partition.
func (v *volume) admission(part *blocks.Partition) (cache.Admission, error) {
	switch v.config.Admission {
	case "", "lru":
		return nil, nil
	case fussy:
		if v.config.Fussy != (cache.FussyParams{}) {
			return cache.NewFussy(v.config.Fussy)
		}
		return v.warming(part)
	}
	return nil, fmt.Errorf("cache admission %q: expected lru or fussy", v.config.Admission)
}

// Lane implements backstore.Store.
func (v *volume) Lane(l *evloop.Loop) (backstore.Lane, error) {
	detector, err := newDetector(v.config.ReadAhead)
	if err != nil {
		return nil, err
	}
	own, err := v.lane(l)
	if err != nil {
		return nil, err
	}
	own.ahead.detector, own.ahead.limit = detector, v.config.ReadAhead
	own.forwarding.station = v.agents.join(l)
	return own, nil
}

// Close implements backstore.Store. Once the volume has left the cache, to repeat it
// is about the store alone.
func (v *volume) Close() error {
	if v.gone.Load() {
		return fmt.Errorf("close volume %q: it went with the cache", v.config.Name)
	}
	if !v.left.Load() {
		if err := v.part(); err != nil {
			return err
		}
		v.left.Store(true)
	}
	return v.store.Close()
}

// part takes the volume out of the cache when all of it is written.
func (v *volume) part() error {
	if v.flusher != nil {
		if err := v.flusher.close(); err != nil {
			v.stuck = true
			return fmt.Errorf("close %s: what is in the cache could not be written: %w", v.store.Info().Describe, err)
		}
	}
	v.lanes.Wait()
	v.untuned.Store(true)
	v.tuning.Wait()
	if err := v.reshare(0, 0); err != nil {
		return err
	}
	v.retire()
	v.cache.leave(v)
	return nil
}

// retire makes the volume's blocks leave the cache, unless the next process or
// volume is to find them: for that one it notes the state of the store.
func (v *volume) retire() {
	if v.cache.config.Segment == nil && !v.keeps {
		v.purge()
		return
	}
	v.witness.End()
	v.row.Close(v.stamp())
}

func (v *volume) purge() { v.blocks.Purge(v.config.LU) }
