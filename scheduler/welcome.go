package scheduler

import "lunar/internal/arith"

// Welcome gives entities that have come to a thread or a device their part at
// once, between two calls of Redistribute: until then they make do with little,
// since the others may have all of it. It fills a grant per thread and reports
// whether there is anything in them.
func (c *Coordinator) Welcome(now int64, grants []GateGrant) (any bool) {
	for thread := range grants {
		grants[thread].clear(thread, c.end(), false)
	}
	if !c.started {
		return false
	}
	for _, m := range c.members {
		if m.fresh {
			any = true
			c.welcome(m, now, grants)
		}
	}
	for _, s := range c.servers {
		fresh := func(p *clientState) bool { return p.fresh }
		if g := s.grant(fresh); len(g.Entities) > 0 {
			grants[s.thread].Servers = append(grants[s.thread].Servers, g)
		}
	}
	for _, m := range c.members {
		m.fresh = false
		for _, p := range m.at {
			p.fresh = false
		}
	}
	return any
}

// welcome divides the limits anew. Who was nowhere before gets what its
// reservation is worth until the period's end; who only comes to one more server
// has its reservation elsewhere until the next redistribution.
func (c *Coordinator) welcome(m *member, now int64, grants []GateGrant) {
	c.share(m)
	for thread, share := range m.shares {
		if share > 0 {
			grants[thread].Shares = append(grants[thread].Shares, EntityShare{m.key, share})
		}
	}
	for _, p := range m.at {
		if !p.fresh {
			return
		}
	}
	m.reservation = arith.MulDiv(c.promised(m, m.rate), max(0, c.end()-now), 1e9)
	c.spread(m, m.reservation)
}
