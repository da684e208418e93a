package scheduler

import (
	"slices"

	"lunar/internal/arith"
	"lunar/scheduler/pshift"
)

// Redistribute starts the next interval, and with the last one's end the next
// period. It fills a grant per thread.
func (c *Coordinator) Redistribute(now int64, grants []GateGrant) {
	c.noteThrottled()
	period := c.periodEnds(now)
	if period {
		c.endPeriod(now)
		c.began, c.interval, c.started = c.begins(now), 0, true
	} else {
		c.interval = min(c.interval+1, c.config.Intervals-1)
		c.Check(now)
	}
	c.follow(now)
	c.missing()
	c.size()
	c.demand()
	c.control.Redistribute()
	for i, m := range c.members {
		c.divide(i, m)
		c.count(i, m)
		m.beginInterval()
	}
	if period {
		c.beginPeriod(now)
	}
	c.deal(now)
	for _, s := range c.servers {
		s.beginInterval()
	}
	for thread := range grants {
		c.grant(thread, period, &grants[thread])
	}
}

// endPeriod ends the period before.
func (c *Coordinator) endPeriod(now int64) {
	if c.started {
		c.report()
		for _, b := range c.devices {
			if c.tells(b, now) {
				b.monitor.EndPeriod(b.loaded && !b.throttled)
			}
		}
	}
	for _, m := range c.members {
		m.endPeriod(c)
	}
	c.removeServers()
	c.removeDevices()
	for _, s := range c.servers {
		s.done = 0
	}
}

// beginPeriod starts one on each device, with what was just reserved of it.
func (c *Coordinator) beginPeriod(now int64) {
	for _, b := range c.devices {
		b.reserved = 0
		for _, s := range c.servers {
			if s.backing == b {
				b.reserved += s.reserved()
			}
		}
		if b.begin(now); b.foreign {
			c.spend(b)
		}
	}
}

// reserved is what was granted on a server, as residual counts it.
func (s *serverState) reserved() (reserved int64) {
	for _, p := range s.clients {
		if p.root {
			reserved += p.reserved
		}
	}
	return reserved
}

// noteThrottled notes of which devices someone with a limit waited throughout the
// interval, though the device had room: then what was served says nothing of
// what it can do.
func (c *Coordinator) noteThrottled() {
	for _, s := range c.servers {
		if s.throttledIntervals++; !c.throttled(s) {
			s.throttledIntervals = 0
		}
	}
	for _, s := range c.servers {
		waits := func(p *clientState) bool { return p.backlogged && p.member.limit != pshift.Unlimited }
		if !s.backing.throttled && !c.saturated(s) {
			s.backing.throttled = slices.ContainsFunc(s.clients, waits)
		}
	}
}

// endPeriod notes what the period gave and starts counting anew.
func (m *member) endPeriod(c *Coordinator) {
	if c.started {
		m.attainment.add(m.done, m.reservation)
	}
	m.done, m.quota.told = clientTotals{}, [2]int64{}
	m.reservation = arith.MulDiv(c.promised(m, m.rate), c.config.Period, 1e9)
	for _, p := range m.at {
		p.period, p.served = p.served, 0
	}
}

// beginInterval notes that grants have named the member.
func (m *member) beginInterval() {
	if !m.fresh {
		return
	}
	m.fresh = false
	for _, p := range m.at {
		p.fresh = false
	}
}

// size gives the controller a row per member and a column per server.
func (c *Coordinator) size() {
	if len(c.control.Reservation) != len(c.members) || len(c.control.Capacity) != len(c.servers) {
		c.control = pshift.NewController(len(c.members), len(c.servers))
	}
	c.control.Options = c.config.Shift
}

// left is how many intervals the period still has.
func (c *Coordinator) left() int64 { return int64(c.config.Intervals - c.interval) }

// demand fills in what the members want and the servers can serve.
func (c *Coordinator) demand() {
	for _, b := range c.devices {
		c.capacities(b)
	}
	for j, s := range c.servers {
		c.control.Headroom[j] = s.headroom(c.control.Capacity[j])
	}
	clear(c.control.Demand)
	for i, m := range c.members {
		c.control.Reservation[i], c.control.Done[i] = c.owed(m)
		c.control.Limit[i] = pshift.Unlimited
		if m.limit != pshift.Unlimited { // paced: what was left unused is not made up for
			limit := arith.MulDiv(m.limit, c.part(m), whole)
			c.control.Limit[i] = c.control.Done[i] + arith.MulDiv(limit, c.config.Period*c.left(), int64(c.config.Intervals)*1e9)
		}
		demand := c.control.Demand[i*len(c.servers):][:len(c.servers)]
		for _, p := range m.at {
			demand[p.server.place] = c.demandOf(p)
		}
	}
}

// demandOf estimates what a client wants until the period's end. One that always
// has something waiting wants all that its server can serve.
func (c *Coordinator) demandOf(p *clientState) int64 {
	switch {
	case c.away[p.server.thread]:
		return 0
	case p.ebbing && p.member.moved():
		return p.queued
	case p.backlogged:
		return max(c.control.Capacity[p.server.place]+c.control.Headroom[p.server.place], p.queued)
	}
	return pshift.EstimateDemand(p.queued, p.offered, c.left())
}

// moved reports whether the member asks for something where that does not go away.
func (m *member) moved() bool {
	return slices.ContainsFunc(m.at, func(p *clientState) bool { return !p.ebbing && p.queued > 0 })
}

// capacities estimates what each server of a device can serve until the
// period's end. One that was not kept busy shows nothing of what it can do: such
// servers share what the device has beside the others.
func (c *Coordinator) capacities(b *backing) {
	free, idle := arith.MulDiv(b.capacity(), c.left(), int64(c.config.Intervals)), int64(0)
	for j, s := range c.servers {
		if s.backing != b {
			continue
		}
		c.control.Capacity[j] = pshift.EstimateCapacity(s.served, c.left())
		if c.saturated(s) {
			free -= c.control.Capacity[j]
		} else {
			idle++
		}
	}
	for j, s := range c.servers {
		if s.backing == b && !c.saturated(s) {
			c.control.Capacity[j] = max(c.control.Capacity[j], free/idle)
		}
	}
}

// grant fills a thread's grant.
func (c *Coordinator) grant(thread int, period bool, g *GateGrant) {
	g.clear(thread, c.end(), period)
	for _, m := range c.members {
		if m.shares[thread] > 0 {
			g.Shares = append(g.Shares, EntityShare{m.key, m.shares[thread]})
		}
	}
	for _, s := range c.servers {
		if s.thread == thread && s.present {
			g.Servers = append(g.Servers, s.grant(func(*clientState) bool { return true }))
		}
	}
}

// grant is what those clients of entities that are chosen have on a server.
func (s *serverState) grant(chosen func(*clientState) bool) ServerGrant {
	b := s.backing
	g := ServerGrant{Device: b.device, Capacity: b.capacity(), Window: b.window}
	for _, p := range s.clients {
		if chosen(p) {
			g.Entities = append(g.Entities, EntityGrant{p.member.key, p.number, p.reserved})
		}
	}
	return g
}
