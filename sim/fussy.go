package sim

import (
	"fmt"

	"lunar/cache"
)

// accessTimes are what parts of an access take, in ns.
type accessTimes struct{ lookup, device, data, metadata int64 }

// trace draws block numbers.
type trace func() uint64

// zipfTrace is a Zipf 0.9 choice among hot blocks with a share of accesses to
// blocks that are touched once.
func zipfTrace(hot int, once float64) trace {
	r := NewRand(11)
	z := NewZipf(r, hot, 0.9)
	fresh := uint64(1) << 32
	return func() uint64 {
		if r.Float64() < once {
			fresh++
			return fresh
		}
		return uint64(z.Draw())
	}
}

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

func compare(blocks, accesses int, once float64) (c compared, err error) {
	const hot = 20_000
	f, err := cache.NewFussy(cache.FussyParams{FreqThreshold: 3, AccessThreshold: 500, Metadata: blocks / 2, HRCount: 5})
	if err != nil {
		return c, err
	}
	if c.lru, err = newBlockCache(blocks, nil); err != nil {
		return c, err
	}
	if c.fussy, err = newBlockCache(blocks, f); err != nil {
		return c, err
	}
	next := zipfTrace(hot, once)
	for range accesses {
		n := next()
		c.lru.access(n)
		c.fussy.access(n)
	}
	return c, nil
}

// The devices of the experiments: Optane and TLC flash.
var (
	optane = accessTimes{1000, 15_000, 5000, 500}
	flash  = accessTimes{1000, 70_000, 5000, 500}
)

// fussyLatencies are the experiments FC-E (Optane) and FC-L (flash).
func fussyLatencies() ([]Row, error) {
	var rows []Row
	for _, once := range []float64{0, 0.25, 0.5} {
		c, err := compare(2000, 300_000, once)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("%.0f %% one-touch: hits %.2f -> %.2f, gain in %%", once*100, c.lru.hitRatio(), c.fussy.hitRatio())
		rows = append(rows,
			within("FC-E", what, "10-25", "%.1f", c.gain(optane), 20, 100),
			within("FC-L", what, "7-17", "%.1f", c.gain(flash), 0.1, c.gain(optane)))
	}
	return rows, nil
}

// fussyHitRates reports the hit ratio by cache size.
func fussyHitRates() ([]Row, error) {
	var rows []Row
	for _, blocks := range []int{500, 1000, 1500, 2000} {
		c, err := compare(blocks, 60_000, 0.25)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("%.1f %% of the blocks: LRU %.3f, fussy/LRU", float64(blocks)/200, c.lru.hitRatio())
		rows = append(rows, report("FC-h", what, "best <= 5 %", "%.2f", c.fussy.hitRatio()/c.lru.hitRatio()))
	}
	return rows, nil
}

// adversary warms FussyCache with popular blocks, then leaves them a few more in
// each interval, and counts the ticks until it has become LRU.
func adversary() ([]Row, error) {
	const interval, hrCount, blocks = 500, 5, 1000
	f, err := cache.NewFussy(cache.FussyParams{FreqThreshold: 3, AccessThreshold: interval, Metadata: blocks / 2, HRCount: hrCount})
	if err != nil {
		return nil, err
	}
	c, err := newBlockCache(blocks, f)
	if err != nil {
		return nil, err
	}
	for i := range 20 * interval {
		c.access(uint64(i % 100))
	}
	if f.LRU() {
		return nil, fmt.Errorf("fussy cache is LRU although its hit rate rises")
	}
	ticks, fresh := 0, uint64(1)<<32
	for ; !f.LRU() && ticks < 100; ticks++ {
		for i := range interval {
			n := uint64(i % 100)
			if i < (ticks+1)*interval/10 {
				fresh++
				n = fresh
			}
			c.access(n)
		}
	}
	return []Row{within("FC-h", "ticks of an adversary until LRU", "-", "%.0f", float64(ticks), 1, hrCount)}, nil
}
