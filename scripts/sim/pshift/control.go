package pshift

import (
	"lunar/scheduler/pshift"
	"lunar/scheduler/pshift/bqueue"
	"lunar/scripts/sim/experiment"
)

// snapshot gives the controller the servers' reports: what the buckets did,
// demand they will have and capacity that is left.
func (r *run) snapshot() {
	left := r.setup.Intervals - r.interval
	for j, s := range r.servers {
		r.controller.Capacity[j] = s.capacity(left)
	}
	clear(r.controller.Demand)
	for i, b := range r.buckets {
		r.controller.Done[i] = b.issued
		for _, p := range b.held {
			r.controller.Demand[i*r.setup.Servers+p.server.id] = p.demand(left)
		}
	}
	r.resetInterval()
}

// resetInterval begins the counts of an interval.
func (r *run) resetInterval() {
	for _, s := range r.servers {
		s.served, s.busy = 0, 0
	}
	for _, b := range r.buckets {
		for _, p := range b.held {
			p.arrivals, p.reserved, p.normal = 0, 0, 0
		}
	}
}

// Decisions of the server's code.
const (
	// division gives buckets tokens by what they may have and want; the stub gives none
	// and takes requests in turn.
	division experiment.Decision = "pshift.Controller: tokens by reservation, limit and demand"
	// shifting moves tokens off servers that have too many; the stub leaves them.
	shifting experiment.Decision = "pshift.Instance.Shift: progressive shifting"
	// gating keeps commands until they have a token; the stub lets them pass in the order in
	// which they come.
	gating experiment.Decision = "scheduler.Gate: who goes next, and who waits"
	// overNodes divides over nodes what is promised; the stub lets each node promise all of it.
	overNodes experiment.Decision = "scheduler/nodes: one promise over all nodes"
)

// compute runs the algorithm and checks its result.
func (r *run) compute() {
	if r.setup.Mode == MaxFlow {
		r.maxFlow()
	} else {
		r.controller.Redistribute()
	}
	r.checkTokens()
}

// maxFlow is bQueue for reservations; there are no limits in its experiments.
func (r *run) maxFlow() {
	c := r.controller
	budget := make([]int64, len(r.buckets))
	for i := range budget {
		budget[i] = max(0, c.Reservation[i]-c.Done[i])
	}
	tokens, _ := bqueue.Solve(bqueue.Problem{Budget: budget, Demand: c.Demand, Capacity: c.Capacity})
	copy(c.R, tokens)
	for at := range c.L {
		c.L[at] = pshift.Unlimited
	}
}

// checkTokens: each bucket holds min(R left, demand), nowhere more than its
// demand.
func (r *run) checkTokens() {
	c, n := r.controller, r.setup.Servers
	for i := range r.buckets {
		tokens, demand := int64(0), int64(0)
		for at := i * n; at < (i+1)*n; at++ {
			tokens, demand = tokens+c.R[at], demand+c.Demand[at]
			if c.R[at] > c.Demand[at] {
				r.violate("bucket %d got %d tokens on server %d for a demand of %d", i+1, c.R[at], at-i*n+1, c.Demand[at])
			}
		}
		if want := min(max(0, c.Reservation[i]-c.Done[i]), demand); tokens != want {
			r.violate("bucket %d got %d tokens, expected min(R left, D) = %d", i+1, tokens, want)
		}
	}
}

// apply gives the servers their tokens, less what they used since the reports.
func (r *run) apply(now int64) {
	for i, b := range r.buckets {
		for _, p := range b.held {
			at := i*r.setup.Servers + p.server.id
			p.setTokens(r.controller.R[at], r.controller.L[at], now)
		}
	}
	for _, s := range r.servers {
		s.serve(now)
	}
}

// balance checks that no request was lost or ran twice.
func (r *run) balance() {
	for _, b := range r.buckets {
		for _, p := range b.held {
			out := p.waiting + int64(p.queue.Pending())
			if p.server.current != nil && p.server.current.Owner.(*pair) == p {
				out++
			}
			if p.submitted != p.completed+out {
				r.violate("bucket %d submitted %d requests to server %d: %d completed, %d queued or in service",
					b.id+1, p.submitted, p.server.id+1, p.completed, out)
			}
		}
	}
}
