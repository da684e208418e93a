package scheduler

// Redistribute starts the next interval, and with the last one's end the next
// period. It fills a grant per thread.
func (c *Coordinator) Redistribute(now int64, grants []GateGrant) {
	c.held = c.held || c.limitsHold()
	period := !c.started || c.interval == c.config.Intervals-1
	if period {
		c.beginPeriod(now)
	} else {
		c.interval++
		c.Check(now)
	}
	c.size()
	c.demand()
	c.control.Redistribute()
	c.beginInterval()
	for thread := range grants {
		c.grant(thread, period, &grants[thread])
	}
}

// beginPeriod ends the period before and starts one.
func (c *Coordinator) beginPeriod(now int64) {
	if c.started {
		c.report()
		c.monitor.EndPeriod(c.loaded && !c.held)
	}
	for _, m := range c.members {
		m.endPeriod(c.started)
		c.join(m)
	}
	for i := range c.done {
		c.done[i].start = c.done[i].total
	}
	c.monitor.BeginPeriod(now)
	c.began, c.interval, c.started, c.loaded, c.held = now, 0, true, false, false
}

// limitsHold reports whether someone with a limit waited throughout the interval
// on a thread whose device had room: then what was served says nothing of what
// the device can do.
func (c *Coordinator) limitsHold() bool {
	for _, m := range c.members {
		for j := range m.parts {
			p := &m.parts[j]
			if m.limit != Unlimited && p.present && p.backlogged && !c.heard[j].saturated() {
				return true
			}
		}
	}
	return false
}

// join brings the monitor's client in line with the entity.
func (c *Coordinator) join(m *member) {
	root := false
	m.reservation = 0
	for i := range m.parts {
		if p := &m.parts[i]; p.present {
			root = root || p.last.Root
			m.reservation = mulDiv(p.last.Reservation, c.config.Period, 1e9)
		}
	}
	switch {
	case root && m.client < 0:
		m.client = c.monitor.Join(m.reservation)
	case root:
		c.monitor.SetReservation(m.client, m.reservation)
	case m.client >= 0:
		c.monitor.Leave(m.client)
		m.client = -1
	}
}

// endPeriod notes what the period gave and starts counting anew.
func (m *member) endPeriod(ended bool) {
	if ended {
		m.attainment.add(m.sums(), m.reservation)
	}
	for i := range m.parts {
		m.parts[i].start = m.parts[i].last.totals()
	}
}

// size gives the controller a row per member and a column per thread.
func (c *Coordinator) size() {
	if len(c.control.Reservation) != len(c.members) {
		c.control = NewController(len(c.members), c.config.Threads)
	}
	c.control.Options = c.config.Shift
}

// left is how many intervals the period still has.
func (c *Coordinator) left() int64 { return int64(c.config.Intervals - c.interval) }

// demand fills in what the members want and the threads can serve.
func (c *Coordinator) demand() {
	c.capacities()
	for i, m := range c.members {
		s := m.sums()
		c.control.Reservation[i] = m.reservation
		c.control.Done[i] = s.device() + s.yielded
		c.control.Limit[i] = Unlimited
		if m.limit != Unlimited { // paced: what was left unused is not made up for
			c.control.Limit[i] = c.control.Done[i] + mulDiv(m.limit, c.config.Period*c.left(), int64(c.config.Intervals)*1e9)
		}
		for j := range m.parts {
			c.control.Demand[i*c.config.Threads+j] = c.demandOf(&m.parts[j], j)
		}
	}
}

// demandOf estimates what a part wants until the period's end. One that always
// has something waiting wants all that its thread can serve.
func (c *Coordinator) demandOf(p *part, thread int) int64 {
	switch {
	case !p.present:
		return 0
	case p.backlogged:
		return max(c.control.Capacity[thread], p.last.Queued)
	}
	return EstimateDemand(p.last.Queued, p.last.Offered-p.mark.offered, c.left())
}

