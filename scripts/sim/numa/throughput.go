package numa

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

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
	copied func(bytes int, remote bool, ns int64) // is told of copies; nil: nobody is
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
	began := h.kernel.Now()
	part := func(s *kernel.Station, bytes int, bw float64) {
		if bytes == 0 {
			return
		}
		left++
		s.Serve(int64(float64(bytes)/bw), func() {
			if h.copied != nil {
				h.copied(bytes, s == h.link, h.kernel.Now()-began)
			}
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
func warm(env *experiment.Env) (*partitioned, error) {
	layout := cache.Layout{BlockSize: cacheBlock, Neighbours: 4, Partitions: 10 * nodes, Nodes: nodes}
	t, err := newPartitioned(env, layout, 2*lus*volume/cacheBlock)
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

// Of each kind of sample, one in so many is measured, and the server adapts its threshold
// once a second; here more often, because runs are short.
const (
	sampleEvery = 61
	adaptEvery  = 50_000_000 // ns
	leastCopy   = 4 << 10    // bytes; smaller ones are not measured
)

// tuner feeds the server's Tuner as its cache does, and puts into force what it says.
type tuner struct {
	*cache.Tuner
	size    *atomic.Int64
	samples int
}

// due reports whether the next forward or copy is to be measured.
func (u *tuner) due() bool {
	u.samples++
	return u.samples%sampleEvery == 0
}

// copied tells what the parts of a copy took.
func (u *tuner) copied(bytes int, remote bool, ns int64) {
	if bytes >= leastCopy && u.due() {
		u.Copied(bytes, remote, ns)
	}
}

func (u *tuner) adapt() { u.size.Store(u.Adapt()) }

// load is the workers of all LUs on a host.
type load struct {
	*host
	target *partitioned // nil: a page cache
	tuner  *tuner       // nil: the threshold stays
	sizes  []int        // of requests, each as likely
	missed int
}

func (l *load) work(lu uint32) {
	again := func() { l.work(lu) }
	size := l.sizes[0]
	if len(l.sizes) > 1 {
		size = l.sizes[l.r.IntN(len(l.sizes))]
	}
	node, off := l.r.IntN(nodes), l.r.Int64N(int64(volume/size))*int64(size)
	if l.target == nil {
		l.pageCache(node, size, again)
		return
	}
	s := l.target.serve(lu, off, size, node)
	l.missed += len(s.missed)
	ns := int64(overhead(s))
	if l.tuner != nil && s.forwarded && l.tuner.due() {
		l.tuner.HandedOver(ns)
	}
	l.kernel.After(ns, kernel.Completion, func() { l.send(s.node, s.local, size-s.local, again) })
}

// adapt lets the tuner decide again and again.
func (l *load) adapt() {
	l.tuner.adapt()
	l.kernel.After(adaptEvery, kernel.TokenTick, l.adapt)
}

// saturated returns the GB/s of requests of these sizes, measured for ns; a nil target is
// a page cache.
func saturated(env *experiment.Env, t *partitioned, u *tuner, ns int64, sizes ...int) (float64, error) {
	l := &load{host: newHost(env.Seed), target: t, tuner: u, sizes: sizes}
	if u != nil {
		l.copied = u.copied
		l.kernel.After(adaptEvery, kernel.TokenTick, l.adapt)
	}
	for lu := range uint32(lus) {
		for range workers {
			l.kernel.After(0, kernel.Arrival, func() { l.work(lu) })
		}
	}
	l.kernel.Run(settle)
	l.bytes = 0
	l.kernel.Run(settle + ns)
	if l.missed != 0 {
		return 0, fmt.Errorf("%d misses in a cache that holds everything", l.missed)
	}
	return float64(l.bytes) / float64(ns), nil
}

// found is the threshold that the server's Tuner comes to under a mixed load. Of requests
// of one size it sees either forwards or copies from other nodes, and stays where it is.
func found(env *experiment.Env, ns int64, sizes []int) (int64, error) {
	t, err := warm(env)
	if err != nil || !env.Decides(routing) {
		return cache.NeverForward, err
	}
	if !env.Decides(tuning) {
		return cache.NeverForward, nil
	}
	t.size.Store(threshold)
	_, err = saturated(env, t, &tuner{Tuner: cache.NewTuner(threshold), size: t.size}, ns, sizes...)
	return t.size.Load(), err
}

// runThroughputs is figure 5-11: from some size on the partitioned cache wins. Requests
// are forwarded from the size that the server's Tuner finds.
func runThroughputs(env *experiment.Env, result *experiment.Result) error {
	ns := int64(300_000_000)
	if env.Reduced {
		ns /= 3
	}
	var sizes []int
	for size := 16 << 10; size <= 512<<10; size *= 2 {
		sizes = append(sizes, size)
	}
	from, err := found(env, max(ns, 200_000_000), sizes)
	if err != nil {
		return err
	}
	result.Note("size from which the Tuner forwards, KiB", "64", kib(from), "its copies wait for the link between nodes as others do, so that remote memory looks as slow as it is under this load")
	t, err := warm(env)
	if err != nil {
		return err
	}
	t.size.Store(from)
	crossover, best := 0, 0.0
	page, numa := experiment.Series{Name: "page cache"}, experiment.Series{Name: "partitioned"}
	for _, size := range sizes {
		before, err := saturated(env, nil, nil, ns, size)
		if err != nil {
			return err
		}
		after, err := saturated(env, t, nil, ns, size)
		if err != nil {
			return err
		}
		gain := after/before*100 - 100
		best = max(best, gain)
		what := fmt.Sprintf("%d KiB, ", size>>10)
		if size <= 32<<10 {
			result.Model()
			result.AtLeast(what+"change in %", "not worse", gain, -3)
		} else {
			result.Paper(tuning)
			result.AtLeast(what+"change in %", "gains", gain, 5)
		}
		result.Note(what+"GB/s, page cache and partitioned", "", fmt.Sprintf("%.2f, %.2f", before, after), "")
		if crossover == 0 && gain > 5 {
			crossover = size
		}
		page.Points = append(page.Points, experiment.Point{X: float64(size >> 10), Y: before})
		numa.Points = append(numa.Points, experiment.Point{X: float64(size >> 10), Y: after})
	}
	result.Paper(tuning)
	result.Claim("size from which it gains, KiB", "64", "32 to 128", fmt.Sprint(crossover>>10), crossover >= 32<<10 && crossover <= 128<<10,
		"a hand-over delays a request and takes none of a CPU's time in this model, so that it pays at any size where the link is full")
	result.Claim("highest gain in %", "80", "70 to 90", experiment.Num(best), best >= 70 && best <= 90,
		"two ports carry 6.7 GB/s; what the page cache reaches is what a link of 3.2 GB/s and a quarter of local reads allow")
	result.Figures = append(result.Figures, experiment.Figure{
		Name: "numa-5-11", Title: "Throughput, all cached", X: "request, KiB", Y: "GB/s", LogX: true,
		Series: []experiment.Series{page, numa},
	})
	return nil
}

// kib prints a threshold.
func kib(bytes int64) string {
	if bytes == cache.NeverForward {
		return "never"
	}
	return fmt.Sprint(bytes >> 10)
}
