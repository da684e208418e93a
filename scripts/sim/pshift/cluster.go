package pshift

import (
	"fmt"
	"slices"

	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/scheduler/nodes"
	"lunar/scripts/sim/kernel"
)

const (
	clusterNodes  = 3
	threadsOfNode = 2
	messageTime   = 500_000 // ns that a message between nodes takes, and up to as much again
)

// scene is what nodes of a cluster serve, and to whom.
type scene struct {
	policy   *scheduler.Policy
	pool     device // which all nodes use at once
	capacity int64  // that is configured, tokens/s
	window   int
	users    int // initiators
	depth    int // what an initiator keeps outstanding on a node where it is
	alone    bool
	busy     int // of 100 reports so many come late by lateReport
}

// lateReport is what a report may be late by where machines are busy, ns: more than nodes are
// asked ahead, and less than dealing waits.
const lateReport = 40_000_000

// clusterRun is some nodes and the controller of what is promised over all of them.
type clusterRun struct {
	gatedWorld
	scene
	isOn       func(owner, node int) bool // reports whether an initiator has commands for a node now
	nodes      []*simNode
	controller *nodes.Controller
	term       uint64
}

// simNode is a node: its coordinator, and gates on one device that all nodes use.
type simNode struct {
	run     *clusterRun
	name    string
	number  int
	coord   *scheduler.Coordinator
	device  *scheduler.Device
	node    nodes.Node
	threads []*gatedThread
	queues  [][]*scheduler.Queue // by thread and initiator
}

// begin has the nodes and their controller be there.
func (r *clusterRun) begin(seed uint64, s scene) {
	r.scene, r.gatedWorld = s, gatedWorld{random: kernel.NewRand(seed, forNodes), served: make([]int64, s.users)}
	for i := range clusterNodes {
		r.nodes = append(r.nodes, r.newNode(i))
	}
	if !r.alone {
		r.elect()
	}
}

func (r *clusterRun) newNode(i int) *simNode {
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
		w := &gatedThread{run: &r.gatedWorld, device: r.pool, stays: func(owner int) bool { return r.isOn(owner, i) }}
		w.gate = scheduler.NewGate(j, scheduler.GateConfig{Window: r.window, Threads: threadsOfNode, Nodes: !r.alone})
		w.gate.Apply(r.policy, 0)
		var queues []*scheduler.Queue
		for owner := range r.served {
			queues = append(queues, w.gate.Open(scheduler.Flow{Initiator: initiatorOf(owner), Target: "t"}, n.device, 0))
		}
		n.threads, n.queues = append(n.threads, w), append(n.queues, queues)
		w.tick()
	}
	r.kernel.At(r.random.Int64N(reportEvery), kernel.Redistribution, kernel.Call(n.coordinate), 0)
	return n
}

func (r *clusterRun) monitor() haechi.MonitorConfig {
	return haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: r.capacity, Slack: 0.002}}
}

// issue has an initiator keep its commands outstanding on a node that it has come to.
func (n *simNode) issue(owner int) {
	for j, w := range n.threads {
		for range n.run.depth / threadsOfNode {
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
func (r *clusterRun) elect() {
	r.term++
	r.controller = nodes.NewController(nodes.Config{Term: r.term, Estimator: r.monitor().Estimator})
	r.ask(r.controller)
}

const (
	// ahead is how long before a grant is due nodes are asked.
	ahead = nodes.Interval / 10
	// waits is for how long after that dealing waits for answers, and looksEvery how often it looks.
	waits      = nodes.Interval * 3 / 10
	looksEvery = 1_000_000
)

// ask asks all nodes, and deals afterwards.
func (r *clusterRun) ask(c *nodes.Controller) {
	if c != r.controller {
		return // it has died
	}
	for _, n := range r.nodes {
		a := c.Ask(n.name)
		r.send(func() {
			n.collect()
			answer, err := n.node.Answer(a.Append(nil), r.kernel.Now(), n.coord.Report)
			r.must(err)
			r.kernel.After(r.lateness(), kernel.Redistribution, func() {
				r.send(func() {
					if c == r.controller {
						r.must(c.Hear(n.name, answer, r.kernel.Now()))
					}
				})
			})
		})
	}
	due := r.kernel.Now() + ahead
	r.kernel.At(due, kernel.Redistribution, kernel.Call(func() { r.deal(c, due+waits) }), 0)
}

// lateness is how late a report is sent.
func (r *clusterRun) lateness() int64 {
	if r.busy > 0 && r.random.IntN(100) < r.busy {
		return r.random.Int64N(2 * lateReport)
	}
	return 0
}

// deal deals when all have answered, or at a time.
func (r *clusterRun) deal(c *nodes.Controller, latest int64) {
	if c != r.controller {
		return
	}
	now, living := r.kernel.Now(), []string{}
	if c.Awaits() && now < latest {
		r.kernel.After(looksEvery, kernel.Redistribution, func() { r.deal(c, latest) })
		return
	}
	for _, n := range r.nodes {
		living = append(living, n.name)
	}
	c.Deal(now, living)
	for _, n := range r.nodes {
		if slices.Contains(c.Granted(), n.name) {
			message := c.Grant(n.name, now, nil)
			r.send(func() { n.obey(message) })
		}
	}
	r.kernel.At(c.Deadline()-ahead, kernel.Redistribution, kernel.Call(func() { r.ask(c) }), 0)
}

// obey puts a grant into force.
func (n *simNode) obey(message []byte) {
	now := n.run.kernel.Now()
	g, err := n.node.Grant(message, now)
	n.run.must(err)
	n.coord.Take(g, now)
	grants := make([]scheduler.GateGrant, threadsOfNode)
	n.coord.Redistribute(now, grants)
	n.grant(grants)
}

// send has a message arrive.
func (r *clusterRun) send(arrive func()) {
	r.kernel.After(messageTime+r.random.Int64N(messageTime), kernel.Redistribution, arrive)
}

// must stops a run in which messages mean nothing, which is a fault of the code.
func (r *clusterRun) must(err error) {
	if err != nil {
		panic(err)
	}
}
