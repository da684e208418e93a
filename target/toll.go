package target

import (
	"lunar/scheduler"
	"lunar/target/scsi"
)

// toll is what a copy within the server pays for the bytes that it moves, part by
// part and before each: its command passed the gate for the price of a parameter
// list. It is charged to the queue of the LUN that the copy was asked of.
type toll struct {
	scheduler.Task
	gate  *gate
	queue *scheduler.Queue
	owing bool   // it waits in the gate
	paid  func() // it waits no longer
}

// pay reports whether bytes, half of them read and half of them written, may be
// moved now; else paid follows. What has passed is not counted as under way: the
// copy may hold as many places in the window as it likes to wait in.
func (p *toll) pay(bytes int64) bool {
	g := p.gate
	now := g.thread.loop.Now()
	p.Owner, p.Hit, p.Bytes = p, false, bytes
	p.Cost = g.cost.Of(bytes/2, false) + g.cost.Of(bytes/2, true)
	if g.Admit(p.queue, &p.Task, now) {
		g.Done(&p.Task, now)
		return true
	}
	p.owing = true
	g.later()
	return false
}

// settle follows the gate's permission.
func (p *toll) settle() {
	p.gate.Done(&p.Task, p.gate.thread.loop.Now())
	p.owing = false
	p.paid()
}

// cancel ends the wait of a copy that ends.
func (p *toll) cancel() {
	if !p.owing {
		return
	}
	p.owing = false
	p.gate.Cancel(&p.Task, p.gate.thread.loop.Now())
	if p.gate.Waiting() > 0 {
		p.gate.later()
	}
}

// Toll implements scsi.Tolls. The command itself is not under way any more for the
// gate: copies that wait for their tolls would fill its window, and none could pass.
func (t *task) Toll(_ *scsi.Command, bytes int64) bool {
	c := t.conn
	g := c.thread.gate
	if t.turn == passed {
		g.Done(&t.qos, g.thread.loop.Now())
		t.turn = ungated
	}
	if !g.Active() {
		return true
	}
	if t.toll == nil {
		t.toll = &toll{gate: g, queue: t.lun.queue, paid: func() {
			defer c.core.Contain()
			c.enter(t)
			t.cmd.Paid()
			c.exit(t)
		}}
	}
	return t.toll.pay(bytes)
}

// Toll implements scsi.Tolls. The initiator's session may be gone, and its queue
// with it: a copy in the background has one of its own, of the same rules.
func (b *background) Toll(_ *scsi.Command, bytes int64) bool {
	g := b.thread.gate
	if !g.Active() {
		return true
	}
	if b.toll == nil {
		queue := g.Open(b.flow, b.server.qos.devices.of(b.cmd.Nexus.LU), g.thread.loop.Now())
		b.toll = &toll{gate: g, queue: queue, paid: func() {
			defer b.Contain(&b.cmd)
			b.cmd.Paid()
		}}
	}
	return b.toll.pay(bytes)
}

// endToll takes the queue away.
func (b *background) endToll() {
	if p := b.toll; p != nil {
		p.cancel()
		p.gate.Close(p.queue, p.gate.thread.loop.Now())
		b.toll = nil
	}
}
