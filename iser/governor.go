package iser

import (
	"time"

	"lunar/internal/evloop"
	"lunar/target"
	"lunar/target/bottleneck"
)

// governor spaces the RDMA Writes and Reads of a connection by QRDMA rates, one for each way.
// The network tells a process nothing of its congestion, so that it is seen by how long
// operations take. What may not be posted yet stays in the queues of the connection.
//
// A connection without one does no more than to compare a pointer.
type governor struct {
	conn  *conn
	lanes [2]lane         // by way
	holds [2]evloop.Timer // until a lane that has to wait is looked at again
	from  uint32          // position in the send queue from which entries are stamped
	tick  evloop.Timer
}

// idleTime is how long a connection counts among those that share a link though it has
// nothing to move.
const idleTime = 200 * time.Millisecond

// SetClass implements target.Classed. The DSCP of packets over RDMA is set before the login,
// when nobody knows who comes.
func (c *conn) SetClass(class target.NetworkClass) error {
	if c.gov != nil {
		c.gov.end()
		c.gov = nil
		c.schedule() // what was held
	}
	if class.Network != nil && !c.ending {
		c.gov = newGovernor(c, class)
	}
	return nil
}

// Governance implements target.Classed.
func (c *conn) Governance() target.Governance {
	if c.gov == nil {
		return target.Governance{}
	}
	return c.gov.told()
}

func newGovernor(c *conn, class target.NetworkClass) *governor {
	g := &governor{conn: c, from: c.tx.work.tail}
	for to := range g.lanes {
		link := c.group.links.Of(c.local.Addr(), c.group.device.name, bottleneck.Way(to), class.Network)
		g.lanes[to].open(link, class.Class, class.Network.Delay, c.loop.Now())
		g.holds[to].Fire = c.schedule
	}
	g.tick.Fire = g.look
	return g
}

// end takes the connection from its links.
func (g *governor) end() {
	g.conn.loop.Disarm(&g.tick)
	for to := range g.lanes {
		g.conn.loop.Disarm(&g.holds[to])
		g.lanes[to].leave()
	}
}

// wayOf is the way of a kind of work; false: nothing bounds it.
func wayOf(k kind) (to bottleneck.Way, bounded bool) {
	switch k {
	case kindWrite:
		return bottleneck.Out, true
	case kindRead:
		return bottleneck.In, true
	}
	return 0, false
}

// admits reports whether something of a kind may be posted now. Else the queues are looked at
// again when it may.
func (g *governor) admits(k kind) bool {
	to, bounded := wayOf(k)
	if !bounded {
		return true
	}
	wait := g.lanes[to].wait(g.conn.loop.Now())
	if wait > 0 && !g.holds[to].Armed() {
		g.conn.loop.Arm(&g.holds[to], time.Duration(wait))
	}
	if !g.tick.Armed() {
		g.conn.loop.Arm(&g.tick, idleTime)
	}
	return wait == 0
}

// posted notes an entry of the send queue.
func (g *governor) posted(k kind, bytes int) {
	if to, bounded := wayOf(k); bounded {
		g.lanes[to].posted(bytes, g.conn.loop.Now())
	}
}

// ended notes the end of the entry at a position.
func (g *governor) ended(at uint32, k kind) {
	to, bounded := wayOf(k)
	if !bounded || int32(at-g.from) < 0 {
		return
	}
	g.from = at // positions begin anew after 2^32 entries
	g.lanes[to].ended(g.conn.loop.Now())
}

// look is the timer: who has moved nothing of late does not share the link.
func (g *governor) look() {
	out, in := g.lanes[bottleneck.Out].tick(), g.lanes[bottleneck.In].tick()
	if out || in {
		g.conn.loop.Arm(&g.tick, idleTime)
	}
}

// told describes how the connection is governed: by what it sends, or by what it fetches if
// that is all.
func (g *governor) told() target.Governance {
	l := &g.lanes[bottleneck.Out]
	if in := &g.lanes[bottleneck.In]; in.joined && !l.joined {
		l = in
	}
	share := l.link.Allowance(l.member.Class, g.conn.loop.Now())
	return target.Governance{
		Form: target.Delay, Device: l.link.Name(), Alpha: l.pacer.Alpha(), Quality: l.pacer.Quality(share),
		Rate: int64(l.pacer.Measured()), Target: int64(share), Estimate: int64(l.link.Capacity()),
		Pace: int64(g.lanes[bottleneck.Out].pacer.Pace()), Pacing: target.Pacing{Pace: int64(g.lanes[bottleneck.In].pacer.Pace())},
	}
}
