package scheduler

import "lunar/internal/arith"

// NodeGrant is what the coordinator over all nodes gives that of a node, as GateGrant is
// what this one gives an event thread. Times are durations, because nodes have clocks of
// their own.
type NodeGrant struct {
	Left   int64  // ns until the end of the period
	Lasts  int64  // ns for which the grant holds
	Period bool   // a new period has begun
	Nodes  int64  // N: that share the limits
	Behind int    // reports that the node has made since the one that this follows; 0 or 1
	Parts  []Part // in order of Number; who is not named has come since the report
	Pools  []PoolPart
}

// Part is what a node has of an entity.
type Part struct {
	Number   int64 // of the node's report
	Reserved int64 // R-tokens, to last until the period's end
	Share    int64 // of the limits, millionths
}

// PoolPart is what a node has of a device that other nodes use, too.
type PoolPart struct {
	Device   string
	Capacity int64 // of the whole device, tokens per period; 0: not known
	Tokens   int64 // that nobody has reserved
	Window   int64 // the part of the configured windows that may be used, millionths; 0: all
}

// above is what a node's coordinator knows of the one over all nodes.
type above struct {
	nodes  int64
	until  int64 // the newest grant in force ends
	lapsed bool  // no grant is in force
	missed bool  // the last interval began without one
	modest int64 // until then the node is one that has just come
	looked int64 // when that was seen last
	next   *NodeGrant
	came   int64 // when next did
}

// modesty is for how long, in ns, a node that has come has little of limits and reservations
// unless it is granted more: the others do not know yet that it is there. So has one that stood
// still for longer than a period: what it had is with others now.
const modesty = 4e9

// modestly begins that time where it is due, and reports whether it is now.
func (c *Coordinator) modestly(now int64) bool {
	a := c.above
	if a.looked == 0 || now-a.looked > c.config.Period {
		a.modest = now + modesty
	}
	a.looked = max(now, 1)
	return now < a.modest
}

// quota is a node's part of an entity.
type quota struct {
	known bool     // a grant has named it
	part  int64    // of the limits, millionths
	rate  int64    // of the reservation, tokens/s
	told  [2]int64 // what of the reservation was used up in the period when the last report was made, and the one before
}

// Newcomers is the part of a limit, one in so many, that all nodes together take for an
// entity that has come to them, until a grant names it: the others may have all of it.
const Newcomers = 32

// newQuota is what an entity has that has just come.
func (c *Coordinator) newQuota() quota {
	switch a := c.above; {
	case a == nil || a.nodes == 1:
		return quota{part: whole}
	case a.lapsed && a.looked >= a.modest: // then no node has more than this
		return quota{part: whole / a.nodes}
	default:
		return quota{part: whole / Newcomers / a.nodes}
	}
}

// SetNodes says how many nodes share the limits, while no grant does.
func (c *Coordinator) SetNodes(n int64) {
	if c.above.lapsed {
		c.above.nodes = max(1, n)
	}
}

// Take has the next Redistribute, which is due now, put a grant into force.
func (c *Coordinator) Take(g *NodeGrant, now int64) { c.above.next, c.above.came = g, now }

// Lapsed reports whether no grant of the coordinator above is in force, though there is to
// be one.
func (c *Coordinator) Lapsed() bool { return c.above != nil && c.above.lapsed }

// patience is for how long after an interval's end the next grant may come. A period begins without
// one: what the last one has left of reservations is used up by then.
func (c *Coordinator) patience() int64 {
	if c.above == nil || c.above.lapsed || c.above.missed || c.interval == c.config.Intervals-1 {
		return 0
	}
	return c.config.Period / int64(2*c.config.Intervals)
}

// periodEnds reports whether a new period begins: by the grant that has come, or by the
// clock, where there is none. One that was begun by the clock shortly before goes on.
func (c *Coordinator) periodEnds(now int64) bool {
	switch {
	case !c.started:
		return true
	case c.above == nil || c.above.next == nil:
		return c.interval == c.config.Intervals-1
	}
	elapsed := now - c.began
	return elapsed >= c.config.Period/2 && (c.above.next.Period || elapsed > c.config.Period)
}