// capacities estimates what each thread can serve until the period's end. A
// thread that was not kept busy shows nothing of what it can do: such threads
// share what the device has beside the others.
func (c *Coordinator) capacities() {
	free, idle := mulDiv(c.monitor.Capacity(), c.left(), int64(c.config.Intervals)), int64(0)
	for j, h := range c.heard {
		c.control.Capacity[j] = EstimateCapacity(c.served(j), c.left())
		if h.saturated() {
			free -= c.control.Capacity[j]
		} else {
			idle++
		}
	}
	for j, h := range c.heard {
		if !h.saturated() {
			c.control.Capacity[j] = max(c.control.Capacity[j], free/idle)
		}
	}
}

// served is what a thread's commands had of the device in the interval. Every
// command counts in one initiator.
func (c *Coordinator) served(thread int) int64 {
	served := int64(0)
	for _, m := range c.members {
		if p := &m.parts[thread]; p.present && m.level == InitiatorLevel {
			served += p.last.Served - p.last.Hits - p.mark.device()
		}
	}
	return served
}

// grant fills a thread's grant.
func (c *Coordinator) grant(thread int, period bool, g *GateGrant) {
	g.Thread, g.Period, g.End, g.Entities = thread, period, c.began+c.config.Period, g.Entities[:0]
	for i, m := range c.members {
		if m.parts[thread].present {
			row := c.control.R[i*c.config.Threads : (i+1)*c.config.Threads]
			g.Entities = append(g.Entities, EntityGrant{
				Entity:   m.key,
				Reserved: row[thread] + m.spread(c.remaining(i)-sum(row), thread),
				Share:    c.share(i, m, thread),
			})
		}
	}
}

// remaining is what is left of a member's reservation.
func (c *Coordinator) remaining(i int) int64 {
	return max(0, c.control.Reservation[i]-c.control.Done[i])
}

// spread divides tokens that nobody was seen to want evenly over the threads
// that have the entity, so that who wakes up finds its reservation. It returns
// one thread's part, the lower threads getting what does not divide.
func (m *member) spread(tokens int64, thread int) int64 {
	n, before := int64(m.present()), int64(0)
	for j := range thread {
		if m.parts[j].present {
			before++
		}
	}
	part := tokens / n
	if before < tokens%n {
		part++
	}
	return part
}

// share is a thread's part of a member's limits, in millionths: as pShift
// divided the tokens, but for a part that is divided evenly. That is a quarter,
// so that traffic that moves to another thread is not held up until the next
// interval; less for who waits on all its threads and has nothing to move, so
// that only no thread stands still. A thread alone has it all.
func (c *Coordinator) share(i int, m *member, thread int) int64 {
	even, tokens := m.spread(whole, thread), c.tokens(i)
	total, own := sum(tokens), tokens[thread]
	if total == 0 || m.limit == Unlimited {
		return even
	}
	parts := int64(4)
	if m.waitsEverywhere() {
		parts = 32
	}
	return (even + (parts-1)*mulDiv(whole, own, total)) / parts
}

// tokens are a limited member's of both kinds, by thread, as pShift divided
// them last; who may have none is divided by demand.
func (c *Coordinator) tokens(i int) []int64 {
	at, n := i*c.config.Threads, c.config.Threads
	c.divided = append(c.divided[:0], c.control.R[at:at+n]...)
	for j, l := range c.control.L[at : at+n] {
		if l != Unlimited {
			c.divided[j] += l
		}
	}
	if sum(c.divided) == 0 {
		copy(c.divided, c.control.Demand[at:at+n])
	}
	return c.divided
}

// waitsEverywhere reports whether the member had something waiting on all its
// threads in the whole interval.
func (m *member) waitsEverywhere() bool {
	for i := range m.parts {
		if m.parts[i].present && !m.parts[i].waited {
			return false
		}
	}
	return true
}
