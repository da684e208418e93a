package scheduler

// use is what an entity has had of a device on all event threads.
type use struct {
	backing *backing
	totals  clientTotals
}

// use finds or makes a member's use of a device.
func (m *member) use(b *backing) *use {
	for i := range m.uses {
		if m.uses[i].backing == b {
			return &m.uses[i]
		}
	}
	m.uses = append(m.uses, use{backing: b})
	return &m.uses[len(m.uses)-1]
}

// Report fills what the coordinator over all nodes is to know at the end of an interval, as
// a gate's Report does for this one: a server is a device as this node uses it. Entities have
// the same Number on all devices, in order.
func (c *Coordinator) Report(r *GateReport) {
	r.Servers = r.Servers[:0]
	for _, b := range c.devices {
		b.up = -1
	}
	for _, s := range c.servers {
		if !s.present {
			continue
		}
		b := s.backing
		if b.up < 0 {
			b.up = len(r.Servers)
			up := r.next()
			*up = ServerReport{Device: b.device, Number: b.number, Done: b.total, Capacity: b.capacity(), Entities: up.Entities}
		}
		up := &r.Servers[b.up]
		up.Threads++
		up.Backlogged = up.Backlogged || c.saturated(s)
		up.Throttled = max(up.Throttled, s.heard.throttled)
	}
	for _, m := range c.members {
		s := m.sums()
		m.quota.told = s.device() + s.yielded
		m.report(c, r)
	}
}

// report adds a member's use of all devices.
func (m *member) report(c *Coordinator, r *GateReport) {
	for _, j := range m.at {
		p, b := &m.clients[j], c.servers[j].backing
		u := m.use(b)
		u.totals.add(p.untold)
		if p.untold = (clientTotals{}); !p.present {
			continue
		}
		up := &r.Servers[b.up]
		if n := len(up.Entities); n == 0 || up.Entities[n-1].Number != m.number {
			up.Entities = append(up.Entities, EntityReport{
				Entity: m.key, Number: m.number, Level: m.level, Reservation: p.last.Reservation, Limit: m.limit,
			})
		}
		e := &up.Entities[len(up.Entities)-1]
		e.Offered, e.Served, e.Hits, e.Yielded = u.totals.offered, u.totals.served, u.totals.hits, u.totals.yielded
		e.Root, e.Backlogged = e.Root || p.last.Root, e.Backlogged || p.backlogged
		e.Queued += p.last.Queued
		if p.last.Root {
			up.Residual += p.last.Residual
		}
	}
}
