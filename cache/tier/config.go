package tier

import (
	"log/slog"
	"slices"

	"lunar/cache"
	"lunar/cache/internal/blocks"
	"lunar/cache/segment"
	"lunar/internal/evloop"
)

// Arena is memory for the blocks of one node. It must outlive the Cache.
type Arena = blocks.Arena

// Config describes a Cache.
type Config struct {
	Layout cache.Layout
	Bytes  int64 // of block data over all partitions; rounded down to equal partitions
	LUs    int   // volumes that may be open at a time

	// Arenas hold the blocks, one for each node of Layout;
	// nil: anonymous memory.
	Arenas []Arena
	// Indexes are as Arenas, for what describes the blocks.
	Indexes []Arena
	// Segment is used in place of both: what is in it is
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

// memory is what the blocks are to be.
func (c *Config) memory(log *slog.Logger) blocks.Config {
	return blocks.Config{Layout: c.Layout, Bytes: c.Bytes, LUs: c.LUs, Arenas: c.Arenas, Indexes: c.Indexes, Segment: c.Segment, Checksum: c.Checksum, Logger: log}
}

// nodeOf returns which of the cache's nodes has a number in the topology; -1:
// none.
func (c *Config) nodeOf(id int) int {
	if c.NodeIDs != nil {
		return slices.Index(c.NodeIDs, id)
	}
	if id < 0 || id >= c.Layout.Nodes {
		return -1
	}
	return id
}