// tells reports whether what a device served in the period that ends says what it can do.
func (c *Coordinator) tells(b *backing, now int64) bool {
	away := now - c.end() // a node's periods follow those of another clock
	return !b.foreign && (c.above == nil || max(away, -away) < c.config.Period/20)
}

// follow puts the grant that has come into force, or what holds without one.
func (c *Coordinator) follow(now int64) {
	a := c.above
	if a == nil {
		return
	}
	modest := c.modestly(now)
	if g := a.next; g != nil {
		left := max(1, g.Left-(now-a.came))
		*a = above{nodes: max(1, g.Nodes), until: a.came + g.Lasts, looked: a.looked}
		c.take(g, left, now)
		return
	}
	a.missed = true
	if a.lapsed = a.lapsed || now >= a.until; a.lapsed {
		part := whole / a.nodes
		if modest {
			part /= Newcomers
		}
		c.lapse(part)
	}
}

// leastLeft is the least time, in ns, over which a rate is made of tokens: with it none overflows.
const leastLeft = 1 << 20

// take puts a grant into force at now, whose period ends after left.
func (c *Coordinator) take(g *NodeGrant, left, now int64) {
	length := c.config.Period / int64(c.config.Intervals)
	over := max(left, leastLeft)
	c.began = now + left - c.config.Period
	c.interval = c.config.Intervals - min(max(int((left+length/2)/length), 1), c.config.Intervals)
	at := 0
	for i := range g.Parts {
		p := &g.Parts[i]
		for at < len(c.members) && c.members[at].number < p.Number {
			at++
		}
		if at == len(c.members) {
			break
		}
		if m := c.members[at]; m.number == p.Number {
			m.quota = quota{known: true, part: p.Share, rate: arith.MulDiv(p.Reserved, 1e9, over), told: m.quota.told}
			m.reservation = m.quota.told[g.Behind] + p.Reserved
		}
	}
	for i := range g.Pools {
		p := &g.Pools[i]
		for _, b := range c.devices {
			if b.foreign && b.device.Name == p.Device {
				b.told, b.window = p.Capacity, p.Window
				b.device.Pool.Set(p.Tokens)
			}
		}
	}
}

// lapse is what a node may have of whose coordinator nothing is heard: of a limit the smaller
// of what it had and a part, which is what it would have if all had the same, so that all together
// have no more than the limit whoever has heard what. A reservation stays where it was.
func (c *Coordinator) lapse(part int64) {
	for _, m := range c.members {
		if !m.quota.known {
			m.quota.part = part
		}
		m.quota.part = min(m.quota.part, part)
	}
	for _, b := range c.devices {
		b.window = 0
	}
}

// spend gives a foreign device's pool what a node may use of it in a period for which there
// is no grant.
func (c *Coordinator) spend(b *backing) {
	if c.Lapsed() {
		b.device.Pool.Set(max(0, b.told/c.above.nodes-b.reserved))
	}
}

// promised is what a reservation of a rate, in tokens/s, comes to here.
func (c *Coordinator) promised(m *member, rate int64) int64 {
	switch {
	case c.above == nil:
		return rate
	case m.quota.known:
		return min(rate, m.quota.rate)
	}
	return arith.MulDiv(rate, m.quota.part, whole)
}

// part is what may be divided of a member's limits, millionths: of nodes' what others do not have
// that are not heard.
func (c *Coordinator) part(m *member) int64 {
	if c.above != nil {
		return m.quota.part
	}
	part := int64(whole)
	if c.elsewhere != nil {
		part -= c.elsewhere(m.key)
	}
	for thread, away := range c.away {
		if away {
			part -= m.shares[thread]
		}
	}
	return max(0, part)
}
