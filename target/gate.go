package target

import (
	"math"
	"time"

	"lunar/internal/evloop"
	"lunar/scheduler"
)

// gate is an event thread's part of the token scheduler: commands pass it, or
// wait in it for their tokens. Without rules everything passes.
type gate struct {
	*scheduler.Gate
	loop *evloop.Loop
	cost scheduler.Cost

	network *scheduler.Network // of the policy
	applied func()             // follows a policy, if it is set
	classes func(initiator string) []ConnectionClass

	ruled bool // the last policy had rules, or commands waited when it came
	due   bool // dispatch is queued
	rests bool // the next tick comes with a report
	tick  evloop.Timer
	wake  evloop.Timer
}

// waiter is what waits in the gate: a command, or a copy that pays for a part.
type waiter interface {
	// passed follows the gate's permission.
	passed()
}

// tickTime is how often engines yield and due reservation tokens are seen. A thread without any
// looks with each report: it would wake up for nothing.
const tickTime = time.Millisecond

func newGate(loop *evloop.Loop, number int, config scheduler.GateConfig) *gate {
	g := &gate{Gate: scheduler.NewGate(number, config), loop: loop, network: new(scheduler.Network)}
	g.tick.Fire, g.wake.Fire = g.ticked, g.dispatch
	return g
}

// later makes dispatch follow at the end of the pass.
func (g *gate) later() {
	if !g.due {
		g.due = true
		g.loop.AtPassEnd(g)
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
	now := g.loop.Now()
	for q := g.Next(now); q != nil; q = g.Next(now) {
		g.serve(q.Queue())
		q.Owner.(waiter).passed()
		g.loop.Yield()
	}
	if g.Waiting() == 0 {
		return
	}
	if at := g.Wake(); at != math.MaxInt64 {
		g.loop.ArmAt(&g.wake, at)
	}
	if g.rests {
		g.rest()
	}
}

// ticked is the timer while there are rules.
func (g *gate) ticked() {
	if !g.Active() {
		return
	}
	g.Tick(g.loop.Now())
	g.rest()
	if g.Waiting() > 0 {
		g.dispatch()
	}
}

// rest plans the next tick.
func (g *gate) rest() {
	next := tickTime
	if g.rests = !g.Hurried(); g.rests {
		next = reportTime
	}
	g.loop.Arm(&g.tick, next)
}

// apply puts a policy into force.
func (g *gate) apply(p *scheduler.Policy) {
	now := g.loop.Now()
	g.cost, g.network = p.Cost(), p.Network()
	g.Apply(p, now)
	g.arrange()
	if g.ruled = g.Active(); g.ruled {
		g.rest()
	}
	if g.applied != nil {
		g.applied()
	}
	g.dispatch()
}

// arrange lets the loop go by turns while somebody may go before others.
func (g *gate) arrange() {
	switch {
	case g.Promised() && !g.loop.Ordered():
		g.loop.SetOrder(g.Turns())
	case !g.Promised() && g.loop.Ordered():
		g.loop.SetOrder(nil)
	}
}

// serve notes whose work the thread does now.
func (g *gate) serve(q *scheduler.Queue) {
	if g.loop.Ordered() && q != g.Turns().Serving() {
		g.Turns().Serve(q, evloop.Monotonic())
	}
}

// Prior reports whether a queue's commands go before what the thread is doing.
func (g *gate) Prior(q *scheduler.Queue) bool { return q != nil && g.Turns().Prior(q) }

// payment is what a copy within the server pays for the bytes that it moves, part by
// part and before each: its command passed the gate for the price of a parameter
// list. It is charged to the queue of the LUN that the copy was asked of.
type payment struct {
	scheduler.Task
	gate  *gate
	queue *scheduler.Queue
	due   bool   // it waits in the gate
	paid  func() // it waits no longer
}

// pay reports whether bytes, half of them read and half of them written, may be
// moved now; else paid follows. What has passed is not counted as under way: the
// copy may hold as many places in the window as it likes to wait in.
func (p *payment) pay(bytes int64) bool {
	g := p.gate
	now := g.loop.Now()
	p.Owner, p.Hit, p.Bytes = p, false, bytes
	p.Cost = g.cost.Of(bytes/2, false) + g.cost.Of(bytes/2, true)
	if g.Admit(p.queue, &p.Task, now) {
		g.Done(&p.Task, now)
		return true
	}
	p.due = true
	g.later()
	return false
}

// passed implements waiter.
func (p *payment) passed() {
	p.gate.Done(&p.Task, p.gate.loop.Now())
	p.due = false
	p.paid()
}

// cancel ends the wait of a copy that ends.
func (p *payment) cancel() {
	if !p.due {
		return
	}
	p.due = false
	p.gate.Cancel(&p.Task, p.gate.loop.Now())
	if p.gate.Waiting() > 0 {
		p.gate.later()
	}
}

// strayPayment is that of a copy whose session is not here, if there are rules: it has a queue of its
// own.
type strayPayment struct{ *payment }

// pays is payment.pay of a copy that opens its queue.
func (p *strayPayment) pays(bytes int64, g *gate, open func() *scheduler.Queue, paid func()) bool {
	if !g.Active() {
		return true
	}
	if p.payment == nil {
		p.payment = &payment{gate: g, queue: open(), paid: paid}
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
