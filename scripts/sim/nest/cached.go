package nest

import "lunar/cache"

// cached is the server's block cache: one partition of one LU, of blocks that a request
// reads as a whole.
type cached struct {
	partition *cache.Partition
	hits      int64
	accesses  int64
}

func newCached(blocks int) (*cached, error) {
	p, err := cache.NewPartition(cache.Config{Slots: blocks, BlockSize: cache.MinBlock, LUs: 1}, nil)
	if err != nil {
		return nil, err
	}
	return &cached{partition: p}, p.SetLU(0, cache.LUConfig{})
}

// hit reports whether a request needs no device. What a read misses is there from now on.
func (c *cached) hit(r *Request) bool {
	if r.Write {
		return false
	}
	c.accesses++
	found := c.partition.Read(cache.Key{Block: r.Block}, 1, nil)
	switch found.Outcome {
	case cache.Hit:
		c.hits++
		c.partition.Unpin(found.Slot)
		return true
	case cache.Fill:
		c.partition.EndFill(found.Slot, found.Mask, 0, nil)
	}
	return false
}
