package tier

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"lunar/cache"
	"lunar/cache/internal/blocks"
	"lunar/cache/internal/volumes"
)

// Cache is the memory that the volumes of a server share.
type Cache struct {
	config    Config
	log       *slog.Logger
	blocks    *blocks.Memory
	room      commonRoom
	counters  counters
	release   []func() error // of memory, after Close
	table     volumes.Table
	attached  Attached
	stations  stations // the server's event threads; see Serve
	tuning    tuning
	watching  watching    // over the segment
	lost      atomic.Bool // nobody finds the segment any more
	flusher   flushLoop
	witnesses witnesses
	replays   sync.Mutex // warm-ups of fussy admission are looked at one at a time

	mu struct {
		sync.Mutex
		volumes []*volume       // by LU number
		met     map[uint64]bool // volumes that Meet has judged and Wrap not yet
	}
}

// New makes a Cache; Close frees it.
func New(config Config) (*Cache, error) {
	c := &Cache{config: config, log: config.Logger}
	if c.log == nil {
		c.log = slog.Default()
	}
	if err := c.setUp(); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	c.watch()
	c.watchStores()
	return c, nil
}

func (c *Cache) setUp() error {
	geometry, err := cache.NewGeometry(c.config.Layout)
	if err != nil {
		return err
	}
	limit := c.config.DirtyLimit
	if limit <= 0 {
		limit = c.config.Bytes / 2
	}
	c.room.dirty.set(limit)
	c.room.kickAll = c.kickAll
	c.tuning.set(c.config.ForwardThreshold)
	c.openTable(int64(geometry.SubBlock()))
	c.mu.volumes, c.mu.met = make([]*volume, c.config.LUs), map[uint64]bool{}
	if c.blocks, err = blocks.Open(c.config.memory(c.log), geometry, c.table); err != nil {
		return err
	}
	c.attached.WarmBlocks, c.attached.Dropped = c.blocks.Recovered.Blocks, c.blocks.Recovered.Dropped
	c.room.blocks = c.blocks
	c.room.unowned.Store(c.dirtyOf(nil))
	return nil
}

// Memory returns the memory of all blocks, one piece for each node: what a Lane
// lends lies in it. It is mapped until Close.
func (c *Cache) Memory() [][]byte { return c.blocks.Data() }

// kickAll makes all volumes look whether they should write.
func (c *Cache) kickAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.mu.volumes {
		if v != nil && v.flusher != nil {
			v.flusher.kicks.kick()
		}
	}
}

// choose hands blocks that admission policies have chosen to their volumes.
func (c *Cache) choose(keys []cache.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		if v := c.mu.volumes[k.LU]; v != nil {
			v.chosen.add(k.Block)
		}
	}
}

// Check walks all partitions and returns the first contradiction: for tests.
func (c *Cache) Check() error {
	for i := range c.blocks.Parts {
		if err := c.blocks.Parts[i].Check(); err != nil {
			return fmt.Errorf("cache partition %d: %w", i, err)
		}
	}
	return nil
}
