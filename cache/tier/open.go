package tier

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"time"

	"lunar/cache"
	"lunar/cache/internal/blocks"
	"lunar/cache/segment"
	"lunar/internal/arena"
	"lunar/internal/bytesize"
	"lunar/internal/numa"
)

// Options say what cache a server is to have.
type Options struct {
	Topology  numa.Topology // real, or an override; zero: that of the machine
	PerNode   int64         // bytes of block data on each node
	BlockSize int           // of a cache block in bytes; 0: that of the segment if there is one, else 16 KiB
	Volumes   int           // that will be open at a time
	Huge      arena.Huge

	// Segment is the path of a file in shared memory that holds the cache, so
	// that the next process finds it; empty: private memory. Its directory is
	// made if need be.
	Segment  string
	Identity string // of the server; the segment of another one is refused
	Build    string // version of the program, for messages

	Checksum         bool  // see Config
	DirtyLimit       int64 // bytes that may be dirty; 0: half of the cache
	ForwardThreshold int64 // see Config
	Progress         arena.Progress
	Logger           *slog.Logger // nil is slog.Default

	neighbours int // consecutive blocks that share a partition, and so a node; 0: a stripe
}

const (
	partitionsPerNode = 16
	// usualBlock is the block size where nobody asks for one. Of blocks that are larger than
	// what is read at random, most of the memory is empty; smaller ones make large requests
	// dear (docs/reports/performance-cache.md).
	usualBlock = 16 << 10
	// stripe is how many bytes in a row share a partition at most, so that most requests have
	// one node, and leastInRow how many blocks do at least. A row has a power of two of blocks,
	// or one in a few aligned requests would have two nodes.
	stripe     = 1 << 20
	leastInRow = 4
	// predecessor is how long Open waits for a process that has the segment: one that was
	// killed has it until the kernel has ended what it had under way, which a slow or busy
	// disk takes its time for.
	predecessor = 30 * time.Second
)

// Open makes a cache with memory of every NUMA node, which it takes and touches
// now: it fails, with numbers, if it does not fit. A segment that does not match
// is replaced if nothing in it is dirty, and else refused with a
// *segment.Refused that says what to do. Close gives the memory back.
func Open(o Options) (*Cache, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	config := o.config()
	release, err := o.memory(&config)
	if err != nil {
		return nil, fmt.Errorf("cache of %s: %w", bytesize.Text(config.Bytes), err)
	}
	c, err := New(config)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	if config.Segment == nil {
		c.release = append(c.release, release)
	}
	o.report(c)
	return c, nil
}

func (o *Options) complete() (err error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if len(o.Topology.Nodes) == 0 {
		o.Topology, err = numa.Discover(o.Logger)
	}
	o.cut()
	return err
}

// cut decides how large blocks are, and how many in a row share a partition. A sound
// segment that is there decides what nobody has asked for, so that its contents are kept,
// whatever version has made it.
func (o *Options) cut() {
	there, groups := 0, 0
	if o.Segment != "" {
		if d, err := segment.Describe(o.Segment); err == nil && d.Refused == nil {
			there, groups = d.Geometry.BlockSize, blocks.Neighbours(d.Geometry.Layout)
		}
	}
	if o.BlockSize == 0 {
		o.BlockSize = cmp.Or(there, usualBlock)
	}
	if there == o.BlockSize {
		o.neighbours = groups
	}
}

func (o *Options) config() Config {
	nodes := len(o.Topology.Nodes)
	var ids []int
	for _, n := range o.Topology.Nodes {
		ids = append(ids, n.ID)
	}
	return Config{
		NodeIDs: ids,
		Bytes:   o.PerNode * int64(nodes), LUs: max(o.Volumes, 1), Layout: o.layout(nodes),
		DirtyLimit: o.DirtyLimit, ForwardThreshold: o.ForwardThreshold, Logger: o.Logger, Checksum: o.Checksum,
	}
}

// layout spreads small caches over fewer partitions, so that each has several
// blocks, and several rows of blocks.
func (o *Options) layout(nodes int) cache.Layout {
	perNode := int(min(partitionsPerNode, max(o.PerNode/int64(max(o.BlockSize, 1))/4, 1)))
	slots := o.PerNode / int64(perNode) / int64(max(o.BlockSize, 1))
	row := cmp.Or(o.neighbours, max(min(stripe/max(o.BlockSize, 1), powerOfTwo(slots/16)), leastInRow))
	return cache.Layout{BlockSize: o.BlockSize, Neighbours: row, Nodes: nodes, Partitions: nodes * perNode}
}

// powerOfTwo returns the largest that is at most n, 0 for 0.
func powerOfTwo(n int64) int { return 1 << bits.Len64(uint64(n)) >> 1 }

// memory takes the cache's memory; release gives it back.
func (o *Options) memory(config *Config) (release func() error, err error) {
	if o.Segment != "" {
		config.Segment, err = o.attach(config)
		return func() error { return config.Segment.Detach() }, err
	}
	return o.arenas(config)
}

// attach opens the segment.
func (o *Options) attach(config *Config) (*segment.Segment, error) {
	so, err := o.segment(config)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(o.Segment), 0o700); err != nil {
		return nil, fmt.Errorf("cache segment: %w", err)
	}
	return segment.Attach(o.Segment, so)
}

// rehearse attaches the segment to read it; nil: there is none that would be taken over.
func (o *Options) rehearse(config *Config) (*segment.Segment, error) {
	so, err := o.segment(config)
	if err != nil {
		return nil, err
	}
	so.Rehearse = true
	s, err := segment.Attach(o.Segment, so)
	if err != nil {
		err = fmt.Errorf("cache of %s: %w", bytesize.Text(config.Bytes), err)
	}
	return s, err
}

