package sim

import (
	"fmt"
	"sync/atomic"

	"lunar/cache"
)

func newThreshold(bytes int64) *atomic.Int64 {
	t := new(atomic.Int64)
	t.Store(bytes)
	return t
}

// latencies are the mean response times of one run, in us.
type latencies struct{ page, numa float64 }

// gain is by how much the partitioned cache changes the response time.
func (l latencies) gain() float64 { return l.numa/l.page - 1 }

// unloaded sends 10 requests a second for 300 s, each at a random 4 KiB boundary
// and to a worker on a random node, against a warm cache. A page cache has its
// pages anywhere; the partitioned one serves what Algorithm 1 makes of it.
func unloaded(block, size int) (latencies, error) {
	const seconds, rate, volume = 300, 10, int64(720) << 30
	t, err := newNUMATarget(cache.Layout{BlockSize: block, Neighbours: 4, Partitions: 36 * nodes, Nodes: nodes}, 0)
	if err != nil {
		return latencies{}, err
	}
	var k Kernel
	r := NewRand(59)
	var page, numa float64
	for i := range int64(seconds * rate) {
		k.At(i*1e9/rate, Arrival, func() {
			s := t.serve(0, r.Int64N((volume-int64(size))>>12)<<12, size, r.IntN(nodes))
			page += ResponseTime(size, MemoryBandwidth(1.0/nodes))
			numa += ResponseTime(size, MemoryBandwidth(float64(s.local)/float64(size))) + overhead(s)
		})
	}
	k.Run(seconds * 1e9)
	const count = seconds * rate * 1e3
	if n := t.interpreted(); n != seconds*rate {
		return latencies{}, fmt.Errorf("algorithm 1 was run %d times for %d requests", n, seconds*rate)
	}
	return latencies{page / count, numa / count}, nil
}

// overhead is what the partitioned cache costs beside the copy, in ns.
func overhead(s served) float64 {
	ns := float64(s.pieces * perPiece)
	if s.forwarded {
		ns += handOver
	}
	return ns
}

// responseTimes is figure 5-9: the response time by request size.
func responseTimes() ([]Row, error) {
	var rows []Row
	for _, c := range []struct {
		size      int
		paper     string
		low, high float64
	}{
		{4 << 10, "equal", -3, 3}, {16 << 10, "equal", -3, 3}, {32 << 10, "equal", -3, 3},
		{256 << 10, "-13 %", 0, 0}, {512 << 10, "-23 %", -25, -10},
	} {
		l, err := unloaded(512<<10, c.size)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("%d KiB: %.0f -> %.0f us, change in %%", c.size>>10, l.page, l.numa)
		row := within("5-9", what, c.paper, "%.1f", l.gain()*100, c.low, c.high)
		if c.low == c.high {
			row = report("5-9", what, c.paper, "%.1f", l.gain()*100)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// blockSizes is figure 5-10: the cache's block size does not matter.
func blockSizes() ([]Row, error) {
	low, high := 0.0, 0.0
	for block := 128 << 10; block <= 1<<20; block *= 2 {
		l, err := unloaded(block, 512<<10)
		if err != nil {
			return nil, err
		}
		if low == 0 || l.numa < low {
			low = l.numa
		}
		high = max(high, l.numa)
	}
	return []Row{within("5-10", "512 KiB, blocks of 128 KiB to 1 MiB, spread in %", "no notable change", "%.1f", (high/low-1)*100, 0, 3)}, nil
}
