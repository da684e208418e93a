package tier

import (
	"errors"
	"fmt"
	"log/slog"

	"lunar/cache"
	"lunar/internal/arena"
	"lunar/internal/numa"
)

// Options say what cache a server is to have.
type Options struct {
	Bytes     int64 // of block data, spread evenly over the NUMA nodes
	BlockSize int   // of a cache block in bytes
	Volumes   int   // that will be wrapped; their numbers are below it
	Logger    *slog.Logger
}

const (
	partitionsPerNode = 16
	neighbours        = 4
)

// Open makes a cache with memory of every NUMA node, which it takes and touches
// now: it fails, with numbers, if it does not fit. free gives the memory back;
// call it after Close.
func Open(o Options) (c *Cache, free func() error, err error) {
	topology, err := numa.Discover(o.Logger)
	if err != nil {
		return nil, nil, err
	}
	config := Config{Bytes: o.Bytes, LUs: max(o.Volumes, 1), Logger: o.Logger, Layout: layoutFor(o, len(topology.Nodes))}
	arenas, free, err := openArenas(&config, topology, o.Logger)
	if err != nil {
		return nil, nil, fmt.Errorf("cache of %s: %w", arena.Bytes(o.Bytes), errors.Join(err, free()))
	}
	config.Arenas = arenas
	if c, err = New(config); err != nil {
		return nil, nil, errors.Join(err, free())
	}
	o.Logger.Info("cache ready", "size", arena.Bytes(o.Bytes), "nodes", config.Layout.Nodes,
		"partitions", config.Layout.Partitions, "block", arena.Bytes(int64(o.BlockSize)))
	return c, free, nil
}

// layoutFor spreads small caches over fewer partitions, so that each has
// several blocks.
func layoutFor(o Options, nodes int) cache.Layout {
	blocks := o.Bytes / int64(max(o.BlockSize, 1))
	perNode := int(min(partitionsPerNode, max(blocks/int64(nodes)/4, 1)))
	return cache.Layout{BlockSize: o.BlockSize, Neighbours: neighbours, Nodes: nodes, Partitions: nodes * perNode}
}

func openArenas(config *Config, topology numa.Topology, log *slog.Logger) (arenas []Arena, free func() error, err error) {
	var opened []*arena.Arena
	free = func() (err error) {
		for _, a := range opened {
			err = errors.Join(err, a.Close())
		}
		return err
	}
	size, err := config.DataSize()
	if err != nil {
		return nil, free, err
	}
	for _, node := range topology.Nodes {
		a, err := arena.Open(arena.Options{
			Bytes: size, Node: topology.MemoryNode(node.ID), Huge: arena.HugeAuto, Threads: max(len(node.CPUs), 1),
		})
		if err != nil {
			return nil, free, fmt.Errorf("node %d: %w", node.ID, err)
		}
		opened, arenas = append(opened, a), append(arenas, a)
		log.Info("cache memory taken", "node", node.ID, "size", arena.Bytes(size))
	}
	return arenas, free, nil
}