func (o *Options) segment(config *Config) (segment.Options, error) {
	var nodes []int
	threads := 0
	for _, n := range o.Topology.Nodes {
		nodes = append(nodes, o.memoryNode(n))
		threads += len(n.CPUs)
	}
	memory := config.memory(nil)
	geometry, err := memory.SegmentGeometry(nodes)
	return segment.Options{
		Identity: o.Identity, Build: o.Build, Geometry: geometry, Replace: true, Wait: predecessor, Waits: o.waits(),
		Huge: o.Huge, Threads: max(threads, 1), Progress: o.Progress,
	}, err
}

// waits tells once why a start takes its time.
func (o *Options) waits() func(why error, since time.Duration) {
	told := false
	return func(why error, since time.Duration) {
		if told || o.Logger == nil || since < time.Second {
			return
		}
		told = true
		o.Logger.Info("the cache segment is still in use, and is waited for: what a killed process had under way has not ended yet", "for at most", predecessor, "found", why)
	}
}

// memoryNode returns the kernel's number of the node to take a node's memory from:
// any, if it has none of its own, which the kernel would refuse to be asked for.
func (o *Options) memoryNode(n numa.Node) int {
	if n.MemoryBytes == 0 {
		return -1
	}
	return o.Topology.MemoryNode(n.ID)
}

// arenas takes private memory of each node.
func (o *Options) arenas(config *Config) (release func() error, err error) {
	var opened []*arena.Arena
	release = func() (err error) {
		for _, a := range opened {
			err = errors.Join(err, a.Close())
		}
		return err
	}
	memory := config.memory(nil)
	size, err := memory.DataSize()
	if err != nil {
		return nil, err
	}
	index, err := memory.IndexSize()
	if err != nil {
		return nil, err
	}
	take := func(node numa.Node, bytes int64, huge arena.Huge, progress arena.Progress) (Arena, error) {
		a, err := arena.Open(arena.Options{
			Bytes: bytes, Node: o.memoryNode(node), Huge: huge, Threads: max(len(node.CPUs), 1), Progress: progress,
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("node %d: %w", node.ID, err), release())
		}
		opened = append(opened, a)
		return a, nil
	}
	nodes := o.Topology.Nodes
	for i, node := range nodes {
		data, err := take(node, size, o.Huge, o.progress(int64(i)*size, int64(len(nodes))*size))
		if err != nil {
			return nil, err
		}
		config.Arenas = append(config.Arenas, data)
		o.Logger.Info("cache memory taken", "node", node.ID, "size", bytesize.Text(size))
	}
	// Reserved pages are counted for the data of all nodes; indexes have what is left of them.
	for _, node := range nodes {
		described, err := take(node, index, o.Huge.IfFree(), nil)
		if err != nil {
			return nil, err
		}
		config.Indexes = append(config.Indexes, described)
	}
	return release, nil
}

// progress makes one of several steps a part of the whole.
func (o *Options) progress(before, all int64) arena.Progress {
	if o.Progress == nil {
		return nil
	}
	return func(done, _ int64) { o.Progress(before+done, all) }
}

// report logs what came of it.
func (o *Options) report(c *Cache) {
	l := c.config.Layout
	o.Logger.Info("cache ready", "size", bytesize.Text(c.config.Bytes), "nodes", l.Nodes, "partitions", l.Partitions, "block", bytesize.Text(int64(l.BlockSize)))
	if c.config.Segment == nil {
		return
	}
	a := c.Attached()
	log := o.Logger.With("path", o.Segment, "outcome", a.Outcome, "build", o.Build)
	if c.config.Segment.Unplaced != "" {
		log.Warn("cache memory is not on the nodes that were asked for", "why", c.config.Segment.Unplaced)
	}
	if a.Replaced != "" {
		log.Warn("cache segment replaced: it was made for other settings, and nothing in it was unwritten", "was", a.Replaced, "written-by", a.Previous)
	}
	if a.Outcome == segment.Fresh.String() {
		log.Info("cache segment made")
		return
	}
	log.Info("cache segment attached", "written-by", a.Previous, "warm-blocks", a.WarmBlocks,
		"unwritten-bytes", a.DirtyBytes, "process", a.Generation)
	if a.Dropped > 0 {
		log.Warn("records of clean blocks contradicted each other: the blocks were dropped, unwritten data were kept", "blocks", a.Dropped)
	}
}

// Inspection is what can be told of a segment without attaching it.
type Inspection struct {
	segment.Description
	Attachable error  // nil, or why a process with these options would be refused
	Replaced   string // how the segment differs, if such a process would put a new one in its place
}

// Inspect looks at the segment of o, which another process may have; a missing
// one is fs.ErrNotExist.
func Inspect(o Options) (Inspection, error) {
	if err := o.complete(); err != nil {
		return Inspection{}, err
	}
	config := o.config()
	so, err := o.segment(&config)
	if err != nil {
		return Inspection{}, err
	}
	d, err := segment.Describe(o.Segment)
	if err != nil {
		return Inspection{}, err
	}
	found := Inspection{Description: d, Attachable: d.Attachable(so)}
	so.Replace = false
	var changed *segment.Refused
	if found.Attachable == nil && errors.As(d.Attachable(so), &changed) {
		found.Replaced = changed.Found
	}
	return found, nil
}
