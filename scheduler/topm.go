package scheduler

import (
	"cmp"
	"slices"
)

// topSets are the buckets that may move: per server the M with most tokens (as
// source) and the M with most spare demand (as sink). They are taken before
// shifting and stay.
type topSets struct {
	servers      int
	source, sink []bool // as the matrices of an Instance
}

func newTopSets(p *Instance, m int) *topSets {
	t := &topSets{p.Servers, make([]bool, len(p.Tokens)), make([]bool, len(p.Tokens))}
	order := make([]int, p.Buckets)
	for j := range p.Servers {
		tokens := func(i int) int64 { return p.Tokens[i*p.Servers+j] }
		spare := func(i int) int64 { return p.Demand[i*p.Servers+j] - p.Tokens[i*p.Servers+j] }
		t.choose(t.source, order, j, m, tokens)
		t.choose(t.sink, order, j, m, spare)
	}
	return t
}

// choose marks the m buckets with the largest value on server j, the lower
// bucket on a tie.
func (t *topSets) choose(set []bool, order []int, j, m int, value func(i int) int64) {
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(value(y), value(x)) })
	for _, i := range order[:m] {
		set[i*t.servers+j] = true
	}
}

// mask returns what the bucket and server at an index may move: nothing from
// where it is no source, nothing to where it is no sink.
func (t *topSets) mask(at int, tokens, spare int64) (int64, int64) {
	if !t.source[at] {
		tokens = 0
	}
	if !t.sink[at] {
		spare = 0
	}
	return tokens, spare
}
