package tier

import (
	"sync"
	"sync/atomic"
	"time"

	"lunar/backstore"
	"lunar/cache"
	"lunar/cache/internal/blocks"
)

// shared is a volume as its lanes and its flusher see it: the store below, the blocks
// before it, and what holds for both.
type shared struct {
	blocks *blocks.Memory
	store  backstore.Store
	config settings

	sizing   sizing
	changes  atomic.Pointer[Changes]
	left     atomic.Bool // Close took it out of the cache: its number may be another's
	chosen   promotions
	choose   func([]cache.Key) // hands blocks to the volumes that they are of
	counters *counters
	lanes    sync.WaitGroup
	agents   agents

	failingSince atomic.Int64 // Unix time in ns; 0: not failing
	room         room         // its words change with each write that becomes dirty
}

// settings are what was asked for, and the number that the Cache gave.
type settings struct {
	VolumeConfig
	LU uint32
}

// counters are a Cache's, in bytes and writes: see Stats.
type counters struct{ flushed, flushErrors, ahead atomic.Uint64 }

// Info implements backstore.Store.
func (v *shared) Info() backstore.Info {
	info := v.store.Info()
	info.Size = v.sizing.least(info.Size)
	info.VolatileCache = info.VolatileCache || v.config.Policy == Back
	return info
}

// size returns what of the volume operations may use.
func (v *shared) size() int64 { return v.sizing.least(v.store.Info().Size) }

// endsAt reports whether what ends at end covers the rest of its sub-block:
// there is nothing behind.
func (v *shared) endsAt(end int64) bool {
	return !v.sizing.changing.Load() && end == v.store.Info().Size
}

// age is how long data may be dirty.
func (v *shared) age() time.Duration { return v.changes.Load().Age }

// damagedIn returns how many bytes in the blocks [first, end) are damaged.
func (v *shared) damagedIn(first, end uint64) int64 {
	return v.blocks.DamagedIn(v.config.LU, first, end)
}
