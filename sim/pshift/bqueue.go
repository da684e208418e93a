package pshift

import "math"

// bQueue is the baseline of A3: the tokens of a maximum flow from the buckets'
// budgets through their demands to the servers' capacities, and what it could
// not route spread over the demand that is left. It writes tokens, bucket i on
// server j at i*servers+j, and returns the flow. The flow is Dinic's.
func bQueue(demand, capacity, budget, tokens []int64) int64 {
	g := newFlow(demand, capacity, budget)
	routed := int64(0)
	for g.levels() {
		copy(g.next, g.first)
		routed += g.push(g.source, math.MaxInt64)
	}
	g.collect(tokens, budget, demand, len(capacity))
	return routed
}

// flow is a residual graph; the edge after an even one is its reverse.
type flow struct {
	source, sink int
	to           []int
	room         []int64
	after        []int // next edge of the same node, -1 none
	first, next  []int // edge of each node: first, and next to be tried
	level, queue []int
	cells        []int // of edge e/2: index in the matrices, -1 if none
}

func newFlow(demand, capacity, budget []int64) *flow {
	servers := len(capacity)
	nodes := len(budget) + servers + 2
	g := &flow{
		source: nodes - 2, sink: nodes - 1,
		first: make([]int, nodes), next: make([]int, nodes), level: make([]int, nodes),
	}
	for i := range g.first {
		g.first[i] = -1
	}
	for i, a := range budget {
		g.edge(g.source, i, a, -1)
		for j := range servers {
			if d := demand[i*servers+j]; d > 0 {
				g.edge(i, len(budget)+j, d, i*servers+j)
			}
		}
	}
	for j, c := range capacity {
		g.edge(len(budget)+j, g.sink, c, -1)
	}
	return g
}

func (g *flow) edge(from, to int, room int64, cell int) {
	g.to = append(g.to, to, from)
	g.room = append(g.room, room, 0)
	g.after = append(g.after, g.first[from], g.first[to])
	g.first[from], g.first[to] = len(g.to)-2, len(g.to)-1
	g.cells = append(g.cells, cell)
}

// levels finds the distance of each node from the source; it reports whether
// the sink can be reached.
func (g *flow) levels() bool {
	for i := range g.level {
		g.level[i] = -1
	}
	g.level[g.source] = 0
	g.queue = append(g.queue[:0], g.source)
	for at := 0; at < len(g.queue); at++ {
		for e := g.first[g.queue[at]]; e >= 0; e = g.after[e] {
			if g.room[e] > 0 && g.level[g.to[e]] < 0 {
				g.level[g.to[e]] = g.level[g.queue[at]] + 1
				g.queue = append(g.queue, g.to[e])
			}
		}
	}
	return g.level[g.sink] >= 0
}

// push sends up to limit from a node on to the sink.
func (g *flow) push(node int, limit int64) int64 {
	if node == g.sink {
		return limit
	}
	sent := int64(0)
	for ; g.next[node] >= 0 && sent < limit; g.next[node] = g.after[g.next[node]] {
		e := g.next[node]
		if g.room[e] == 0 || g.level[g.to[e]] != g.level[node]+1 {
			continue
		}
		n := g.push(g.to[e], min(limit-sent, g.room[e]))
		g.room[e] -= n
		g.room[e^1] += n
		sent += n
		if sent == limit {
			break
		}
	}
	return sent
}

// collect writes the flow as tokens and spreads what was not routed.
func (g *flow) collect(tokens, budget, demand []int64, servers int) {
	clear(tokens)
	for e, cell := range g.cells {
		if cell >= 0 {
			tokens[cell] = g.room[2*e+1]
		}
	}
	for i, left := range budget {
		for j := range servers {
			left -= tokens[i*servers+j]
		}
		for j := 0; j < servers && left > 0; j++ {
			more := min(left, demand[i*servers+j]-tokens[i*servers+j])
			tokens[i*servers+j] += more
			left -= more
		}
	}
}
