package numa

import (
	"fmt"
	"math/rand/v2"

	"lunar/cache"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// host is the machine under load.
type host struct {
	kernel kernel.Kernel
	memory [nodes]*kernel.Station
	link   *kernel.Station
	port   [ports]*kernel.Station
	r      *rand.Rand // of nodes, and of what requests are for
	turn   int
	bytes  int64
}

func newHost(seed uint64) *host {
	h := &host{r: kernel.NewRand(seed, placement)}
	for i := range h.memory {
		h.memory[i] = kernel.NewStation(&h.kernel)
	}
	h.link = kernel.NewStation(&h.kernel)
	for i := range h.port {
		h.port[i] = kernel.NewStation(&h.kernel)
	}
	return h
}

// send copies a request's bytes, from the serving node's memory and over the
// link, then sends them, and ends one round trip later.
func (h *host) send(node, local, remote int, done func()) {
	h.turn++
	port := h.port[h.turn%ports]
	left := 0
	part := func(s *kernel.Station, bytes int, bw float64) {
		if bytes == 0 {
			return
		}
		left++
		s.Serve(int64(float64(bytes)/bw), func() {
			if left--; left > 0 {
				return
			}
			port.Serve(int64(float64(local+remote)/portBW), func() {
				h.bytes += int64(local + remote)
				h.kernel.After(rtt, kernel.Completion, done)
			})
		})
	}
	part(h.memory[node], local, localBW)
	part(h.link, remote, linkBW)
}

// pageCache serves a request whose source lies on a random node.
func (h *host) pageCache(node, size int, done func()) {
	if h.r.IntN(nodes) == node {
		h.send(node, size, 0, done)
		return
	}
	h.send(node, 0, size, done)
}

// The load of figure 5-11: 8 LUs with 16 workers each, all of whose data are
// cached. Everything is scaled down but the times: 512 MiB for each LU.
const (
	lus, workers = 8, 16
	volume       = 512 << 20
	cacheBlock   = 512 << 10
	settle       = 100_000_000 // ns
)

// warm returns a cache that holds all of the LUs.
func warm() (*partitioned, error) {
	layout := cache.Layout{BlockSize: cacheBlock, Neighbours: 4, Partitions: 10 * nodes, Nodes: nodes}
	t, err := newPartitioned(layout, 2*lus*volume/cacheBlock)
	if err != nil {
		return nil, err
	}
	for lu := range uint32(lus) {
		for off := int64(0); off < volume; off += cacheBlock {
			t.serve(lu, off, cacheBlock, 0)
		}
	}
	return t, nil
}

// saturated returns the GB/s of requests of one size; a nil target is a page
// cache. It measures for ns.
func saturated(seed uint64, t *partitioned, size int, ns int64) (float64, error) {
	h := newHost(seed)
	missed := 0
	var work func(lu uint32)
	work = func(lu uint32) {
		again := func() { work(lu) }
		node, off := h.r.IntN(nodes), h.r.Int64N(int64(volume/size))*int64(size)
		if t == nil {
			h.pageCache(node, size, again)
			return
		}
		s := t.serve(lu, off, size, node)
		missed += len(s.missed)
		h.kernel.After(int64(overhead(s)), kernel.Completion, func() { h.send(s.node, s.local, size-s.local, again) })
	}
	for lu := range uint32(lus) {
		for range workers {
			h.kernel.After(0, kernel.Arrival, func() { work(lu) })
		}
	}
	h.kernel.Run(settle)
	h.bytes = 0
	h.kernel.Run(settle + ns)
	if missed != 0 {
		return 0, fmt.Errorf("%d misses in a cache that holds everything", missed)
	}
	return float64(h.bytes) / float64(ns), nil
}

// runThroughputs is figure 5-11: from some size on the partitioned cache wins.
func runThroughputs(env *experiment.Env, result *experiment.Result) error {
	ns := int64(300_000_000)
	if env.Reduced {
		ns /= 3
	}
	crossover, gain := 0, 0.0
	page, numa := experiment.Series{Name: "page cache"}, experiment.Series{Name: "partitioned"}
	for size := 16 << 10; size <= 512<<10; size *= 2 {
		t, err := warm()
		if err != nil {
			return err
		}
		before, err := saturated(env.Seed, nil, size, ns)
		if err != nil {
			return err
		}
		after, err := saturated(env.Seed, t, size, ns)
		if err != nil {
			return err
		}
		gain = after/before*100 - 100
		what := fmt.Sprintf("%d KiB: %.2f -> %.2f GB/s, change in %%", size>>10, before, after)
		if crossover == 0 && gain > 5 {
			crossover = size
		}
		if crossover == 0 {
			result.AtLeast(what, "not worse", gain, -3)
		} else {
			result.Note(what, "up to +80 %", experiment.Num(gain), "")
		}
		page.Points = append(page.Points, experiment.Point{X: float64(size >> 10), Y: before})
		numa.Points = append(numa.Points, experiment.Point{X: float64(size >> 10), Y: after})
	}
	result.Within("size from which it gains, KiB", "64", float64(crossover>>10), 32, 128)
	result.AtLeast("gain at 512 KiB in %", "80", gain, 50)
	result.Figures = append(result.Figures, experiment.Figure{
		Name: "numa-5-11", Title: "Throughput, all cached", X: "request, KiB", Y: "GB/s", LogX: true,
		Series: []experiment.Series{page, numa},
	})
	return nil
}
