package pshift

import (
	"fmt"
	"math"
	"slices"

	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/scheduler/nodes"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// The pool, which all nodes use at once, and what is promised of it.
const (
	poolIOPS     = 12_000
	poolReserved = 6_000 // more than a node's even part
	poolLimit    = 1_500
	poolDepth    = 128 // what an initiator keeps outstanding where it is
)

const (
	clusterNodes   = 3
	threadsOfNode  = 2
	messageTime    = 500_000       // ns that a message between nodes takes, and up to as much again
	moveEvery      = 2_000_000_000 // ns
	controllerDies = 20            // s
	controllerGone = 1_500_000_000 // ns until the next one begins
)

// The initiators.
const (
	wanderer = iota // has a reservation, and moves from node to node
	limited         // has a limit, and is on one node and on all in turn
	others          // one on each node, which want all that there is
)

// overNodesRun is some nodes and the controller of what is promised over all of them.
type overNodesRun struct {
	gatedWorld
	pool       gatedDevice
	nodes      []*simNode
	controller *nodes.Controller
	term       uint64
	alone      bool // there is none: each node promises by itself
}

// simNode is a node: its coordinator, and gates on one device that all nodes use.
type simNode struct {
	run     *overNodesRun
	name    string
	number  int
	coord   *scheduler.Coordinator
	device  *scheduler.Device
	node    nodes.Node
	threads []*gatedThread
	queues  [][]*scheduler.Queue // by thread and initiator
}

func newOverNodes(env *experiment.Env) (*overNodesRun, error) {
	policy, err := scheduler.NewPolicy([]scheduler.Rule{
		{Name: "moving", Initiators: []string{initiatorOf(wanderer)}, Reservation: scheduler.Rate{IOPS: poolReserved}},
		{Name: "limited", Initiators: []string{initiatorOf(limited)}, Limit: scheduler.Rate{IOPS: poolLimit}},
	}, nil, scheduler.Cost{})
	if err != nil {
		return nil, err
	}
	r := &overNodesRun{alone: !env.Decides(overNodes), gatedWorld: gatedWorld{random: kernel.NewRand(env.Seed, forNodes), served: make([]int64, others+clusterNodes)}}
	r.pool = gatedDevice{window: gatedWindow, gap: second / poolIOPS}
	for i := range clusterNodes {
		r.nodes = append(r.nodes, r.newNode(i, policy))
	}
	if !r.alone {
		r.elect()
	}
	r.move()
	return r, nil
}

func (r *overNodesRun) newNode(i int, policy *scheduler.Policy) *simNode {
	const pool = "pool"
	all := func(string) bool { return true }
	n := &simNode{run: r, name: fmt.Sprint("n", i), number: i, device: &scheduler.Device{Name: pool}, node: nodes.Node{Shared: all}}
	config := scheduler.CoordinatorConfig{Threads: threadsOfNode, Monitor: r.monitor()}
	if !r.alone {
		config.Above, config.Foreign = true, all
	}
	if n.coord = scheduler.NewCoordinator(config); !r.alone {
		n.coord.SetNodes(clusterNodes)
	}
	for j := range threadsOfNode {
		w := &gatedThread{run: &r.gatedWorld, device: &r.pool, stays: func(owner int) bool { return r.isOn(owner, i) }}
		w.gate = scheduler.NewGate(j, scheduler.GateConfig{Window: gatedWindow, Threads: threadsOfNode, Nodes: !r.alone})
		w.gate.Apply(policy, 0)
		var queues []*scheduler.Queue
		for owner := range r.served {
			queues = append(queues, w.gate.Open(scheduler.Flow{Initiator: initiatorOf(owner), Target: "t"}, n.device, 0))
		}
		n.threads, n.queues = append(n.threads, w), append(n.queues, queues)
		w.tick()
	}
	n.issue(others + i)
	r.kernel.At(r.random.Int64N(reportEvery), kernel.Redistribution, kernel.Call(n.coordinate), 0)
	return n
}

func (r *overNodesRun) monitor() haechi.MonitorConfig {
	return haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: poolIOPS, Slack: 0.002}}
}

// isOn reports whether an initiator has commands for a node at this time.
func (r *overNodesRun) isOn(owner, node int) bool {
	round := int(r.kernel.Now() / moveEvery)
	switch owner {
	case wanderer:
		return round%clusterNodes == node
	case limited:
		return round%2 == 0 || round/2%clusterNodes == node
	}
	return owner-others == node
}

// move has the initiators begin where they are from now on. What they left behind ends there.
func (r *overNodesRun) move() {
	for _, n := range r.nodes {
		for _, owner := range []int{wanderer, limited} {
			if r.isOn(owner, n.number) {
				n.issue(owner)
			}
		}
	}
	r.kernel.After(moveEvery, kernel.Arrival, r.move)
}

// issue has an initiator keep its commands outstanding on a node that it has come to.
func (n *simNode) issue(owner int) {
	for j, w := range n.threads {
		for range poolDepth / threadsOfNode {
			w.await(&scheduler.Task{Cost: 1, Owner: owner}, n.queues[j][owner], n.run.kernel.Now()+n.run.random.Int64N(turnaround))
		}
	}
}

// collect takes the gates' reports.
func (n *simNode) collect() {
	for _, w := range n.threads {
		var report scheduler.GateReport
		w.gate.Report(&report, n.run.kernel.Now())
		n.coord.Collect(&report)
	}
}

