package scheduler

import (
	"lunar/internal/arith"
	"lunar/scheduler/pshift"
)

// divide gives a member's servers their reservation tokens and its threads
// their shares of its limits, as pShift divided them.
func (c *Coordinator) divide(i int, m *member) {
	n := len(c.servers)
	r, l := c.control.R[i*n:(i+1)*n], c.control.L[i*n:(i+1)*n]
	for _, p := range m.at {
		p.reserved = r[p.server.place]
	}
	c.spread(m, max(0, c.control.Reservation[i]-c.control.Done[i])-arith.Sum(r))
	clear(m.tokens)
	for _, p := range m.at {
		j := p.server.place
		if m.tokens[p.server.thread] += r[j]; l[j] != pshift.Unlimited {
			m.tokens[p.server.thread] += l[j]
		}
	}
	if arith.Sum(m.tokens) == 0 { // who may have none is divided by demand
		for _, p := range m.at {
			m.tokens[p.server.thread] += c.control.Demand[i*n+p.server.place]
		}
	}
	c.share(m)
}

// spread adds reservation tokens that nobody was seen to want to the servers
// that have the entity, so that who wakes up finds its reservation: to each
// device by its capacity, as far as all are known, and to its servers evenly,
// the lower ones getting what does not divide.
func (c *Coordinator) spread(m *member, tokens int64) {
	if tokens <= 0 {
		return
	}
	total, left := c.weigh(m), tokens
	for i, p := range m.at {
		part := arith.MulDiv(tokens, c.weights[i], total)
		p.reserved += part
		left -= part
	}
	for _, p := range m.at[:left] {
		p.reserved++
	}
}

// weigh sets the weights of a member's clients that spread goes by, and returns their sum.
func (c *Coordinator) weigh(m *member) (total int64) {
	devices, known := 0, true
	for _, p := range m.at {
		p.server.backing.users = 0
	}
	for _, p := range m.at {
		b := p.server.backing
		if b.users++; b.users == 1 {
			devices++
		}
		known = known && b.capacity() > 0
	}
	c.weights = c.weights[:0]
	for _, p := range m.at {
		weight := int64(1)
		if b := p.server.backing; known && devices > 1 {
			weight = max(1, b.capacity()/b.users)
		}
		c.weights = append(c.weights, weight)
		total += weight
	}
	return total
}

// share divides a member's limits over the threads as pShift divided the tokens,
// but for a part that is divided evenly, so that traffic that
// moves to another thread is not held up until the next interval. A thread alone has it all.
func (c *Coordinator) share(m *member) {
	spare, part, total := c.spare(m), c.part(m), arith.Sum(m.tokens)
	threads, n := c.threadsOf(m)
	before := int64(0)
	for thread, on := range threads {
		if c.away[thread] {
			continue // it keeps what it has
		}
		m.shares[thread] = 0
		if !on {
			continue
		}
		even := evenly(whole, n, before)
		before++
		m.shares[thread] = even
		if total > 0 && m.limit != pshift.Unlimited {
			m.shares[thread] = (spare*even + (whole-spare)*arith.MulDiv(whole, m.tokens[thread], total)) / whole
		}
		m.shares[thread] = max(1, m.shares[thread]*part/whole)
	}
	for _, p := range m.at {
		if p.share = whole; m.limit != pshift.Unlimited {
			p.share = int32(m.shares[p.server.thread])
		}
	}
}

// spare is the part of a member's limits that is divided evenly, millionths. That is
// configured; less for who waits on all its threads and has nothing to move, so that only no
// thread stands still; and less for whose limit is little more than its reservation, which
// it has to get where it asks for it.
func (c *Coordinator) spare(m *member) int64 {
	spare := whole / c.config.Even
	if c.waitsEverywhere(m) {
		spare = min(spare, whole/32)
	}
	if promised := arith.MulDiv(m.reservation, 1e9, c.config.Period); m.limit > 0 && m.limit != pshift.Unlimited {
		spare = min(spare, max(whole/100, whole-arith.MulDiv(whole, min(promised, m.limit), m.limit)))
	}
	return spare
}

// evenly is what the i-th of n gets, the first ones what does not divide.
func evenly(tokens, n, i int64) int64 {
	if i < tokens%n {
		return tokens/n + 1
	}
	return tokens / n
}

// threadsOf says which threads a member is on, and how many these are, those left out that are
// away. It uses the same memory each time.
func (c *Coordinator) threadsOf(m *member) (on []bool, n int64) {
	c.on = append(c.on[:0], make([]bool, c.config.Threads)...)
	for _, p := range m.at {
		if thread := p.server.thread; !c.on[thread] && !c.away[thread] {
			c.on[thread] = true
			n++
		}
	}
	return c.on, n
}

// waitsEverywhere reports whether the member had something waiting on all its
// threads in the whole interval.
func (c *Coordinator) waitsEverywhere(m *member) bool {
	threads, n := c.threadsOf(m)
	for _, p := range m.at {
		if thread := p.server.thread; p.waited && threads[thread] {
			threads[thread] = false
			n--
		}
	}
	return n == 0
}
