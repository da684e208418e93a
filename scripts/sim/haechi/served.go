package haechi

import (
	"cmp"
	"fmt"

	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// Decisions of the server's code.
const (
	// gating keeps commands until they may go; the stub lets all pass in the order in which
	// they come.
	gating experiment.Decision = "scheduler.Gate: who goes next, and who waits"
	// arbitrating serves who has reservation tokens first; the stub serves all in turn
	// without any.
	arbitrating experiment.Decision = "scheduler.Dispatcher: reserved commands first"
	// converting gives others what a reservation leaves; the stub keeps it.
	converting experiment.Decision = "haechi.Monitor: unused reservations become global tokens"
	// estimating follows the capacity; the stub stays at the profile.
	estimating experiment.Decision = "haechi.Estimator: the capacity of a device"
)

// As tgtd has them where the configuration says nothing else.
const (
	servedWindow = 32         // commands under way on a device
	wideWindow   = 256        // for a device as fast as the paper's, whose data are on the way for long
	reportEvery  = 20_000_000 // ns between two reports of the gates
)

// served is the data node as the server composes it: the gate of one event thread, the
// coordinator, and their defaults. The device serves in order of arrival what the gate
// has let pass. A command is under way until its data has arrived, as over RDMA.
type served struct {
	run    *run
	gate   *scheduler.Gate
	coord  *scheduler.Coordinator
	device scheduler.Device
	queues []*scheduler.Queue // by client
	passed []*io              // on the device, the first of them is served if busy
	busy   bool
	report scheduler.GateReport
	grants [1]scheduler.GateGrant
}

// newServed opens a queue for each client, with a rule for its reservation.
func newServed(r *run) (*served, error) {
	setup := r.setup
	n := &served{run: r, device: scheduler.Device{Name: "node"}}
	gate := scheduler.GateConfig{Window: cmp.Or(setup.Window, servedWindow), Threads: 1}
	estimator := haechi.EstimatorConfig{Profile: setup.profile(), Slack: estimatorSlack}
	if setup.Basic {
		gate.Mode, gate.Yield = scheduler.HardPool, haechi.YieldNever
	}
	if !setup.Adaptive { // nothing lower is believed, and a higher use raises it by a token
		estimator.Floor, estimator.Step = setup.profile(), 1
	}
	n.gate = scheduler.NewGate(0, gate)
	n.coord = scheduler.NewCoordinator(scheduler.CoordinatorConfig{Threads: 1, Monitor: haechi.MonitorConfig{Basic: setup.Basic, Estimator: estimator}})
	var rules []scheduler.Rule
	for i, c := range setup.Clients {
		if c.Reservation > 0 {
			rules = append(rules, scheduler.Rule{Initiators: []string{initiatorOf(i)}, Reservation: scheduler.Rate{IOPS: c.Reservation}})
		}
	}
	policy, err := scheduler.NewPolicy(rules, nil, scheduler.Cost{})
	if err != nil {
		return nil, err
	}
	if setup.QoS { // without rules a gate lets all pass
		n.gate.Apply(policy, 0)
	}
	for i := range setup.Clients {
		n.queues = append(n.queues, n.gate.Open(scheduler.Flow{Initiator: initiatorOf(i), Target: "t"}, &n.device, 0))
	}
	n.coordinate()
	n.tick()
	return n, nil
}

func initiatorOf(i int) string { return fmt.Sprintf("iqn.c%d", i) }

// coordinate is a report and what follows from it, as the server's coordinator does it.
func (n *served) coordinate() {
	k := &n.run.kernel
	now := k.Now()
	n.gate.Report(&n.report, now)
	n.coord.Collect(&n.report)
	granted := true
	if now >= n.coord.Deadline() {
		n.coord.Redistribute(now, n.grants[:])
		n.run.setup.Log.Line(now, "grant", n.coord.Monitor(&n.device).Capacity())
	} else {
		n.coord.Check(now)
		granted = n.coord.Welcome(now, n.grants[:])
	}
	if granted {
		n.gate.Grant(&n.grants[0], now)
	}
	n.dispatch(now)
	k.After(min(reportEvery, n.coord.Deadline()-now), kernel.Redistribution, n.coordinate)
}

func (n *served) tick() {
	now := n.run.kernel.Now()
	n.gate.Tick(now)
	n.dispatch(now)
	n.run.kernel.After(tick, kernel.TokenTick, n.tick)
}

// arrive offers a request to the gate.
func (n *served) arrive(x *io, now int64) {
	n.run.waited = n.run.waited || n.busy
	if n.gate.Admit(n.queues[x.client.id], &x.Task, now) {
		n.pass(x, now)
	}
}

// dispatch gives the device what may go.
func (n *served) dispatch(now int64) {
	for t := n.gate.Next(now); t != nil; t = n.gate.Next(now) {
		n.pass(t.Owner.(*io), now)
	}
}

func (n *served) pass(x *io, now int64) {
	x.client.issued++
	n.run.setup.Log.Line(now, "issue", int64(x.client.id), int64(x.Grant()))
	n.passed = append(n.passed, x)
	if !n.busy {
		n.begin(now)
	}
}

func (n *served) begin(now int64) {
	n.busy = true
	n.run.kernel.At(now+n.run.server.cost, kernel.Completion, n, 0)
}

// Fire ends the I/O that the device serves.
func (n *served) Fire(now int64, _ int32) {
	x := n.passed[0]
	n.passed = n.passed[1:]
	x.client.issued--
	x.client.receive(now, x)
	if n.busy = false; len(n.passed) > 0 {
		n.begin(now)
	}
}

// done says that the data of an I/O has arrived.
func (n *served) done(x *io, now int64) {
	n.gate.Done(&x.Task, now)
	n.dispatch(now)
}

// held is how many requests of a client wait, or are on the device.
func (n *served) held(c *client) int { return n.queues[c.id].Pending() + c.issued }
