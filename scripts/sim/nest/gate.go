package nest

import (
	"fmt"

	"lunar/scheduler"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// gating is the decision of the server's gate and coordinator; the stub has no rules, so that
// all pass in the order in which they come.
const gating experiment.Decision = "scheduler.Gate: who goes next, and who waits"

// As tgtd has them.
const (
	gateWindow  = 32
	gateTick    = net.Millisecond
	gateReports = 20 * net.Millisecond
)

// gate is the gate of a server's thread with the server's coordinator. Their clock counts
// ns, the simulator's ps.
type gate struct {
	server *Server
	gate   *scheduler.Gate
	coord  *scheduler.Coordinator
	queues []*scheduler.Queue // by connection
	report scheduler.GateReport
	grants [1]scheduler.GateGrant
}

// newGate puts a gate into a server that has its connections; rule i is of connection i.
func newGate(s *Server, rules []scheduler.Rule) error {
	g := &gate{server: s, gate: scheduler.NewGate(0, scheduler.GateConfig{Window: gateWindow, Threads: 1}),
		coord: scheduler.NewCoordinator(scheduler.CoordinatorConfig{Threads: 1})}
	for i := range rules {
		rules[i].Initiators = []string{initiator(i)}
	}
	policy, err := scheduler.NewPolicy(rules, nil, scheduler.Cost{})
	if err != nil {
		return err
	}
	if len(rules) > 0 {
		g.gate.Apply(policy, 0)
	}
	device := &scheduler.Device{Name: "device"}
	for i := range s.paths {
		g.queues = append(g.queues, g.gate.Open(scheduler.Flow{Initiator: initiator(i), Target: "t"}, device, 0))
	}
	s.gate = g
	g.coordinate()
	g.tick()
	return nil
}

func initiator(i int) string { return fmt.Sprintf("iqn.c%d", i) }

func (g *gate) now() int64 { return g.server.kernel.Now() / net.Nanosecond }

// admit reports whether a request may go on at once.
func (g *gate) admit(r *Request) bool {
	r.Task = scheduler.Task{Cost: 1, Owner: r}
	return g.gate.Admit(g.queues[r.path.number], &r.Task, g.now())
}

// done lets others pass behind a request that has been executed.
func (g *gate) done(r *Request) {
	g.gate.Done(&r.Task, g.now())
	g.dispatch()
}

func (g *gate) dispatch() {
	for t := g.gate.Next(g.now()); t != nil; t = g.gate.Next(g.now()) {
		g.server.execute(t.Owner.(*Request))
	}
}

// coordinate is a report and what follows from it, as the server's coordinator does it.
func (g *gate) coordinate() {
	now := g.now()
	g.gate.Report(&g.report, now)
	g.coord.Collect(&g.report)
	granted := true
	if now >= g.coord.Deadline() {
		g.coord.Redistribute(now, g.grants[:])
	} else {
		g.coord.Check(now)
		granted = g.coord.Welcome(now, g.grants[:])
	}
	if granted {
		g.gate.Grant(&g.grants[0], now)
	}
	g.dispatch()
	g.server.kernel.After(min(gateReports, (g.coord.Deadline()-now)*net.Nanosecond), kernel.Redistribution, g.coordinate)
}

func (g *gate) tick() {
	g.gate.Tick(g.now())
	g.dispatch()
	g.server.kernel.After(gateTick, kernel.TokenTick, g.tick)
}
