package target

import (
	"time"

	"lunar/internal/evloop"
	"lunar/target/pdu"
)

// inspectionInterval is how often sessions that serve several logical units are
// judged.
const inspectionInterval = time.Second

// migration is where a session moves. next is set until it has.
type migration struct {
	next *thread
	due  bool // move is queued
}

// inspect is the thread's timer: a session of one connection moves to the group
// of the logical unit that carries most of its commands, and who owes data for too
// long is thrown out.
func (th *thread) inspect() {
	now := th.patience.Look(th.loop.Now())
	for c := range th.sessions {
		c.considerMigration()
		c.judgeDebts(now)
		c.retryLatencies()
	}
	th.relieve(now)
	if more := th.depot.Trim(); more || len(th.sessions) > 0 {
		th.loop.Arm(&th.inspection, inspectionInterval)
	}
}

func (c *sessionState) considerMigration() {
	if c.migration.next != nil {
		c.cancelMigration() // it has not drained since the last time
	}
	var busiest *lun
	var total uint64
	for _, l := range c.luns {
		total += l.ops
		if busiest == nil || l.ops > busiest.ops {
			busiest = l
		}
	}
	if o := c.only(); o != nil && o.assist == nil && len(c.luns) > 1 && busiest.ops*2 > total {
		if home := c.session.node.homeOf(busiest.nexus.LU, c.session.origin, c.thread); home != c.thread {
			c.migrateTo(home)
		}
	}
	for _, l := range c.luns {
		l.ops = 0
	}
}

// migrateTo begins a move: nothing more is granted through the command window,
// so that under any load the commands run out.
func (c *sessionState) migrateTo(next *thread) {
	c.migration.next = next
	c.window.Freeze(true)
	c.moveIfIdle()
}

// cancelMigration keeps the session where it is and opens the window again.
func (c *sessionState) cancelMigration() {
	c.migration.next = nil
	c.window.Freeze(false)
	c.sendWindow()
}

// sendWindow tells the initiator the command window by a NOP-In that asks
// nothing (RFC 7143 section 11.19).
func (c *sessionState) sendWindow() {
	o := c.speaker()
	if o == nil {
		return
	}
	p := (*pdu.NOPIn)(&o.header).Init()
	p.BHS().SetITT(pdu.ReservedTag)
	p.BHS().SetTTT(pdu.ReservedTag)
	o.mover.SendControl(p.BHS(), nil, nil)
}

// moveIfIdle moves the session once no command of it runs and nothing is on
// the way: what it leaves behind belongs to the old thread.
func (c *sessionState) moveIfIdle() {
	next := c.migration.next
	if c.migration.due || c.busy() {
		return
	}
	c.migration.due = true
	c.thread.loop.AtPassEnd(evloop.Func(func() { c.move(next) }))
}

func (c *sessionState) busy() bool {
	o := c.only()
	return o == nil || o.closed || c.live > 0 || len(c.early) > 0 || o.placed != nil || o.share.waits()
}

func (c *sessionState) move(next *thread) {
	c.migration.due = false
	if c.migration.next != next || c.busy() || !c.only().mover.Detach() {
		return
	}
	c.migration.next = nil
	c.thread.loop.Disarm(&c.only().nop.timer)
	c.thread.gate.close(c)
	kept := c.detach()
	c.thread.load.Add(-1)
	c.owner.Lock()
	defer c.owner.Unlock()
	c.owner.thread = next
	next.loop.Post(evloop.Func(func() { c.arrive(next, kept) }))
}

// detach takes the session from its thread, and returns how much memory it takes along:
// of what was sent and not acknowledged (recall.go), for it has no buffers.
func (c *sessionState) detach() (kept int) {
	kept = c.charged.Used
	c.charged.Add(-kept)
	for _, o := range c.conns {
		if o.recall != nil {
			o.recall.move()
		}
	}
	c.thread.remove(c)
	return kept
}

// attach makes the session one of a thread.
func (c *sessionState) attach(th *thread, kept int) {
	c.thread = th
	th.add(c)
	c.charged.Add(kept)
	for _, o := range c.conns {
		if o.recall != nil {
			o.recall.memory = th.depot
		}
	}
}

// arrive continues the session on its new thread. Another connection that has
// joined meanwhile comes after it.
func (c *sessionState) arrive(th *thread, kept int) {
	defer c.Contain()
	c.attach(th, kept)
	o := c.only()
	o.debts = debts{} // they were by the other thread's clock
	th.load.Add(1)
	o.armNOP()
	err := c.relane()
	if err == nil {
		err = o.mover.Attach(o, th.loop)
	}
	if err != nil {
		o.close(err)
		return
	}
	o.class = NetworkClass{} // its transport is governed by nothing any more
	c.classify()
	c.window.Freeze(false)
	c.sendWindow()
	o.log.Debug("connection moved", "thread", th.loop.Name())
}
