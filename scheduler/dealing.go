package scheduler

import (
	"cmp"
	"slices"

	"lunar/internal/arith"
	"lunar/scheduler/pshift"
)

// Elsewhere says what of an entity's limits, in millionths, nodes have that do not report. Nil:
// nothing.
func (c *Coordinator) Elsewhere(part func(entity string) int64) { c.elsewhere = part }

// overNodes reports whether the coordinator's threads are nodes.
func (c *Coordinator) overNodes() bool { return c.config.Foreign != nil && c.above == nil }

// missing notes which nodes have not reported in the interval. They keep what they have: what was
// known of them says nothing of what they want now.
func (c *Coordinator) missing() {
	c.away = append(c.away[:0], make([]bool, c.config.Threads)...)
	if !c.overNodes() {
		return
	}
	for _, s := range c.servers {
		c.away[s.thread] = c.away[s.thread] || s.present && s.over
	}
}

// Away reports whether a node had not reported at the last Redistribute.
func (c *Coordinator) Away(node int) bool { return c.away[node] }

// Shares is what a node has of limits by the last Redistribute, millionths by entity.
func (c *Coordinator) Shares(node int) map[string]int64 {
	all := map[string]int64{}
	for _, m := range c.members {
		if share := m.shares[node]; share > 0 {
			all[m.key] = share
		}
	}
	return all
}

// begins is when the period begins that is begun at now: where the one before has ended, if that
// was seen a little late, so that each period has as much time as it has reservations.
func (c *Coordinator) begins(now int64) int64 {
	if late := now - c.end(); c.started && (c.overNodes() || c.above != nil) && late >= 0 && late < c.config.Period/int64(c.config.Intervals) {
		return c.end()
	}
	return now
}

// owed is what is reserved for a member in this period, and what of that it has had. Over nodes,
// and on a node that has no new grant, nobody owes what it was served ahead of its rate: it would
// have less than that for the rest of the period. Who is new over nodes has the rest of a period's.
func (c *Coordinator) owed(m *member) (reservation, done int64) {
	done = m.done.device() + m.done.yielded
	if !c.overNodes() && (c.above == nil || !c.above.missed) {
		return m.reservation, done
	}
	left := arith.MulDiv(c.promised(m, m.rate), c.config.Period*c.left(), int64(c.config.Intervals)*1e9)
	if m.reservation == 0 && c.overNodes() && m.isNew() {
		m.reservation = left
	}
	return m.reservation, min(done, max(0, m.reservation-left))
}

// isNew reports whether no grant has named the member.
func (m *member) isNew() bool {
	return !slices.ContainsFunc(m.at, func(p *clientState) bool { return !p.fresh })
}

// stays is for how many intervals a device's order over nodes stays after it was needed last.
const stays = 10

// count notes, of nodes, what a member wants of each and what it has reserved there.
func (c *Coordinator) count(i int, m *member) {
	if !c.overNodes() {
		return
	}
	r, wanted := c.control.R[i*len(c.servers):], c.control.Demand[i*len(c.servers):]
	for _, p := range m.at {
		s := p.server
		if m.level == InitiatorLevel && wanted[s.place] > r[s.place] {
			s.waiting++
		}
		if p.root {
			s.promised += r[s.place]
		}
		s.needed = s.needed || r[s.place] > 0 && p.backlogged
	}
}

// deal divides, over the nodes that use a device, the tokens that nobody has reserved, and
// how much may be under way.
func (c *Coordinator) deal(now int64) {
	if !c.overNodes() {
		return
	}
	for _, b := range c.devices {
		b.contended = max(0, b.contended-1)
	}
	for _, s := range c.servers {
		if s.needed {
			s.backing.contended = stays
		}
	}
	for _, b := range c.devices {
		if !b.foreign {
			c.dealDevice(b, now)
		}
	}
	for _, s := range c.servers {
		s.waiting, s.promised, s.needed = 0, 0, false
	}
}

// dealDevice divides what nobody has reserved by the initiators that wait for more. What is
// under way decides how a device divides itself between nodes whose order it does not know:
// while reservations need that, each has its part of the node that may have most.
func (c *Coordinator) dealDevice(b *backing, now int64) {
	users, all := int64(0), int64(0)
	for _, s := range c.servers {
		if s.backing == b && s.present {
			users, all = users+1, all+s.waiting
		}
	}
	free, most := b.monitor.Convertible(now), int64(0)
	for _, s := range c.servers {
		if s.backing != b || !s.present {
			continue
		}
		s.tokens = free / users
		if all > 0 {
			s.tokens = arith.MulDiv(free, s.waiting, all)
		}
		s.weight = (s.promised + s.tokens - s.tokens/sure) * whole / int64(max(1, s.threads))
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
	for _, s := range c.servers {
		if s.thread != node || !s.present {
			continue
		}
		if !s.backing.foreign {
			g.Pools = append(g.Pools, PoolPart{Device: s.backing.device.Name, Capacity: s.backing.capacity(), Tokens: s.tokens, Window: s.window})
		}
		for _, p := range s.clients {
			g.Parts = append(g.Parts, Part{p.number, p.reserved, int64(p.share)})
		}
	}
	if byNumber := func(a, b Part) int { return cmp.Compare(a.Number, b.Number) }; !slices.IsSortedFunc(g.Parts, byNumber) { // on several devices
		slices.SortFunc(g.Parts, byNumber)
	}
	g.Parts = together(g.Parts)
}

// together makes one of the parts of each entity, which are in a row: it has one on each device.
func together(parts []Part) []Part {
	kept := parts[:0]
	for _, p := range parts {
		if n := len(kept); n > 0 && kept[n-1].Number == p.Number {
			kept[n-1].Reserved += p.Reserved
			continue
		}
		kept = append(kept, p)
	}
	return kept
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
		e := EntityStatus{Key: m.key, Level: m.level, Reservation: m.rate, Periods: c.Attainment(m.key), Fulfilment: m.attainment.fulfilment}
		if m.limit != pshift.Unlimited {
			e.Limit = m.limit
		}
		for _, p := range m.at {
			s := p.server
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
