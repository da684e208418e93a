package pshift

import (
	"math"
	"slices"

	"lunar/scheduler"
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

// overNodesRun is initiators that wander over the nodes.
type overNodesRun struct{ clusterRun }

func newOverNodes(env *experiment.Env) (*overNodesRun, error) {
	policy, err := scheduler.NewPolicy([]scheduler.Rule{
		{Name: "moving", Initiators: []string{initiatorOf(wanderer)}, Reservation: scheduler.Rate{IOPS: poolReserved}},
		{Name: "limited", Initiators: []string{initiatorOf(limited)}, Limit: scheduler.Rate{IOPS: poolLimit}},
	}, nil, scheduler.Cost{})
	if err != nil {
		return nil, err
	}
	r := &overNodesRun{}
	r.isOn = r.wanders
	r.begin(env.Seed, scene{
		policy: policy, pool: &gatedDevice{window: gatedWindow, gap: second / poolIOPS}, capacity: poolIOPS, window: gatedWindow,
		users: others + clusterNodes, depth: poolDepth, alone: !env.Decides(overNodes),
	})
	for i, n := range r.nodes {
		n.issue(others + i)
	}
	r.move()
	return r, nil
}

// wanders reports whether an initiator has commands for a node at this time.
func (r *overNodesRun) wanders(owner, node int) bool {
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
