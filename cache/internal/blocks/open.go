package blocks

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"lunar/cache"
	"lunar/cache/internal/volumes"
	"lunar/internal/arena"
	"lunar/internal/evloop"
	"lunar/internal/memcopy"
)

// Open makes a Memory of blocks of the table's volumes, or takes over what the segment
// has of them. Close frees it.
func Open(c Config, g *cache.Geometry, table volumes.Table) (*Memory, error) {
	m := &Memory{Geometry: g, log: c.Logger, segment: c.Segment, table: table, checksum: c.Checksum}
	m.mu.fenced, m.mu.intents = map[*evloop.Loop]bool{}, map[*evloop.Loop]*Intent{}
	if err := m.open(&c); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	m.inspectAll()
	return m, nil
}

func (m *Memory) open(c *Config) (err error) {
	if m.slots, err = c.Slots(); err != nil {
		return err
	}
	if m.Zeroes, err = m.mapZeroes(max(m.Geometry.SubBlock(), pageSize)); err != nil {
		return err
	}
	dirty, err := m.remains().journalled(m.slots)
	if err != nil {
		return err
	}
	if err := m.lay(c); err != nil {
		return err
	}
	if err := m.layIndexes(c); err != nil {
		return err
	}
	if err := m.openIntents(); err != nil {
		return err
	}
	for id := range m.Parts {
		if m.Parts[id].Partition, err = m.openPartition(c, uint32(id), dirty[uint32(id)]); err != nil {
			return err
		}
	}
	return nil
}

// lay lays the partitions over the memory of their nodes.
func (m *Memory) lay(c *Config) error {
	perNode, err := c.DataSize()
	if err != nil {
		return err
	}
	nodes := make([][]byte, c.Layout.Nodes)
	for i := range nodes {
		if nodes[i], err = m.nodeMemory(c, c.Arenas, dataArea(i), i, perNode); err != nil {
			return err
		}
	}
	m.data = slices.Clone(nodes)
	m.Parts = make([]Partition, c.Layout.Partitions)
	for id := range m.Parts {
		node := m.Geometry.NodeOf(uint32(id))
		part := &m.Parts[id]
		part.Block, part.Sub, part.Node = m.Geometry.BlockSize(), m.Geometry.SubBlock(), int(node)
		part.base, part.Move = uint32(id*m.slots), memcopy.Copy
		part.data, nodes[node] = nodes[node][:m.slots*part.Block], nodes[node][m.slots*part.Block:]
		if c.Checksum {
			n := m.slots * part.Block / part.Sub
			part.sums = sumsOf(c.Segment.Area(sumArea(int(node))))[c.within(uint32(id))*n:][:n:n]
		}
	}
	return nil
}

// layIndexes finds memory for what describes the blocks, on their node: each hit looks there.
func (m *Memory) layIndexes(c *Config) error {
	size, err := c.IndexSize()
	if err != nil {
		return err
	}
	m.indexes = make([][]byte, c.Layout.Nodes)
	for i := range m.indexes {
		if m.indexes[i], err = m.nodeMemory(c, c.Indexes, indexArea(i), i, size); err != nil {
			return err
		}
	}
	return nil
}

// openPartition makes a partition, or takes over what the segment has of it.
func (m *Memory) openPartition(c *Config, id uint32, dirty []cache.DirtySlot) (*cache.Partition, error) {
	config := cache.Config{ID: id, Slots: m.slots, BlockSize: m.Geometry.BlockSize(), LUs: c.LUs}
	metadata := c.metadata(m.indexes[m.Parts[id].Node], id, m.slots)
	if c.Segment == nil {
		return cache.NewPartition(config, metadata)
	}
	config.Journal = &journal{c.Segment.Journal, m.table, m.Parts[id].base}
	p, found, err := cache.Attach(config, metadata, dirty)
	m.Recovered.Blocks += found.Blocks
	m.Recovered.Dropped += found.Dropped
	return p, err
}

// mapZeroes returns n bytes of zeroes that take no memory until touched.
func (m *Memory) mapZeroes(n int) ([]byte, error) {
	b, err := arena.Map(n, -1)
	if err == nil {
		m.mapped = append(m.mapped, b)
	}
	return b, err
}

// nodeMemory returns the memory of a node for what is in an area, if there is a segment.
func (m *Memory) nodeMemory(c *Config, arenas []Arena, area string, node int, size int64) ([]byte, error) {
	if c.Segment != nil {
		return c.Segment.Area(area), nil
	}
	if arenas == nil {
		return m.mapZeroes(int(size))
	}
	if len(arenas) != c.Layout.Nodes {
		return nil, fmt.Errorf("%d arenas: expected one for each of %d nodes", len(arenas), c.Layout.Nodes)
	}
	mem := arenas[node].Bytes()
	if int64(len(mem)) < size || !Aligned(mem) {
		return nil, fmt.Errorf("arena of node %d has %d bytes at %p: expected %d, page aligned", node, len(mem), unsafe.SliceData(mem), size)
	}
	return mem[:size], nil
}

func (m *Memory) remains() *Remains { return &Remains{m.segment, m.table, m.Geometry} }
