package pshift

import "lunar/internal/arith"

// EstimateDemand is pShift's estimate of what a bucket wants from a server
// until the period's end: what is queued and, for each interval left, as much
// as arrived in the last one.
func EstimateDemand(queued, arrivals int64, left int64) int64 { return queued + arrivals*left }

// EstimateCapacity is pShift's estimate of what a server can serve until the
// period's end, from what it served in the last interval.
func EstimateCapacity(served int64, left int64) int64 { return served * left }

// LimitBudget is what a bucket may still issue with L-tokens: its limit less
// what is done and less the R-tokens just given.
func LimitBudget(limit, done, reserved int64) int64 {
	if limit == Unlimited {
		return Unlimited
	}
	return max(0, limit-done-reserved)
}

// Controller runs pShift every redistribution interval: for what is left of the
// reservations and of the limits, with the demand and capacity that remain. The
// caller fills Reservation, Limit, Done, Demand and Capacity, calls Redistribute
// and reads R and L.
type Controller struct {
	Reservation []int64 // per bucket and period
	Limit       []int64 // per bucket and period; Unlimited is none
	Done        []int64 // per bucket: all I/Os served this period, with whatever token
	Demand      []int64 // bucket i on server j at i*servers+j, until the period's end
	Capacity    []int64 // per server, until the period's end
	Headroom    []int64 // per server: what it may be able to do beyond Capacity, for limits alone
	R           []int64 // R-tokens, as Demand
	L           []int64 // L-tokens, as Demand; Unlimited where the bucket has no limit
	Options     Options

	reserved *Instance // the reservations
	all      *Instance // the limits, and so tokens of both kinds
	inner    *Instance // the reservations as a part of all
	normal   *Instance // what limits leave beside the reservations
	budget   []int64
}

// NewController returns a controller without reservations and limits.
func NewController(buckets, servers int) *Controller {
	c := &Controller{
		Reservation: make([]int64, buckets), Limit: make([]int64, buckets), Done: make([]int64, buckets),
		reserved: NewInstance(buckets, servers), all: NewInstance(buckets, servers),
		inner: NewInstance(buckets, servers), normal: NewInstance(buckets, servers), budget: make([]int64, buckets),
	}
	c.Demand, c.Capacity, c.Headroom = c.reserved.Demand, c.reserved.Capacity, make([]int64, servers)
	c.R, c.L = c.reserved.Tokens, make([]int64, buckets*servers)
	for i := range c.Limit {
		c.Limit[i] = Unlimited
	}
	return c
}

// Redistribute computes R and L. pShift's way is to divide the reservations
// first and then what the limits leave, but reservation tokens count for the
// limit, too: one that is used where others could use the server is missing where
// nobody else can. So both are divided together, if that costs no reservation.
func (c *Controller) Redistribute() {
	for i := range c.budget {
		c.budget[i] = max(0, c.Reservation[i]-c.Done[i])
	}
	c.reserved.Allocate(c.budget)
	c.reserved.Shift(c.Options)
	if c.limited() && c.together() {
		return
	}
	c.relieve(c.reserved)
	c.redistributeLimits()
}

// limited reports whether any bucket has a limit.
func (c *Controller) limited() bool {
	for _, l := range c.Limit {
		if l != Unlimited {
			return true
		}
	}
	return false
}

// together divides the limits, and of that the reservations. It reports whether
// these are as effective as alone.
func (c *Controller) together() bool {
	copy(c.all.Demand, c.Demand)
	for j, capacity := range c.Capacity {
		c.all.Capacity[j] = capacity + c.Headroom[j]
	}
	copy(c.inner.Capacity, c.Capacity)
	reservations := append([]int64(nil), c.budget...)
	for i := range c.budget {
		c.budget[i] = LimitBudget(c.Limit[i], c.Done[i], 0)
	}
	c.all.Allocate(c.budget)
	c.all.Shift(c.Options)
	for i, limit := range c.Limit {
		from := c.all.Tokens
		if limit == Unlimited {
			from = c.Demand
		}
		copy(c.inner.row(c.inner.Demand, i), c.inner.row(from, i))
	}
	c.inner.Allocate(reservations)
	c.inner.Shift(c.Options)
	if c.inner.Effective() < c.reserved.Effective() || arith.Sum(c.inner.totals) < arith.Sum(c.reserved.totals) {
		return false
	}
	c.relieve(c.inner)
	copy(c.reserved.Tokens, c.inner.Tokens)
	c.reserved.count()
	for at, tokens := range c.all.Tokens {
		c.L[at] = tokens - c.R[at]
	}
	c.freeUnlimited()
	return true
}

// doubted is the part of a server's estimated capacity, one in so many, that is
// better not reserved.
const doubted = 100

// relieve moves reservation tokens off servers that have nothing to spare to
// those that do: an estimate of one interval's rate may be too high, and who is
// on such a server alone would miss what others could have had elsewhere. No
// server gets more than it can do, and Φ stays the most possible.
func (c *Controller) relieve(p *Instance) {
	capacity := append([]int64(nil), p.Capacity...)
	for j := range p.Capacity {
		p.Capacity[j] -= p.Capacity[j] / doubted
	}
	p.Shift(c.Options)
	copy(p.Capacity, capacity)
}

// redistributeLimits allocates what limits leave over the residual demand.
func (c *Controller) redistributeLimits() {
	n := c.normal
	for i := range n.Buckets {
		given := arith.Sum(c.reserved.row(c.reserved.Tokens, i))
		c.budget[i] = LimitBudget(c.Limit[i], c.Done[i], given)
	}
	for at, d := range c.Demand {
		n.Demand[at] = d - c.R[at]
	}
	for j, capacity := range c.Capacity {
		n.Capacity[j] = max(0, capacity+c.Headroom[j]-c.reserved.Total(j))
	}
	n.Allocate(c.budget)
	n.Shift(c.Options)
	copy(c.L, n.Tokens)
	c.freeUnlimited()
}

// freeUnlimited gives buckets without a limit all L-tokens that they may want.
func (c *Controller) freeUnlimited() {
	for i, limit := range c.Limit {
		if limit == Unlimited {
			l := c.normal.row(c.L, i)
			for j := range l {
				l[j] = Unlimited
			}
		}
	}
}
