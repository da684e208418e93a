package numa

import (
	"fmt"
	"sync/atomic"

	"lunar/cache"
	"lunar/scripts/sim/experiment"
)

// The machine of the NUMA experiments: four nodes, two network ports.
// Bandwidths in bytes per ns, times in ns.
const (
	nodes     = 4
	localBW   = 18.9
	linkBW    = 3.2  // all traffic between nodes together
	portBW    = 3.36 // fitted: 156 us for 512 KiB
	ports     = 2
	rtt       = 70_000
	queueing  = 40_000
	handOver  = 4_000
	perPiece  = 50 // Algorithm 1, for each sub-request
	threshold = 64 << 10
)

// Decisions of the server's code.
const (
	// routing sends a request to the node that has most of it; the stub leaves it where
	// it came.
	routing experiment.Decision = "cache.Router: Algorithm 1"
	// tuning finds the size from which that pays; the stub says that none is.
	tuning experiment.Decision = "cache.Tuner: the size from which requests are forwarded"
	// wholeBlocks reads what is missing with one command; the stub reads as readahead does.
	wholeBlocks experiment.Decision = "cache.Partition: blocks that are filled whole"
)

// remoteBW are the bandwidths from one node to the other three.
var remoteBW = [nodes - 1]float64{3.3, 2.9, 3.3}

// memoryBandwidth is formula (5.2): the mean of the nodes' bandwidths, weighted
// with where the bytes lie. local is the share of the executing node; the rest
// is spread evenly.
func memoryBandwidth(local float64) float64 {
	sum := local * localBW
	for _, bw := range remoteBW {
		sum += (1 - local) / float64(len(remoteBW)) * bw
	}
	return sum
}

// responseTime is formula (5.1), in ns: round trip, memory, network, queueing.
func responseTime(bytes int, memoryBW float64) float64 {
	return rtt + float64(bytes)/memoryBW + float64(bytes)/portBW + queueing
}

// runBandwidths is the experiment of formula (5.2).
func runBandwidths(*experiment.Env) (r experiment.Result) {
	r.Wiring()
	r.Within("uniform weights, GB/s", "7.1", memoryBandwidth(1.0/nodes), 7.08, 7.12)
	r.Within("90 % local, GB/s", "17.32", memoryBandwidth(0.9), 17.30, 17.34)
	return r
}

// partitioned is a cache spread over the nodes, with a router on each.
type partitioned struct {
	geometry *cache.Geometry
	routers  [nodes]*cache.Router
	parts    []*cache.Partition
	pieces   []cache.Piece
	size     *atomic.Int64 // from which requests are forwarded
}

func newPartitioned(env *experiment.Env, l cache.Layout, blocks int) (*partitioned, error) {
	g, err := cache.NewGeometry(l)
	if err != nil {
		return nil, err
	}
	t := &partitioned{geometry: g, pieces: make([]cache.Piece, 256), size: new(atomic.Int64)}
	t.size.Store(threshold)
	if !env.Decides(routing) {
		t.size.Store(cache.NeverForward)
	}
	for n := range t.routers {
		t.routers[n] = cache.NewRouter(g, n, t.size)
	}
	for id := range l.Partitions {
		slots := max(blocks/l.Partitions, 1)
		p, err := cache.NewPartition(cache.Config{ID: uint32(id), Slots: slots, BlockSize: l.BlockSize, LUs: 8}, nil)
		if err != nil {
			return nil, err
		}
		t.parts = append(t.parts, p)
	}
	return t, nil
}

// served is what one request came to.
type served struct {
	node      int
	forwarded bool
	pieces    int
	local     int // bytes on the serving node
	missed    []cache.Piece
}

// serve routes a request that has arrived on a node, and reads it from the
// partitions. A forwarded request is routed again where it was sent.
func (t *partitioned) serve(lu uint32, off int64, n, node int) served {
	req := cache.Request{LU: lu, Off: off, Len: n}
	route := t.routers[node].Route(&req, t.pieces)
	s := served{node: node, pieces: route.Pieces}
	if route.Forward {
		s.forwarded = true
		s.node = route.Node
		route = t.routers[route.Node].Route(&req, t.pieces)
		if route.Forward {
			panic("numa: a request was forwarded twice")
		}
	}
	for _, p := range t.pieces[:route.Pieces] {
		if int(p.Node) == s.node {
			s.local += int(p.Len)
		}
		if !t.read(lu, p) {
			s.missed = append(s.missed, p)
		}
	}
	return s
}

// read reads a piece and reports whether it was there; if not, it is now.
func (t *partitioned) read(lu uint32, p cache.Piece) bool {
	part := t.parts[p.Partition]
	want, _ := t.geometry.Masks(p.Off, p.Len)
	r := part.Read(cache.Key{LU: lu, Block: p.Block}, want, nil)
	switch r.Outcome {
	case cache.Fill:
		part.EndFill(r.Slot, r.Mask, 0, nil)
	case cache.Hit:
		part.Unpin(r.Slot)
	}
	return r.Outcome == cache.Hit
}

// interpreted fails unless Algorithm 1 was run once for each of n requests.
func (t *partitioned) interpreted(n uint64) error {
	var times uint64
	for _, r := range t.routers {
		times += r.Stats().Interpreted
	}
	if times != n {
		return fmt.Errorf("algorithm 1 was run %d times for %d requests", times, n)
	}
	return nil
}
