package tier

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"lunar/cache"
	"lunar/cache/segment"
	"lunar/internal/cold"
	"lunar/internal/evloop"
)

// Arena is memory for the blocks of one node. It must outlive the Cache.
type Arena interface {
	// Bytes returns the memory, page aligned.
	Bytes() []byte
}

// Config describes a Cache.
type Config struct {
	Layout cache.Layout
	Bytes  int64 // of block data over all partitions; rounded down to equal partitions
	LUs    int   // volumes that may be open at a time

	// Arenas hold the blocks, one for each node of Layout, which see DataSize;
	// nil: anonymous memory.
	Arenas []Arena
	// Segment, of SegmentGeometry, is used in place of Arenas: what is in it is
	// taken over, and stays there when volumes are closed. The Cache closes it.
	Segment *segment.Segment
	// Checksum keeps and compares a CRC32C of each sub-block; it needs a Segment.
	Checksum bool

	// DirtyLimit bounds the dirty bytes of all volumes; 0: half of Bytes.
	DirtyLimit int64
	// NodeIDs are the topology's numbers of the nodes of Layout; nil: 0, 1, ...
	NodeIDs []int
	// ForwardThreshold is how many bytes a request has at least that is worth
	// handing to the node that has its data; 0: adaptive, below 0: never.
	ForwardThreshold int64
	// Flusher is the event thread of background writing; nil: one of the
	// Cache's own.
	Flusher *evloop.Loop
	Logger  *slog.Logger // nil is slog.Default
}

// Cache is the memory that the volumes of a server share.
type Cache struct {
	config    Config
	log       *slog.Logger
	geometry  *cache.Geometry
	parts     []partition
	dirty     budget
	zeroes    []byte
	mapped    [][]byte       // of the Cache's own
	release   []func() error // of memory, after Close
	table     table
	attached  Attached
	stations  []*station // the server's event threads; see Serve
	tuning    tuning
	data      [][]byte // of all blocks, by node
	intents   []intent // nil without a segment
	watching  watching // over the segment
	scrubbing scrubbing
	lost      atomic.Bool  // nobody finds the segment any more
	unowned   atomic.Int64 // dirty bytes of volumes that are not open
	flusher   flushLoop
	waiting   atomic.Int64 // writes in mu.throttled
	pressed   atomic.Bool  // all flushers were told that there are many dirty bytes
	witnesses witnesses
	replays   sync.Mutex // warm-ups of fussy admission are looked at one at a time

	stats struct {
		flushed, flushErrors, throttled, ahead, damaged atomic.Uint64
	}
	mu struct {
		sync.Mutex
		volumes   []*volume // by LU number
		fenced    map[*evloop.Loop]bool
		intents   map[*evloop.Loop]*intent
		throttled throttle
		met       map[uint64]bool // volumes that Meet has judged and Wrap not yet
	}
}

// partition is a partition and the memory of its blocks.
type partition struct {
	*cache.Partition
	data  []byte
	sums  []uint32 // of sub-blocks; nil: none
	block int
	sub   int // bytes of a sub-block
	node  int
	base  uint32 // of its slots among those of all partitions
	move  func(dst, src []byte)
}

// bytes returns the memory of a block.
func (p *partition) bytes(slot uint32) []byte {
	from := int(slot) * p.block
	return p.data[from : from+p.block : from+p.block]
}

// New makes a Cache; Close frees it.
func New(config Config) (*Cache, error) {
	c := &Cache{config: config, log: config.Logger}
	if c.log == nil {
		c.log = slog.Default()
	}
	if err := c.setUp(); err != nil {
		return nil, errors.Join(fmt.Errorf("cache: %w", err), c.unmap())
	}
	c.inspectAll()
	c.watch()
	c.watchStores()
	return c, nil
}

