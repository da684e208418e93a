package target

import (
	"math"
	"slices"
	"time"

	"lunar/internal/evloop"
	"lunar/scheduler"
	"lunar/target/scsi"
)

// gate is an event thread's part of the token scheduler: commands pass it, or
// wait in it for their tokens. Without rules everything passes.
type gate struct {
	*scheduler.Gate
	thread *thread
	cost   scheduler.Cost
	due    bool // dispatch is queued
	tick   evloop.Timer
	wake   evloop.Timer
}

// tickTime is how often engines yield and due reservation tokens are seen.
const tickTime = time.Millisecond

func newGate(th *thread, number int, config scheduler.GateConfig) *gate {
	g := &gate{Gate: scheduler.NewGate(number, config), thread: th}
	g.tick.Fire, g.wake.Fire = g.ticked, g.dispatch
	return g
}

// admit reports whether the task may run now; else the gate has it until
// dispatch. Commands that the table exempts never wait.
func (g *gate) admit(t *task) bool {
	if !g.Active() || scsi.Exempt(&t.cmd) {
		return true
	}
	q := &t.qos
	q.Owner, q.Hit, q.Bytes = t, false, int64(t.cmd.EDTL)
	q.Cost = g.cost.Of(q.Bytes, t.cmd.HasOut)
	if g.Admit(t.lun.queue, q, g.thread.loop.Now()) {
		t.turn = passed
		return true
	}
	t.turn = queued
	t.conn.window.Queued(1)
	g.later()
	return false
}

// turn is where a task stands with the gate.
type turn uint8

const (
	ungated turn = iota // the gate knows nothing of it
	queued              // it waits in the gate
	passed              // the gate counts it as under way
)

// left tells the gate that the task has ended.
func (g *gate) left(t *task) {
	switch t.turn {
	case queued:
		t.conn.window.Queued(-1)
		g.Cancel(&t.qos, g.thread.loop.Now())
	case passed:
		t.qos.Hit = t.cmd.Hit()
		g.Done(&t.qos, g.thread.loop.Now())
	default:
		return
	}
	t.turn = ungated
	if g.Waiting() > 0 {
		g.later()
	}
}

// later makes dispatch follow at the end of the pass.
func (g *gate) later() {
	if !g.due {
		g.due = true
		g.thread.loop.AtPassEnd(g)
	}
}

// Run implements evloop.Task.
func (g *gate) Run() {
	g.due = false
	g.dispatch()
}

// dispatch runs what may run now and sees to it that the rest is looked at in
// time.
func (g *gate) dispatch() {
	now := g.thread.loop.Now()
	for q := g.Next(now); q != nil; q = g.Next(now) {
		switch o := q.Owner.(type) {
		case *task:
			o.turn = passed
			o.conn.window.Queued(-1)
			o.conn.dispatched(o)
		case *toll:
			o.settle()
		}
	}
	if at := g.Wake(); at != math.MaxInt64 && g.Waiting() > 0 {
		g.thread.loop.ArmAt(&g.wake, at)
	}
}

// ticked is the timer while there are rules.
func (g *gate) ticked() {
	if !g.Active() {
		return
	}
	g.Tick(g.thread.loop.Now())
	g.thread.loop.Arm(&g.tick, tickTime)
	if g.Waiting() > 0 {
		g.dispatch()
	}
}

// apply puts a policy into force.
func (g *gate) apply(p *scheduler.Policy) {
	now := g.thread.loop.Now()
	g.cost = p.Cost()
	g.Apply(p, now)
	if g.Active() && !g.tick.Armed() {
		g.thread.loop.Arm(&g.tick, tickTime)
	}
	g.dispatch()
}

// open gives a LUN of the connection its queue on the connection's thread.
func (g *gate) open(c *core, l *lun) {
	f := c.session.flow(l.number)
	q := c.session.server.qos
	device := q.devices.of(l.nexus.LU)
	l.queue = g.Open(f, device, g.thread.loop.Now())
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
func (g *gate) forget(c *core) {
	all := &c.session.server.qos.devices
	on := func(d *scheduler.Device) func(*lun) bool { return func(l *lun) bool { return all.of(l.nexus.LU) == d } }
	c.devices = slices.DeleteFunc(c.devices, func(d *scheduler.Device) bool {
		return !slices.ContainsFunc(c.luns, on(d)) && !slices.ContainsFunc(c.leaving, on(d))
	})
	c.window.Devices(len(c.devices))
}

// close takes the queues of a connection away, whose commands have all ended:
// it moves, or has finished.
func (g *gate) close(c *core) {
	for _, l := range c.luns {
		g.closeLUN(c, l, c.finished)
	}
}

// closeLUN takes the queue of one LUN away; gone says that the connection will
// not open it again.
func (g *gate) closeLUN(c *core, l *lun, gone bool) {
	if l.queue == nil {
		return
	}
	now := g.thread.loop.Now()
	counted := g.ExplainQueue(l.queue, now)
	g.Close(l.queue, now)
	c.session.server.qos.ledger.add(&counted, gone)
	l.queue = nil
}

// dispatched runs a task that has waited in the gate.
func (c *core) dispatched(t *task) {
	defer c.Contain()
	c.enter(t)
	t.conn.run(t)
	c.exit(t)
}

// await keeps what came with a command that waits in the gate: its immediate
// data, which lies in the receive buffer.
func (t *task) await() {
	c := t.conn
	if t.cmd.Immediate == nil || t.early != nil {
		t.cmd.Immediate = nil
		return
	}
	if n := len(t.cmd.Immediate); n > scsi.SegmentSize {
		t.keepImmediate()
	} else if ref := c.get(n); ref != nil {
		t.early = ref
		copy(ref.Bytes(), t.cmd.Immediate)
		t.cmd.Immediate = nil
	} else {
		t.keepImmediate()
	}
}
