package target

import (
	"slices"
	"time"

	"lunar/internal/evloop"
)

// homingInterval is how often connections that serve several logical units are
// judged.
const homingInterval = time.Second

// homing is where a connection belongs. next is set while it moves.
type homing struct {
	next *thread
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
	var busiest *lun
	var total uint64
	for _, l := range c.luns {
		total += l.ops
		if busiest == nil || l.ops > busiest.ops {
			busiest = l
		}
	}
	if len(c.luns) > 1 && busiest != nil && busiest.ops*2 > total && c.home.next == nil {
		if group := c.session.server.groupOf(busiest.nexus.LU); !slices.Contains(group, c.thread) {
			c.home.next = leastLoaded(group)
			c.moveIfIdle()
		}
	}
	for _, l := range c.luns {
		l.ops = 0
	}
}

// moveIfIdle moves the connection once no command of it runs and nothing is on
// the way: what it leaves behind belongs to the old thread. Under load that
// moment comes when the initiator's window has drained; if it does not come
// within an interval, the next one decides anew.
func (c *Connection) moveIfIdle() {
	next := c.home.next
	if c.closed || c.live > 0 || len(c.held) > 0 || c.placed != nil {
		return
	}
	c.thread.loop.AtPassEnd(evloop.Func(func() { c.move(next) }))
}

func (c *Connection) move(next *thread) {
	if c.closed || c.live > 0 || c.home.next != next || !c.mover.Detach() {
		return
	}
	c.home.next = nil
	c.thread.loop.Disarm(&c.nop.timer)
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
	}
	c.log.Debug("connection moved", "thread", th.loop.Name())
}
