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
	return b.payment.pays(bytes, b.thread, b.flow, b.cmd.Nexus.LU, func() {
		defer b.Contain(&b.cmd)
		b.cmd.Paid()
	})
}

// Pay implements scsi.Payments. The command was charged where its session is; what it moves is
// charged here, where the pool is that it is moved in, by the same rules.
func (t *remoteTask) Pay(_ *scsi.Command, bytes int64) bool {
	return t.payment.pays(bytes, t.nexus.thread, t.nexus.flow, t.cmd.Nexus.LU, func() {
		defer t.Contain(&t.cmd)
		t.cmd.Paid()
	})
}

// strayPayment is that of a copy whose session is not here, if there are rules: it has a queue of its
// own.
type strayPayment struct{ *payment }

// pays is payment.pay.
func (p *strayPayment) pays(bytes int64, th *thread, flow scheduler.Flow, lu *scsi.LogicalUnit, paid func()) bool {
	g := th.gate
	if !g.Active() {
		return true
	}
	if p.payment == nil {
		p.payment = &payment{gate: g, queue: g.Open(flow, th.qos.devices.of(lu), g.loop.Now()), paid: paid}
	}
	return p.pay(bytes)
}

// end takes the queue away.
func (p *strayPayment) end() {
	if p.payment != nil {
		p.cancel()
		p.gate.Close(p.queue, p.gate.loop.Now())
		p.payment = nil
	}
}
