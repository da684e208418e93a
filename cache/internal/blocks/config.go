package blocks

import (
	"fmt"
	"log/slog"

	"lunar/cache"
	"lunar/cache/segment"
)

// Arena is memory for the blocks of one node. It must outlive the Memory.
type Arena interface {
	// Bytes returns the memory, page aligned.
	Bytes() []byte
}

// Config describes a Memory.
type Config struct {
	Layout   cache.Layout
	Bytes    int64            // of block data over all partitions; rounded down to equal partitions
	LUs      int              // volumes that there may be
	Arenas   []Arena          // see Memory; nil: anonymous memory
	Indexes  []Arena          // for what describes the blocks of each node; nil: anonymous memory
	Segment  *segment.Segment // in place of both; nil: none
	Checksum bool             // a CRC32C of each sub-block is kept and compared; it needs a Segment
	Logger   *slog.Logger
}

// Slots returns how many blocks each partition has.
func (c *Config) Slots() (int, error) {
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
	slots, err := c.Slots()
	return int64(slots) * int64(c.Layout.BlockSize) * int64(c.perNode()), err
}

// IndexSize returns the bytes that describe the blocks of each node: what the arena of an
// index must have.
func (c *Config) IndexSize() (int64, error) {
	slots, err := c.Slots()
	return int64(c.perNode() * metadataStride(slots)), err
}

// perNode returns how many partitions a node has.
func (c *Config) perNode() int { return c.Layout.Partitions / c.Layout.Nodes }
