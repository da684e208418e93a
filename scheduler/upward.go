package scheduler

import "slices"

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
		up.Residual += s.residual
		up.Backlogged = up.Backlogged || c.saturated(s)
		up.Throttled = max(up.Throttled, s.heard.throttled)
	}
	for _, m := range c.members {
		m.quota.told = [...]int64{m.done.device() + m.done.yielded, m.quota.told[0]}
		m.report(r)
	}
}

// report adds a member's use of all devices.
func (m *member) report(r *GateReport) {
	m.uses = slices.DeleteFunc(m.uses, func(u use) bool {
		return !slices.ContainsFunc(m.at, func(p *clientState) bool { return p.server.backing == u.backing })
	})
	for _, p := range m.at {
		b := p.server.backing
		up := &r.Servers[b.up]
		if n := len(up.Entities); n == 0 || up.Entities[n-1].Number != m.number {
			t := &m.use(b).totals
			up.Entities = append(up.Entities, EntityReport{
				Entity: m.key, Number: m.number, Level: m.level, Reservation: m.rate, Limit: m.limit, Share: m.quota.part, Ebbing: true,
				Offered: t.offered, Served: t.served, Hits: t.hits, Yielded: t.yielded,
			})
		}
		e := &up.Entities[len(up.Entities)-1]
		e.Root, e.Backlogged = e.Root || p.root, e.Backlogged || p.backlogged || p.waits >= settled
		e.Ebbing = e.Ebbing && p.ebbs >= settled
		e.Queued += p.queued
	}
}
