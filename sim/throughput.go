package sim

import (
	"fmt"
	"math/rand/v2"

	"lunar/cache"
)

// host is the machine under load.
type host struct {
	kernel Kernel
	memory [nodes]*Station
	link   *Station
	port   [ports]*Station
	r      *rand.Rand
	turn   int
	bytes  int64
}

func newHost(seed uint64) *host {
	h := &host{r: NewRand(seed)}
	for i := range h.memory {
		h.memory[i] = NewStation(&h.kernel)
	}
	h.link = NewStation(&h.kernel)
	for i := range h.port {
		h.port[i] = NewStation(&h.kernel)
	}
	return h
}

// send copies a request's bytes, from the serving node's memory and over the
// link, then sends them, and ends one round trip later.
func (h *host) send(node, local, remote int, done func()) {
	h.turn++
	port := h.port[h.turn%ports]
	left := 0
	part := func(s *Station, bytes int, bw float64) {
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
				h.kernel.After(rtt, Completion, done)
			})
		})
	}
	part(h.memory[node], local, localBW)
	part(h.link, remote, linkBW)
}

// saturated runs 8 LUs with 16 workers each, all of whose data are cached, and
// returns GB/s. Everything is scaled down but the times: 512 MiB for each LU.
func saturated(size int, numa bool) (float64, error) {
	const lus, workers, volume, block = 8, 16, 512 << 20, 512 << 10
	const settle, measure = 100_000_000, 300_000_000 // ns
	t, err := newNUMATarget(cache.Layout{BlockSize: block, Neighbours: 4, Partitions: 10 * nodes, Nodes: nodes}, 2*lus*volume/block)
	if err != nil {
		return 0, err
	}
	h := newHost(511)
	for lu := range uint32(lus) {
		for off := int64(0); off < volume; off += block {
			t.serve(lu, off, block, 0)
		}
	}
	missed := 0
	var work func(lu uint32)
	work = func(lu uint32) {
		again := func() { work(lu) }
		node, off := h.r.IntN(nodes), h.r.Int64N(int64(volume/size))*int64(size)
		if !numa {
			h.pageCache(node, size, again)
			return
		}
		s := t.serve(lu, off, size, node)
		missed += len(s.missed)
		h.kernel.After(int64(overhead(s)), Completion, func() { h.send(s.node, s.local, size-s.local, again) })
	}
	for lu := range uint32(lus) {
		for range workers {
			h.kernel.At(0, Arrival, func() { work(lu) })
		}
	}
	h.kernel.Run(settle)
	h.bytes = 0
	h.kernel.Run(settle + measure)
	if missed != 0 {
		return 0, fmt.Errorf("%d misses in a cache that holds everything", missed)
	}
	return float64(h.bytes) / measure, nil
}

// pageCache serves a request whose source lies on a random node.
func (h *host) pageCache(node, size int, done func()) {
	if h.r.IntN(nodes) == node {
		h.send(node, size, 0, done)
		return
	}
	h.send(node, 0, size, done)
}

// throughputs is figure 5-11: from some size on the partitioned cache wins.
func throughputs() ([]Row, error) {
	var rows []Row
	crossover, last := 0, 0.0
	for size := 16 << 10; size <= 512<<10; size *= 2 {
		page, err := saturated(size, false)
		if err != nil {
			return nil, err
		}
		numa, err := saturated(size, true)
		if err != nil {
			return nil, err
		}
		last = numa/page*100 - 100
		if last > 5 && crossover == 0 {
			crossover = size
		}
		paper := "up to +80 %"
		if size <= 32<<10 {
			paper = "not better"
		}
		rows = append(rows, report("5-11", fmt.Sprintf("%d KiB: %.2f -> %.2f GB/s, change in %%", size>>10, page, numa), paper, "%.0f", last))
	}
	return append(rows,
		within("5-11", "size from which it gains, KiB", "64", "%.0f", float64(crossover>>10), 32, 128),
		within("5-11", "gain at 512 KiB in %", "80", "%.0f", last, 50, 80)), nil
}
