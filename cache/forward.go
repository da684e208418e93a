package cache

import "sync/atomic"

// Request is what the forwarding decision looks at. It travels with a
// forwarded request.
type Request struct {
	LU          uint32
	Off         int64 // bytes
	Len         int   // bytes
	Interpreted bool  // Algorithm 1 has been run: serve it, wherever the data is
}

// Route says what is to be done with a request.
type Route struct {
	Pieces  int  // filled in the caller's array
	Bytes   int  // that the pieces cover: less than Request.Len if the array was too short
	Node    int  // that serves the request
	Forward bool // hand it to a worker of Node; Request.Interpreted is set
}

// RouterStats are a router's counters. They are of the requests that the router
// has seen, whether they were forwarded to it or arrived there.
type RouterStats struct {
	Interpreted    uint64 // requests that Algorithm 1 was run for
	LocalBytes     uint64 // served on the router's node, which has most of them
	RemoteBytes    uint64 // served on the router's node, though another has most of them
	ForwardedBytes uint64 // handed to the node that has most of them

	Local, Remote, Forwarded uint64 // requests of each kind
}

// Router decides, on one event thread, where requests are served. Its methods and
// the thread belong together; Stats may be read from anywhere.
type Router struct {
	geometry  *Geometry
	node      int
	threshold *atomic.Int64

	_     [64]byte // the counters share their cache lines with nothing
	stats struct {
		interpreted              counter
		local, remote, forwarded traffic
	}
	_ [64]byte
}

// counter is written by one thread and read by any.
type counter struct{ atomic.Uint64 }

func (c *counter) add(n int) { c.Store(c.Load() + uint64(n)) }

type traffic struct{ requests, bytes counter }

func (t *traffic) add(bytes int) {
	t.requests.add(1)
	t.bytes.add(bytes)
}

// NewRouter returns the router of a thread on a node, below 0 if that is none of
// the cache's. Requests below threshold bytes are served where they arrive: a
// hand-over would cost more than reading from another node's memory. Routers may
// share a threshold, which may change at any time (see Tuner).
func NewRouter(g *Geometry, node int, threshold *atomic.Int64) *Router {
	return &Router{geometry: g, node: node, threshold: threshold}
}

// Route runs Algorithm 1 once in a request's life: a forwarded request is only
// cut into pieces and served. The pieces are in the caller's array.
func (r *Router) Route(req *Request, out []Piece) Route {
	pieces, bytes := r.geometry.Split(req.LU, req.Off, req.Len, out)
	route := Route{Pieces: pieces, Bytes: bytes, Node: r.node}
	if req.Interpreted {
		r.Taken(bytes)
		return route
	}
	req.Interpreted = true
	best := r.best(out[:pieces])
	if best == r.node || int64(req.Len) < r.threshold.Load() {
		r.Served(best, bytes)
		return route
	}
	r.Forwarded(bytes)
	route.Node, route.Forward = best, true
	return route
}

// ownerPieces is how many pieces Owner looks at a time.
const ownerPieces = 16

// Owner is Algorithm 1 alone: it returns the node that has most of n bytes at off
// of an LU, and whether another than the router's own is to serve them. It counts
// nothing: Served or Forwarded follows once it is known what becomes of the
// request.
func (r *Router) Owner(lu uint32, off int64, n int) (node int, forward bool) {
	var some [ownerPieces]Piece
	pieces, bytes := r.geometry.Split(lu, off, n, some[:])
	if bytes == n {
		node = r.best(some[:pieces])
	} else {
		node = r.bestOfMany(lu, off, n)
	}
	return node, node != r.node && int64(n) >= r.threshold.Load()
}

// bestOfMany is best for any number of pieces.
func (r *Router) bestOfMany(lu uint32, off int64, n int) int {
	var a Affinity
	var some [ownerPieces]Piece
	for n > 0 {
		pieces, bytes := r.geometry.Split(lu, off, n, some[:])
		a.Add(some[:pieces])
		off, n = off+int64(bytes), n-bytes
	}
	return a.Best(int(r.geometry.nodes), r.node)
}

// Served counts an interpreted request that is served on the router's node, where
// it has arrived.
func (r *Router) Served(owner, bytes int) {
	r.stats.interpreted.add(1)
	if owner == r.node {
		r.stats.local.add(bytes)
		return
	}
	r.stats.remote.add(bytes)
}

// Forwarded counts an interpreted request that is handed to another node.
func (r *Router) Forwarded(bytes int) {
	r.stats.interpreted.add(1)
	r.stats.forwarded.add(bytes)
}

// Taken counts a request that another node has handed to this one.
func (r *Router) Taken(bytes int) { r.stats.local.add(bytes) }

// best returns the node that has most of the pieces.
func (r *Router) best(pieces []Piece) int {
	switch {
	case r.geometry.nodes == 1 || len(pieces) == 0:
		return max(r.node, 0)
	case len(pieces) == 1:
		return int(pieces[0].Node)
	}
	var a Affinity
	a.Add(pieces)
	return a.Best(int(r.geometry.nodes), r.node)
}

// Stats returns the counters.
func (r *Router) Stats() RouterStats {
	s := &r.stats
	return RouterStats{
		Interpreted: s.interpreted.Load(), LocalBytes: s.local.bytes.Load(), RemoteBytes: s.remote.bytes.Load(), ForwardedBytes: s.forwarded.bytes.Load(),
		Local: s.local.requests.Load(), Remote: s.remote.requests.Load(), Forwarded: s.forwarded.requests.Load(),
	}
}
