package scheduler

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

// Controller runs pShift every redistribution interval: first for what is left
// of the reservations, then for what is left of the limits with the demand and
// capacity that remain. The caller fills Reservation, Limit, Done, Demand and
// Capacity, calls Redistribute and reads R and L.
type Controller struct {
	Reservation []int64 // per bucket and period
	Limit       []int64 // per bucket and period; Unlimited is none
	Done        []int64 // per bucket: all I/Os served this period, with whatever token
	Demand      []int64 // bucket i on server j at i*servers+j, until the period's end
	Capacity    []int64 // per server, until the period's end
	R           []int64 // R-tokens, as Demand
	L           []int64 // L-tokens, as Demand; Unlimited where the bucket has no limit
	Options     ShiftOptions

	reserved, normal *Instance
	budget           []int64
}

// NewController returns a controller without reservations and limits.
func NewController(buckets, servers int) *Controller {
	c := &Controller{
		Reservation: make([]int64, buckets), Limit: make([]int64, buckets), Done: make([]int64, buckets),
		reserved: NewInstance(buckets, servers), normal: NewInstance(buckets, servers), budget: make([]int64, buckets),
	}
	c.Demand, c.Capacity = c.reserved.Demand, c.reserved.Capacity
	c.R, c.L = c.reserved.Tokens, make([]int64, buckets*servers)
	for i := range c.Limit {
		c.Limit[i] = Unlimited
	}
	return c
}

// Redistribute computes R and L.
func (c *Controller) Redistribute() {
	for i := range c.budget {
		c.budget[i] = max(0, c.Reservation[i]-c.Done[i])
	}
	c.reserved.Allocate(c.budget)
	c.reserved.Shift(c.Options)
	c.redistributeLimits()
}

// redistributeLimits allocates what limits leave over the residual demand.
func (c *Controller) redistributeLimits() {
	n := c.normal
	for i := range n.Buckets {
		given := sum(c.reserved.row(c.reserved.Tokens, i))
		c.budget[i] = LimitBudget(c.Limit[i], c.Done[i], given)
	}
	for at, d := range c.Demand {
		n.Demand[at] = d - c.R[at]
	}
	for j, capacity := range c.Capacity {
		n.Capacity[j] = max(0, capacity-c.reserved.Total(j))
	}
	n.Allocate(c.budget)
	n.Shift(c.Options)
	c.copyLimits()
}

// copyLimits gives out the L-tokens: buckets without a limit need none.
func (c *Controller) copyLimits() {
	for i := range c.Limit {
		l := c.normal.row(c.L, i)
		copy(l, c.normal.row(c.normal.Tokens, i))
		for j := range l {
			if c.Limit[i] == Unlimited {
				l[j] = Unlimited
			}
		}
	}
}
