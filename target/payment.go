package target

import (
	"lunar/scheduler"
	"lunar/target/scsi"
)

// Pay implements scsi.Payments. The command itself is not under way any more for the
// gate: copies that wait for their payments would fill its window, and none could pass.
func (t *task) Pay(_ *scsi.Command, bytes int64) bool {
	c := t.conn
	g := c.thread.gate
	if t.turn == underway {
		g.Done(&t.qos, g.loop.Now())
		t.turn = ungated
	}
	if !g.Active() {
		return true
	}
	if t.payment == nil {
		t.payment = &payment{gate: g, queue: t.lun.queue, paid: func() {
			defer c.sessionState.Contain()
			c.enter(t)
			t.cmd.Paid()
			c.exit(t)
		}}
	}
	return t.payment.pay(bytes)
}

// Pay implements scsi.Payments. The initiator's session may be gone, and its queue
// with it: a copy in the background has one of its own, of the same rules.
func (b *background) Pay(_ *scsi.Command, bytes int64) bool {
	return b.payment.pays(bytes, b.thread.gate, b.queue, func() {
		defer b.Contain(&b.cmd)
		b.cmd.Paid()
	})
}

func (b *background) queue() *scheduler.Queue {
	g := b.thread.gate
	return g.Open(b.flow, b.thread.qos.devices.of(b.cmd.Nexus.LU), g.loop.Now())
}
