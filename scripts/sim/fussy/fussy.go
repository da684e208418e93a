package fussy

import (
	"lunar/cache"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// accessTimes are what parts of an access take, in ns: data is of a block that enters,
// metadata of one that does not.
type accessTimes struct{ lookup, device, data, metadata int64 }

// trace draws block numbers.
type trace func() uint64

// zipfTrace is a Zipf 0.9 choice among hot blocks with a share of accesses to
// blocks that are touched once.
func zipfTrace(seed uint64, hot int, once float64) trace {
	r := kernel.NewRand(seed, 0)
	zipf := kernel.NewDraw(kernel.ZipfWeights(hot, 0.9))
	fresh := uint64(1) << 32
	return func() uint64 {
		if r.Float64() < once {
			fresh++
			return fresh
		}
		return uint64(zipf.Next(r))
	}
}

// admission is the decision what may enter the cache: FussyCache's. The stub lets all in.
const admission experiment.Decision = "cache.Fussy: what is admitted"

// blockCache is one partition of blocks of one sub-block, and what became of the
// accesses to it.
type blockCache struct {
	p                       *cache.Partition
	hits, entered, bypassed int64
}

// newBlockCache returns an empty cache with an admission policy; nil is LRU.
func newBlockCache(blocks int, admit cache.Admission) (*blockCache, error) {
	p, err := cache.NewPartition(cache.Config{Slots: blocks, BlockSize: cache.MinBlock, LUs: 1}, nil)
	if err != nil {
		return nil, err
	}
	return &blockCache{p: p}, p.SetLU(0, cache.LUConfig{Admission: admit})
}

// access reads a block. What the policy wants at its tick is fetched beside the
// requests, in no time.
func (c *blockCache) access(n uint64) {
	r := c.p.Read(cache.Key{Block: n}, 1, nil)
	switch r.Outcome {
	case cache.Hit:
		c.hits++
		c.p.Unpin(r.Slot)
	case cache.Fill:
		c.entered++
		c.p.EndFill(r.Slot, r.Mask, 0, nil)
	default:
		c.bypassed++
	}
	c.tick()
}

func (c *blockCache) tick() {
	var out [64]cache.Key
	for c.p.Due() {
		for _, k := range out[:c.p.Tick(out[:])] {
			if r := c.p.Prefetch(k, 1); r.Outcome == cache.Fill {
				c.p.EndFill(r.Slot, r.Mask, 0, nil)
			}
		}
	}
}

func (c *blockCache) accesses() float64 { return float64(c.hits + c.entered + c.bypassed) }

func (c *blockCache) hitRatio() float64 { return float64(c.hits) / c.accesses() }

// latency is the mean time of an access, in ns.
func (c *blockCache) latency(t accessTimes) float64 {
	missed := c.entered + c.bypassed
	return float64(t.lookup) + float64(missed*t.device+c.entered*t.data+c.bypassed*t.metadata)/c.accesses()
}

// compared is the same trace under LRU and under FussyCache with DMC = DC/2.
type compared struct{ lru, fussy *blockCache }

// gain is by how much FussyCache is faster, in %.
func (c compared) gain(t accessTimes) float64 {
	return (1 - c.fussy.latency(t)/c.lru.latency(t)) * 100
}

func compare(env *experiment.Env, blocks, accesses int, once float64) (c compared, err error) {
	const hot = 20_000
	var f cache.Admission
	if env.Decides(admission) {
		if f, err = cache.NewFussy(cache.FussyParams{FreqThreshold: 3, AccessThreshold: 500, Metadata: blocks / 2, HRCount: 5}); err != nil {
			return c, err
		}
	}
	if c.lru, err = newBlockCache(blocks, nil); err != nil {
		return c, err
	}
	if c.fussy, err = newBlockCache(blocks, f); err != nil {
		return c, err
	}
	next := zipfTrace(env.Seed, hot, once)
	for range accesses {
		n := next()
		c.lru.access(n)
		c.fussy.access(n)
	}
	return c, nil
}

// The devices of the experiments, Optane and TLC flash, with what this cache needs: 0.12
// us to insert a block, 0.7 us of FussyCache for each miss (docs/reports/performance-cache.md).
var (
	optane = accessTimes{1000, 15_000, 120, 700}
	flash  = accessTimes{1000, 70_000, 120, 700}
)

// costly is a cache that needs 5 us to insert a block and 0.5 us for metadata, on the
// devices. The thesis gives neither time; with these its figures would come out.
var costlyOptane, costlyFlash = accessTimes{1000, 15_000, 5000, 500}, accessTimes{1000, 70_000, 5000, 500}
