package scheduler

import (
	"slices"

	"lunar/internal/arith"
	"lunar/scheduler/pshift"
)

// Reporting says how many of the nodes report: these are dealt their part of the limits, and
// the others are taken to have theirs.
func (c *Coordinator) Reporting(n, of int64) { c.dealt = whole * n / of }

// overNodes reports whether the coordinator's threads are nodes.
func (c *Coordinator) overNodes() bool { return c.config.Foreign != nil && c.above == nil }

// stays is for how many intervals a device's order over nodes stays after it was needed last.
const stays = 10

// deal divides, over the nodes that use a device, the tokens that nobody has reserved, and
// how much may be under way.
func (c *Coordinator) deal(now int64) {
	if !c.overNodes() {
		return
	}
	waiting, reserved := make([]int64, len(c.servers)), make([]int64, len(c.servers))
	needed := map[*backing]bool{}
	for i, m := range c.members {
		for _, j := range m.at {
			p := &m.clients[j]
			if !p.present {
				continue
			}
			r, wanted := c.control.R[i*len(c.servers)+j], c.control.Demand[i*len(c.servers)+j]
			if m.level == InitiatorLevel && wanted > r {
				waiting[j]++
			}
			if p.last.Root {
				reserved[j] += r
			}
			if r > 0 && p.backlogged {
				needed[c.servers[j].backing] = true
			}
		}
	}
	for _, b := range c.devices {
		if b.foreign {
			continue
		}
		if b.contended = max(0, b.contended-1); needed[b] {
			b.contended = stays
		}
		c.dealDevice(b, now, waiting, reserved)
	}
}

// dealDevice divides what nobody has reserved by the initiators that wait for more. What is
// under way decides how a device divides itself between nodes whose order it does not know:
// while reservations need that, each has its part of the node that may have most.
func (c *Coordinator) dealDevice(b *backing, now int64, waiting, reserved []int64) {
	users, all := int64(0), int64(0)
	for j, s := range c.servers {
		if s.backing == b && s.present {
			users, all = users+1, all+waiting[j]
		}
	}
	free, most := b.monitor.Convertible(now), int64(0)
	for j, s := range c.servers {
		if s.backing != b || !s.present {
			continue
		}
		s.tokens = free / users
		if all > 0 {
			s.tokens = arith.MulDiv(free, waiting[j], all)
		}
		s.weight = (reserved[j] + s.tokens - s.tokens/sure) * whole / int64(max(1, s.threads))
		most = max(most, s.weight)
	}
	for _, s := range c.servers {
		if s.backing == b {
			if s.window = 0; b.contended > 0 && most > 0 {
				s.window = max(whole/64, arith.MulDiv(whole, s.weight, most))
			}
		}
	}
}

// sure is the part of what nobody has reserved, one in so many, that is not dealt with a
// device's order, so that reservations are on the safe side of what is under way.
const sure = 16

// Dealt fills what a node has been given by the last Redistribute: Parts and Pools.
func (c *Coordinator) Dealt(node int, g *NodeGrant) {
	g.Parts, g.Pools = g.Parts[:0], g.Pools[:0]
	var at []int
	for j, s := range c.servers {
		if s.thread != node || !s.present {
			continue
		}
		if at = append(at, j); !s.backing.foreign {
			g.Pools = append(g.Pools, PoolPart{Device: s.backing.device.Name, Capacity: s.backing.capacity(), Tokens: s.tokens, Window: s.window})
		}
	}
	for n, j := range at {
		for _, m := range c.servers[j].members {
			if p := c.partOf(m, node, at, n); p.Number >= 0 {
				g.Parts = append(g.Parts, p)
			}
		}
	}
}

// partOf is what a member has on those of the servers that are a node's, for the n-th of them;
// without a number if one before that has the member, too.
func (c *Coordinator) partOf(m *member, node int, at []int, n int) Part {
	p := Part{Number: m.clients[at[n]].last.Number, Share: m.shares[node]}
	for i, j := range at {
		one := &m.clients[j]
		switch {
		case !one.present:
			continue
		case i < n:
			return Part{Number: -1}
		}
		p.Reserved += one.reserved
	}
	if m.limit == pshift.Unlimited {
		p.Share = whole
	}
	return p
}

// Left is how long the period still lasts at now.
func (c *Coordinator) Left(now int64) int64 { return max(0, c.end()-now) }

// AtPeriod reports whether the last Redistribute began a period.
func (c *Coordinator) AtPeriod() bool { return c.interval == 0 }

// EntityStatus is an entity over all threads, which here are nodes.
type EntityStatus struct {
	Key         string
	Level       Level
	Reservation int64 // tokens/s
	Limit       int64 // tokens/s; 0: none
	On          []EntityPart
	Periods     []PeriodResult // the last ones, the newest last
	Fulfilment  Fulfilment
}

// EntityPart is what an entity has on a node.
type EntityPart struct {
	Thread   int
	Reserved int64 // R-tokens, until the period's end
	Share    int64 // of the limits, millionths
	Served   int64 // tokens, in the last period
	Devices  []string
}

// Entities are those with a reservation or a limit, in order of appearance.
func (c *Coordinator) Entities() (all []EntityStatus) {
	for _, m := range c.members {
		e := EntityStatus{Key: m.key, Level: m.level, Periods: c.Attainment(m.key), Fulfilment: m.attainment.fulfilment}
		if m.limit != pshift.Unlimited {
			e.Limit = m.limit
		}
		for _, j := range m.at {
			p, s := &m.clients[j], c.servers[j]
			if !p.present {
				continue
			}
			e.Reservation = p.last.Reservation
			at := slices.IndexFunc(e.On, func(o EntityPart) bool { return o.Thread == s.thread })
			if at < 0 {
				at = len(e.On)
				e.On = append(e.On, EntityPart{Thread: s.thread, Share: m.shares[s.thread]})
			}
			on := &e.On[at]
			on.Reserved, on.Served, on.Devices = on.Reserved+p.reserved, on.Served+p.period, append(on.Devices, s.backing.device.Name)
		}
		if e.Reservation > 0 || e.Limit > 0 {
			all = append(all, e)
		}
	}
	return all
}

// Devices are those whose monitors the coordinator has.
func (c *Coordinator) Devices() (all []DeviceStatus) {
	for _, b := range c.devices {
		if !b.foreign {
			all = append(all, c.Status(b.device))
		}
	}
	return all
}
