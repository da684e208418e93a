// Package bqueue is the baseline of the pShift paper: token allocation by
// maximum flow. It is slow and right, so tests and the simulator compare
// pShift with it.
package bqueue

import "math"

// Problem is one allocation; the matrix holds bucket i on server j at
// i*len(Capacity)+j.
type Problem struct {
	Budget   []int64 // A: tokens per bucket
	Demand   []int64 // d
	Capacity []int64 // C per server
}

// edge is half of an arc; its other half is at index^1.
type edge struct {
	to       int
	capacity int64 // residual
}

// network is a flow network: source, buckets, servers, sink.
type network struct {
	edges []edge
	out   [][]int // edge numbers per node
	level []int
	next  []int
}

// Solve returns the allocation whose effective tokens are the most possible,
// and that number Φ. Tokens that found no way are spread over spare demand, so
// that bucket i has min(A, D) of them.
func Solve(p Problem) (tokens []int64, effective int64) {
	buckets, servers := len(p.Budget), len(p.Capacity)
	n := &network{out: make([][]int, buckets+servers+2)}
	source, sink := buckets+servers, buckets+servers+1
	for i, budget := range p.Budget {
		n.add(source, i, budget)
	}
	middle := len(n.edges)
	for at, d := range p.Demand {
		n.add(at/servers, buckets+at%servers, d)
	}
	for j, capacity := range p.Capacity {
		n.add(buckets+j, sink, capacity)
	}
	effective = n.maximise(source, sink)
	tokens = make([]int64, len(p.Demand))
	for at := range tokens {
		tokens[at] = n.edges[middle+2*at+1].capacity
	}
	spread(p, tokens)
	return tokens, effective
}

// spread gives each bucket's unrouted tokens to the servers with spare demand,
// lower ones first.
func spread(p Problem, tokens []int64) {
	servers := len(p.Capacity)
	for i, left := range p.Budget {
		a, d := tokens[i*servers:(i+1)*servers], p.Demand[i*servers:(i+1)*servers]
		for _, t := range a {
			left -= t
		}
		for j := range a {
			t := max(0, min(left, d[j]-a[j]))
			a[j] += t
			left -= t
		}
	}
}

func (n *network) add(from, to int, capacity int64) {
	n.out[from] = append(n.out[from], len(n.edges))
	n.out[to] = append(n.out[to], len(n.edges)+1)
	n.edges = append(n.edges, edge{to, capacity}, edge{from, 0})
}

// maximise is Dinic's algorithm: blocking flows over the levels of a search.
func (n *network) maximise(source, sink int) (flow int64) {
	n.level, n.next = make([]int, len(n.out)), make([]int, len(n.out))
	for n.search(source, sink) {
		clear(n.next)
		for {
			f := n.augment(source, sink, math.MaxInt64)
			if f == 0 {
				break
			}
			flow += f
		}
	}
	return flow
}

// search numbers the nodes by distance; it reports whether the sink is reached.
func (n *network) search(source, sink int) bool {
	for i := range n.level {
		n.level[i] = -1
	}
	n.level[source] = 0
	queue := []int{source}
	for len(queue) > 0 {
		u := queue[0]
		queue = queue[1:]
		for _, e := range n.out[u] {
			if v := n.edges[e].to; n.edges[e].capacity > 0 && n.level[v] < 0 {
				n.level[v] = n.level[u] + 1
				queue = append(queue, v)
			}
		}
	}
	return n.level[sink] >= 0
}

// augment sends at most limit from u to the sink.
func (n *network) augment(u, sink int, limit int64) int64 {
	if u == sink {
		return limit
	}
	for ; n.next[u] < len(n.out[u]); n.next[u]++ {
		e := n.out[u][n.next[u]]
		v := n.edges[e].to
		if n.edges[e].capacity == 0 || n.level[v] != n.level[u]+1 {
			continue
		}
		if f := n.augment(v, sink, min(limit, n.edges[e].capacity)); f > 0 {
			n.edges[e].capacity -= f
			n.edges[e^1].capacity += f
			return f
		}
	}
	return 0
}