func (c *Cache) setUp() (err error) {
	if c.geometry, err = cache.NewGeometry(c.config.Layout); err != nil {
		return err
	}
	slots, err := c.config.slots()
	if err != nil {
		return err
	}
	limit := c.config.DirtyLimit
	if limit <= 0 {
		limit = c.config.Bytes / 2
	}
	c.dirty.set(limit)
	c.tuning.set(c.config.ForwardThreshold)
	c.openTable()
	c.mu.volumes, c.mu.met = make([]*volume, c.config.LUs), map[uint64]bool{}
	c.mu.fenced, c.mu.intents = map[*evloop.Loop]bool{}, map[*evloop.Loop]*intent{}
	if c.zeroes, err = c.mapMemory(max(c.geometry.SubBlock(), pageSize)); err != nil {
		return err
	}
	return c.openPartitions(slots)
}

// slots returns how many blocks each partition has.
func (c *Config) slots() (int, error) {
	slots := c.Bytes / int64(c.Layout.BlockSize) / int64(c.Layout.Partitions)
	if slots < 1 {
		return 0, fmt.Errorf("%d bytes: expected at least a block of %d bytes for each of %d partitions", c.Bytes, c.Layout.BlockSize, c.Layout.Partitions)
	}
	return int(slots), nil
}

// DataSize returns the bytes of block data on each node: what an Arena must have.
func (c *Config) DataSize() (int64, error) {
	if _, err := cache.NewGeometry(c.Layout); err != nil {
		return 0, err
	}
	slots, err := c.slots()
	return int64(slots) * int64(c.Layout.BlockSize) * int64(c.Layout.Partitions/c.Layout.Nodes), err
}

func (c *Cache) openPartitions(slots int) error {
	perNode, err := c.config.DataSize()
	if err != nil {
		return err
	}
	dirty, err := c.remains().journalled(slots)
	if err != nil {
		return err
	}
	nodes := make([][]byte, c.config.Layout.Nodes)
	for i := range nodes {
		if nodes[i], err = c.nodeMemory(i, int(perNode)); err != nil {
			return err
		}
	}
	c.data = slices.Clone(nodes)
	c.parts = make([]partition, c.config.Layout.Partitions)
	for id := range c.parts {
		node := c.geometry.NodeOf(uint32(id))
		part := &c.parts[id]
		part.block, part.sub, part.node = c.geometry.BlockSize(), c.geometry.SubBlock(), int(node)
		part.base, part.move = uint32(id*slots), cold.Copy
		part.data, nodes[node] = nodes[node][:slots*part.block], nodes[node][slots*part.block:]
		if c.config.Checksum {
			n := slots * part.block / part.sub
			part.sums = sumsOf(c.config.Segment.Area(sumArea(int(node))))[c.within(uint32(id))*n:][:n:n]
		}
	}
	if err := c.openIntents(slots); err != nil {
		return err
	}
	for id := range c.parts {
		if c.parts[id].Partition, err = c.open(uint32(id), slots, dirty[uint32(id)]); err != nil {
			return err
		}
	}
	c.unowned.Store(c.dirtyOf(nil))
	return nil
}

// open makes a partition, or takes over what the segment has of it.
func (c *Cache) open(id uint32, slots int, dirty []cache.DirtySlot) (*cache.Partition, error) {
	config := cache.Config{ID: id, Slots: slots, BlockSize: c.geometry.BlockSize(), LUs: c.config.LUs}
	if c.config.Segment == nil {
		return cache.NewPartition(config, nil)
	}
	config.Journal = &journal{c.config.Segment.Journal, c.table, c.parts[id].base}
	p, found, err := cache.Attach(config, c.metadata(id, slots), dirty)
	c.attached.WarmBlocks += found.Blocks
	c.attached.Dropped += found.Dropped
	return p, err
}

// Memory returns the memory of all blocks, one piece for each node: what a Lane
// lends lies in it. It is mapped until Close.
func (c *Cache) Memory() [][]byte { return c.data }

// Geometry returns how volumes are spread over partitions and nodes.
func (c *Cache) Geometry() *cache.Geometry { return c.geometry }

// Check walks all partitions and returns the first contradiction: for tests.
func (c *Cache) Check() error {
	for i := range c.parts {
		if err := c.parts[i].Check(); err != nil {
			return fmt.Errorf("cache partition %d: %w", i, err)
		}
	}
	return nil
}
