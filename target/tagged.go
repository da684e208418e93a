package target

import (
	"lunar/scheduler"
	"lunar/target/scsi"
)

// tagged is the queue of a command that may name its class: that of its LUN if it does
// not. The first command of a class opens the queue, which the LUN keeps.
func (g *gate) tagged(t *task) *scheduler.Queue {
	l := t.lun
	number, ok := scsi.GroupNumber(&t.cmd.CDB)
	if !ok {
		return l.queue
	}
	class, named := g.network.Groups[number].Class()
	if own, _ := l.queue.Class(); !named || class == own {
		return l.queue
	}
	if l.tagged == nil {
		l.tagged = new(scheduler.ByClass[*scheduler.Queue])
	}
	if l.tagged[class] == nil {
		l.tagged[class] = g.OpenAs(t.conn.session.flow(l.number), t.conn.thread.qos.devices.of(l.nexus.LU), class, g.loop.Now())
		g.arrange()
	}
	return l.tagged[class]
}

// closeTagged takes the queues away of commands that have named their class.
func (g *gate) closeTagged(c *sessionState, l *lun) {
	if l.tagged == nil {
		return
	}
	now := g.loop.Now()
	for _, q := range l.tagged {
		if q != nil {
			counted := g.ExplainQueue(q, now)
			g.Close(q, now)
			c.thread.qos.ledger.add(&counted, false)
		}
	}
	l.tagged = nil
}
