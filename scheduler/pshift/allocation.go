package pshift

import (
	"math"

	"lunar/internal/arith"
)

// Unlimited stands for no limit, and for tokens that never end.
const Unlimited = math.MaxInt64

// Instance is one problem of pShift: tokens of buckets (initiators) over
// servers (event threads). The matrices hold bucket i on server j at
// i*Servers+j.
type Instance struct {
	Buckets, Servers int
	Demand           []int64 // d: I/Os wanted
	Tokens           []int64 // a: tokens given; a <= d everywhere (prudent)
	Capacity         []int64 // C: I/Os that each server can still serve

	totals []int64   // Σ_i a per server
	rest   []ranked  // servers by remainder, in the rounding of one bucket
	moves  *movement // of the last Shift, whose memory the next one uses
}

// NewInstance returns an instance of zeros.
func NewInstance(buckets, servers int) *Instance {
	return &Instance{
		Buckets: buckets, Servers: servers,
		Demand:   make([]int64, buckets*servers),
		Tokens:   make([]int64, buckets*servers),
		Capacity: make([]int64, servers),
		totals:   make([]int64, servers),
		rest:     make([]ranked, 0, servers),
	}
}

// Allocate is the initial allocation: bucket i gets A = min(D, budget[i])
// tokens, divided in proportion to its demand, rounded by largest remainder,
// the lower server on a tie, and never above the demand.
func (p *Instance) Allocate(budget []int64) {
	for i := range p.Buckets {
		d, a := p.row(p.Demand, i), p.row(p.Tokens, i)
		total := arith.Sum(d)
		if total <= budget[i] {
			copy(a, d)
			continue
		}
		p.divide(a, d, max(0, budget[i]), total)
	}
	p.count()
}

// divide sets a to tokens < total in proportion to d.
func (p *Instance) divide(a, d []int64, tokens, total int64) {
	rest, left := p.rest[:0], tokens
	for j := range d {
		var r uint64
		a[j], r = arith.MulDivRem(tokens, d[j], total)
		left -= a[j]
		if r > 0 {
			rest = append(rest, ranked{j, r})
		}
	}
	selectTop(rest, int(left))
	for _, r := range rest[:left] {
		a[r.index]++
	}
}

// count recomputes the servers' totals.
func (p *Instance) count() {
	clear(p.totals)
	for i := range p.Buckets {
		for j, a := range p.row(p.Tokens, i) {
			p.totals[j] += a
		}
	}
}

func (p *Instance) row(m []int64, i int) []int64 {
	return m[i*p.Servers : (i+1)*p.Servers : (i+1)*p.Servers]
}

// Total is Σ_i a: the tokens held on a server.
func (p *Instance) Total(server int) int64 { return p.totals[server] }

// Effective is Φ: the I/Os that the tokens will let the servers serve,
// Σ_j min(C, Σ_i min(a, d)).
func (p *Instance) Effective() int64 {
	served := make([]int64, p.Servers)
	for i := range p.Buckets {
		demand := p.row(p.Demand, i)
		for j, a := range p.row(p.Tokens, i) {
			served[j] += min(a, demand[j])
		}
	}
	effective := int64(0)
	for j, n := range served {
		effective += min(p.Capacity[j], n)
	}
	return effective
}

// WeakExcess is the sum over the servers of the tokens above their capacity.
func (p *Instance) WeakExcess() int64 {
	excess := int64(0)
	for j, total := range p.totals {
		excess += max(0, total-p.Capacity[j])
	}
	return excess
}
