package numa

import (
	"fmt"
	"math"

	"lunar/cache"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// latencies are the mean response times of one run, in us.
type latencies struct{ page, numa float64 }

// change is by how much the partitioned cache changes the response time, in %.
func (l latencies) change() float64 { return (l.numa/l.page - 1) * 100 }

// unloaded sends 10 requests a second for 300 s, each at a random 4 KiB boundary
// and to a worker on a random node, against a warm cache. A page cache has its
// pages anywhere; the partitioned one serves what Algorithm 1 makes of it.
func unloaded(env *experiment.Env, block, size int) (latencies, error) {
	const seconds, rate, volume = 300, 10, int64(720) << 30
	t, err := newPartitioned(env, cache.Layout{BlockSize: block, Neighbours: 4, Partitions: 36 * nodes, Nodes: nodes}, 0)
	if err != nil {
		return latencies{}, err
	}
	var k kernel.Kernel
	r := kernel.NewRand(env.Seed, requests)
	var page, numa float64
	for i := range int64(seconds * rate) {
		k.After(i*1e9/rate, kernel.Arrival, func() {
			s := t.serve(0, r.Int64N((volume-int64(size))>>12)<<12, size, r.IntN(nodes))
			page += responseTime(size, memoryBandwidth(1.0/nodes))
			numa += responseTime(size, memoryBandwidth(float64(s.local)/float64(size))) + overhead(s)
		})
	}
	k.Drain()
	const count = seconds * rate * 1e3
	return latencies{page / count, numa / count}, t.interpreted(seconds * rate)
}

// overhead is what the partitioned cache costs beside the copy, in ns.
func overhead(s served) float64 {
	ns := float64(s.pieces * perPiece)
	if s.forwarded {
		ns += handOver
	}
	return ns
}

// responseTimes are the sizes of figure 5-9 with what the paper says of them: in words,
// measured, and what its formula (5.1) gives.
var responseTimes = []struct {
	size              int
	paper             string
	measured, formula float64
}{
	{4 << 10, "equal", 0, 0}, {8 << 10, "equal", 0, 0}, {16 << 10, "equal", 0, 0}, {32 << 10, "equal", 0, 0},
	{64 << 10, "", 0, 0}, {128 << 10, "", 0, 0}, {256 << 10, "-13 %", -13, -9.7}, {512 << 10, "-23 %", -23, -12.8},
}

// runResponseTimes is figure 5-9: the response time by request size.
func runResponseTimes(env *experiment.Env, result *experiment.Result) error {
	page, numa := experiment.Series{Name: "page cache"}, experiment.Series{Name: "partitioned"}
	for _, c := range responseTimes {
		l, err := unloaded(env, 512<<10, c.size)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%d KiB, change in %%", c.size>>10)
		result.Note(fmt.Sprintf("%d KiB, page cache and partitioned, us", c.size>>10), "", fmt.Sprintf("%.0f, %.0f", l.page, l.numa), "")
		switch {
		case c.size <= 32<<10:
			result.Model()
			result.Within(what, c.paper, l.change(), -3, 3)
		case c.paper == "":
			result.Note(what, "", experiment.Num(l.change()), "")
		default:
			result.Paper(routing)
			result.Within(what+", by the paper's formula", experiment.Num(c.formula), l.change(), c.formula-2, c.formula+2)
			result.Claim(what, experiment.Num(c.measured), "±3 points", experiment.Num(l.change()), math.Abs(l.change()-c.measured) <= 3,
				"the paper's own formula (5.1) does not give what it measured")
		}
		page.Points = append(page.Points, experiment.Point{X: float64(c.size >> 10), Y: l.page})
		numa.Points = append(numa.Points, experiment.Point{X: float64(c.size >> 10), Y: l.numa})
	}
	result.Figures = append(result.Figures, experiment.Figure{
		Name: "numa-5-9", Title: "Response time, warm cache", X: "request, KiB", Y: "us", LogX: true,
		Series: []experiment.Series{page, numa},
	})
	return nil
}

// runBlockSizes is figure 5-10: the cache's block size does not matter.
func runBlockSizes(env *experiment.Env, result *experiment.Result) error {
	low, high := 0.0, 0.0
	for block := 128 << 10; block <= 1<<20; block *= 2 {
		l, err := unloaded(env, block, 512<<10)
		if err != nil {
			return err
		}
		if low == 0 || l.numa < low {
			low = l.numa
		}
		high = max(high, l.numa)
	}
	result.Model()
	result.AtMost("512 KiB, blocks of 128 KiB to 1 MiB, spread in %", "no notable change", (high/low-1)*100, 3)
	return nil
}
