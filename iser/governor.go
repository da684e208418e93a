package iser

import (
	"time"

	"lunar/internal/evloop"
	"lunar/scheduler/qrdma"
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
	lanes [2]lane // by way
	from  uint32  // position in the send queue from which entries are stamped
	tick  evloop.Timer
}

// lane is one way of a governed connection.
type lane struct {
	link   *bottleneck.Link
	member bottleneck.Member
	pacer  qrdma.Pacer
	stamps ring[qrdma.Stamp] // of what the device has
	hold   evloop.Timer      // until something may be posted
	joined bool              // it counts in the link's connections
	posted bool              // something, since the last tick
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
		l := &g.lanes[to]
		l.member.Class = bottleneck.Class(class.Class)
		l.link = c.group.links.Of(c.local.Addr(), c.group.device.name, bottleneck.Way(to), class.Network)
		l.hold.Fire = c.schedule
		l.pacer = qrdma.NewPacer(qrdma.NewLine(l.link.Rate()), class.Network.Delay, c.loop.Now())
	}
	g.tick.Fire = g.look
	return g
}

// end takes the connection from its links.
func (g *governor) end() {
	g.conn.loop.Disarm(&g.tick)
	for to := range g.lanes {
		g.conn.loop.Disarm(&g.lanes[to].hold)
		g.lanes[to].leave()
	}
}

func (l *lane) leave() {
	if l.joined {
		l.joined = false
		l.link.Leave(&l.member)
	}
}

// lane is the one of a kind of work; nil: nothing bounds it.
func (g *governor) lane(k kind) *lane {
	switch k {
	case kindWrite:
		return &g.lanes[bottleneck.Out]
	case kindRead:
		return &g.lanes[bottleneck.In]
	}
	return nil
}

// admits reports whether something of a kind may be posted now. Else the queues are looked at
// again when it may.
func (g *governor) admits(k kind) bool {
	l := g.lane(k)
	if l == nil {
		return true
	}
	now := g.conn.loop.Now()
	l.update(now)
	wait := l.pacer.Wait(now)
	if wait > 0 && !l.hold.Armed() {
		g.conn.loop.Arm(&l.hold, time.Duration(max(wait, qrdma.Interval)))
	}
	return wait == 0
}

// posted notes an entry of the send queue.
func (g *governor) posted(k kind, bytes int) {
	l := g.lane(k)
	if l == nil {
		return
	}
	*l.stamps.push() = l.pacer.Post(int64(bytes), g.conn.loop.Now())
	l.posted = true
	if !l.joined {
		l.joined = true
		l.link.Join(&l.member)
	}
	if !g.tick.Armed() {
		g.conn.loop.Arm(&g.tick, idleTime)
	}
}

// ended notes the end of the entry at a position.
func (g *governor) ended(at uint32, k kind) {
	l := g.lane(k)
	if l == nil || int32(at-g.from) < 0 {
		return
	}
	now := g.conn.loop.Now()
	l.pacer.End(*l.stamps.pop(), now)
	l.update(now)
}

// update tells the flow and the link of the intervals that have passed.
func (l *lane) update(now int64) {
	if l.pacer.Due(now) {
		l.member.Late.Store(l.pacer.Look(now, l.link.Allowance(l.member.Class, now)))
		l.member.Measured.Store(int64(l.pacer.Measured()))
	}
}

// look is the timer: who has moved nothing of late does not share the link.
func (g *governor) look() {
	again := false
	for to := range g.lanes {
		l := &g.lanes[to]
		if !l.posted && l.stamps.len() == 0 {
			l.member.Measured.Store(0)
			l.member.Late.Store(false)
			l.leave()
		}
		l.posted = false
		again = again || l.joined
	}
	if again {
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
