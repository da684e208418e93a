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

// RouterStats are a router's counters. Bytes are of the requests that the
// router has seen, whether they were forwarded to it or arrived there.
type RouterStats struct {
	Interpreted    uint64 // requests that Algorithm 1 was run for
	LocalBytes     uint64 // served on the router's node, which has most of them
	RemoteBytes    uint64 // served on the router's node, though another has most of them
	ForwardedBytes uint64 // handed to the node that has most of them
}

// Router decides, on one event thread, where requests are served. Route and
// the thread belong together; Stats may be read from anywhere.
type Router struct {
	geometry  *Geometry
	node      int
	threshold *atomic.Int64
	stats     struct{ interpreted, local, remote, forwarded atomic.Uint64 }
}

// NewRouter returns the router of a thread on a node. Requests below threshold
// bytes are served where they arrive: a hand-over would cost more than reading
// from another node's memory. Routers may share a threshold, which may change
// at any time (see Tuner).
func NewRouter(g *Geometry, node int, threshold *atomic.Int64) *Router {
	return &Router{geometry: g, node: node, threshold: threshold}
}

// Route runs Algorithm 1 once in a request's life: a forwarded request is only
// cut into pieces and served. The pieces are in the caller's array.
func (r *Router) Route(req *Request, out []Piece) Route {
	pieces, bytes := r.geometry.Split(req.LU, req.Off, req.Len, out)
	route := Route{Pieces: pieces, Bytes: bytes, Node: r.node}
	if req.Interpreted {
		r.stats.local.Add(uint64(bytes))
		return route
	}
	req.Interpreted = true
	r.stats.interpreted.Add(1)
	best := r.best(out[:pieces])
	switch {
	case best == r.node:
		r.stats.local.Add(uint64(bytes))
	case int64(req.Len) < r.threshold.Load():
		r.stats.remote.Add(uint64(bytes))
	default:
		r.stats.forwarded.Add(uint64(bytes))
		route.Node, route.Forward = best, true
	}
	return route
}

// best returns the node that has most of the pieces.
func (r *Router) best(pieces []Piece) int {
	switch {
	case r.geometry.nodes == 1 || len(pieces) == 0:
		return r.node
	case len(pieces) == 1:
		return int(pieces[0].Node)
	}
	var a Affinity
	a.Add(pieces)
	return a.Best(int(r.geometry.nodes), r.node)
}

// Stats returns the counters.
func (r *Router) Stats() RouterStats {
	return RouterStats{r.stats.interpreted.Load(), r.stats.local.Load(), r.stats.remote.Load(), r.stats.forwarded.Load()}
}
