package target

import (
	"slices"

	"lunar/scheduler"
)

// open gives a LUN of the connection its queue on the connection's thread.
func (g *gate) open(c *sessionState, l *lun) {
	f := c.session.flow(l.number)
	q := c.thread.qos
	device := q.devices.of(l.nexus.LU)
	l.queue = g.Open(f, device, g.loop.Now())
	g.arrange()
	if !slices.Contains(c.devices, device) {
		c.devices = append(c.devices, device)
		c.window.Devices(len(c.devices))
	}
	if !l.entered {
		l.entered = true
		q.ledger.enter(f)
	}
}

// forget drops the devices of a session that none of its LUNs is on any more.
func (g *gate) forget(c *sessionState) {
	all := &c.thread.qos.devices
	on := func(d *scheduler.Device) func(*lun) bool { return func(l *lun) bool { return all.of(l.nexus.LU) == d } }
	c.devices = slices.DeleteFunc(c.devices, func(d *scheduler.Device) bool {
		return !slices.ContainsFunc(c.luns, on(d)) && !slices.ContainsFunc(c.unmapped, on(d))
	})
	c.window.Devices(len(c.devices))
}

// close takes the queues of a connection away, whose commands have all ended:
// it moves, or has finished.
func (g *gate) close(c *sessionState) {
	for _, l := range c.luns {
		g.closeLUN(c, l, c.finished)
	}
}

// closeLUN takes the queue of one LUN away; gone says that the connection will
// not open it again.
func (g *gate) closeLUN(c *sessionState, l *lun, gone bool) {
	if l.queue == nil {
		return
	}
	g.closeTagged(c, l)
	now := g.loop.Now()
	counted := g.ExplainQueue(l.queue, now)
	g.Close(l.queue, now)
	g.arrange()
	c.thread.qos.ledger.add(&counted, gone)
	l.queue = nil
}