// coordinate is what target's coordinator does every reportEvery.
func (n *simNode) coordinate() {
	r, now := n.run, n.run.kernel.Now()
	n.collect()
	grants := make([]scheduler.GateGrant, threadsOfNode)
	if now >= n.coord.Deadline() {
		n.coord.Redistribute(now, grants)
		n.grant(grants)
	} else if n.coord.Check(now); n.coord.Welcome(now, grants) {
		n.grant(grants)
	}
	next := min(now+reportEvery, max(now+1, n.coord.Deadline()))
	r.kernel.At(next+r.late(), kernel.Redistribution, kernel.Call(n.coordinate), 0)
}

func (n *simNode) grant(grants []scheduler.GateGrant) {
	for j, w := range n.threads {
		n.run.kernel.After(n.run.late(), kernel.Redistribution, func() {
			w.gate.Grant(&grants[j], n.run.kernel.Now())
			w.dispatch()
		})
	}
}

// elect makes a controller, which asks the nodes at once.
func (r *overNodesRun) elect() {
	r.term++
	r.controller = nodes.NewController(nodes.Config{Term: r.term, Estimator: r.monitor().Estimator})
	r.ask(r.controller)
}

// ahead is how long before a grant is due nodes are asked.
const ahead = nodes.Interval / 10

// ask asks all nodes, and deals afterwards.
func (r *overNodesRun) ask(c *nodes.Controller) {
	if c != r.controller {
		return // it has died
	}
	for _, n := range r.nodes {
		a := c.Ask(n.name)
		r.send(func() {
			n.collect()
			answer, err := n.node.Answer(a.Append(nil), r.kernel.Now(), n.coord.Report)
			r.must(err)
			r.send(func() {
				if c == r.controller {
					r.must(c.Hear(n.name, answer, r.kernel.Now()))
				}
			})
		})
	}
	r.kernel.After(ahead, kernel.Redistribution, func() { r.deal(c) })
}

func (r *overNodesRun) deal(c *nodes.Controller) {
	if c != r.controller {
		return
	}
	now, living := r.kernel.Now(), []string{}
	for _, n := range r.nodes {
		living = append(living, n.name)
	}
	c.Deal(now, living)
	for _, n := range r.nodes {
		if slices.Contains(c.Granted(), n.name) {
			message := c.Grant(n.name, now, nil)
			r.send(func() {
				g, err := n.node.Grant(message, r.kernel.Now())
				r.must(err)
				n.coord.Take(g, r.kernel.Now())
				grants := make([]scheduler.GateGrant, threadsOfNode)
				n.coord.Redistribute(r.kernel.Now(), grants)
				n.grant(grants)
			})
		}
	}
	r.kernel.At(c.Deadline()-ahead, kernel.Redistribution, kernel.Call(func() { r.ask(c) }), 0)
}

// send has a message arrive.
func (r *overNodesRun) send(arrive func()) {
	r.kernel.After(messageTime+r.random.Int64N(messageTime), kernel.Redistribution, arrive)
}

// must stops a run in which messages mean nothing, which is a fault of the code.
func (r *overNodesRun) must(err error) {
	if err != nil {
		panic(err)
	}
}

// intervalsOfSecond is how many intervals a second has.
const intervalsOfSecond int64 = second / nodes.Interval

// runOverNodes judges every second that begins with an interval.
func runOverNodes(env *experiment.Env, r *experiment.Result) error {
	g, err := newOverNodes(env)
	if err != nil {
		return err
	}
	seconds := int64(60)
	if env.Reduced {
		seconds = controllerDies + 6
	}
	var served [][]int64 // by interval
	for at := int64(0); at < seconds*intervalsOfSecond; at++ {
		if at == controllerDies*intervalsOfSecond && !g.alone {
			g.controller = nil
			g.kernel.After(controllerGone, kernel.Redistribution, g.elect)
		}
		served = append(served, slices.Clone(g.served))
		g.kernel.Run(g.kernel.Now() + nodes.Interval)
	}
	met, held, heldMeanwhile, total := math.Inf(1), 0.0, 0.0, math.Inf(1)
	const settled, moveIntervals = 2 * intervalsOfSecond, int64(moveEvery) / nodes.Interval
	for end := settled + intervalsOfSecond; end < int64(len(served)); end++ {
		begin := end - intervalsOfSecond
		got := func(i int) float64 { return float64(served[end][i] - served[begin][i]) }
		changes := end > controllerDies*intervalsOfSecond && begin < controllerDies*intervalsOfSecond+int64(controllerGone)/nodes.Interval+4
		if part := got(limited) / poolLimit; changes {
			heldMeanwhile = max(heldMeanwhile, part)
		} else {
			held = max(held, part)
		}
		if begin%moveIntervals >= 2 && end/moveIntervals == begin/moveIntervals && !changes {
			met = min(met, got(wanderer)/poolReserved)
		}
		all := 0.0
		for i := range served[end] {
			all += got(i)
		}
		total = min(total, all/poolIOPS)
	}
	r.Paper(overNodes)
	r.AtLeast("least of the reservation in a second from the second interval after a move", "met", met, 0.98)
	r.AtMost("most of the limit in a second", "held", held, 1.01)
	r.AtMost("most of the limit in a second while the controller changes", "", heldMeanwhile, 1.05)
	r.Model()
	r.AtLeast("least of the pool's rate in a second", "", total, 0.97)
	return nil
}
