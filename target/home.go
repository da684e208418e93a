package target

import (
	"slices"
	"time"

	"lunar/internal/evloop"
	"lunar/target/pdu"
)

// homingInterval is how often connections that serve several logical units are
// judged.
const homingInterval = time.Second

// homing is where a connection belongs. next is set while it moves.
type homing struct {
	next *thread
	due  bool // move is queued
}

// judgeHomes is the thread's timer: a connection moves to the group of the
// logical unit that carries most of its commands.
func (th *thread) judgeHomes() {
	for c := range th.conns {
		c.judgeHome()
	}
	if len(th.conns) > 0 {
		th.loop.Arm(&th.homing, homingInterval)
	}
}

func (c *Connection) judgeHome() {
	if c.home.next != nil {
		c.stay() // it has not drained since the last time
	}
	var busiest *lun
	var total uint64
	for _, l := range c.luns {
		total += l.ops
		if busiest == nil || l.ops > busiest.ops {
			busiest = l
		}
	}
	if c.assist == nil && len(c.luns) > 1 && busiest.ops*2 > total {
		if group := c.session.server.groupOf(busiest.nexus.LU); !slices.Contains(group, c.thread) {
			c.leaveFor(c.session.server.nearest(group, c.session.origin))
		}
	}
	for _, l := range c.luns {
		l.ops = 0
	}
}

// leaveFor begins a move: nothing more is granted through the command window,
// so that under any load the commands run out.
func (c *Connection) leaveFor(next *thread) {
	c.home.next = next
	c.window.Freeze(true)
	c.moveIfIdle()
}

// stay gives up a move and opens the window again.
func (c *Connection) stay() {
	c.home.next = nil
	c.window.Freeze(false)
	c.sendWindow()
}

// sendWindow tells the initiator the command window by a NOP-In that asks
// nothing (RFC 7143 section 11.19).
func (c *Connection) sendWindow() {
	p := (*pdu.NOPIn)(&c.header).Init()
	p.BHS().SetITT(pdu.ReservedTag)
	p.BHS().SetTTT(pdu.ReservedTag)
	c.mover.SendControl(p.BHS(), nil, nil)
}

// moveIfIdle moves the connection once no command of it runs and nothing is on
// the way: what it leaves behind belongs to the old thread.
func (c *Connection) moveIfIdle() {
	next := c.home.next
	if c.home.due || c.busy() {
		return
	}
	c.home.due = true
	c.thread.loop.AtPassEnd(evloop.Func(func() { c.move(next) }))
}

func (c *Connection) busy() bool {
	return c.closed || c.live > 0 || len(c.held) > 0 || c.placed != nil
}

func (c *Connection) move(next *thread) {
	c.home.due = false
	if c.home.next != next || c.busy() || !c.mover.Detach() {
		return
	}
	c.home.next = nil
	c.thread.loop.Disarm(&c.nop.timer)
	c.thread.gate.close(c)
	c.thread.remove(c)
	c.owner.Lock()
	defer c.owner.Unlock()
	c.owner.thread = next
	next.loop.Post(evloop.Func(func() { c.arrive(next) }))
}

// arrive continues the connection on its new thread.
func (c *Connection) arrive(th *thread) {
	defer c.Contain()
	c.thread = th
	th.add(c)
	c.armNOP()
	err := c.relane()
	if err == nil {
		err = c.mover.Attach(c, th.loop)
	}
	if err != nil {
		c.close(err)
		return
	}
	c.window.Freeze(false)
	c.sendWindow()
	c.log.Debug("connection moved", "thread", th.loop.Name())
}
