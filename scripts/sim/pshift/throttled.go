package pshift

import (
	"math"
	"slices"

	"lunar/scheduler"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// throttle is that of an image of Ceph: tokens come by ticks, and who finds none waits in order,
// whatever is promised to it.
type throttle struct {
	tick    int64 // ns
	each    int64 // tokens of a tick
	most    int64 // tokens that are kept
	latency int64 // ns of a command that need not wait
	at      int64 // the last tick that is counted
	has     int64 // tokens; negative: commands wait for so many
}

func (d *throttle) submit(due int64) int64 {
	if n := (due - d.at) / d.tick; n > 0 {
		d.at += n * d.tick
		d.has = min(d.most, d.has+n*d.each)
	}
	if d.has--; d.has >= 0 {
		return due + d.latency
	}
	return d.at + (d.each-1-d.has)/d.each*d.tick + d.latency
}

// What `make evidence-promises` has, too: an image that lets 1000 commands per second pass, or a
// little less since its ticks come late, and what is promised of it.
const (
	imageIOPS     = 1000
	imageTick     = 10_500_000 // ns, for as much as 10 ms let pass
	imageReserved = 300
	imageLimit    = 450
	imageHeld     = 150
	imageWindow   = 8
	imageDepth    = 32
	imageStays    = 2_500_000_000 // ns between moves, and up to an interval more
	imageRounds   = 24
)

// The initiators of the image.
const (
	promised   = iota // has a reservation and a limit, and asks for all that it gets at one node
	held              // has a limit, and asks at all nodes as the others
	imageUsers = 4
)

// imageRun is an image that three nodes serve.
type imageRun struct {
	clusterRun
	at int // where the promised one is
}

func newImage(env *experiment.Env, busy int) (*imageRun, error) {
	policy, err := scheduler.NewPolicy([]scheduler.Rule{
		{Name: "promised", Initiators: []string{initiatorOf(promised)}, Reservation: scheduler.Rate{IOPS: imageReserved}, Limit: scheduler.Rate{IOPS: imageLimit}},
		{Name: "held", Initiators: []string{initiatorOf(held)}, Limit: scheduler.Rate{IOPS: imageHeld}},
	}, nil, scheduler.Cost{})
	if err != nil {
		return nil, err
	}
	r := &imageRun{}
	r.isOn = func(owner, node int) bool { return owner != promised || node == r.at }
	r.begin(env.Seed, scene{
		policy: policy, pool: &throttle{tick: imageTick, each: imageIOPS / 100, most: imageIOPS, latency: 1_000_000}, capacity: imageIOPS, window: imageWindow,
		users: imageUsers, depth: imageDepth, alone: !env.Decides(overNodes), busy: busy,
	})
	for _, n := range r.nodes {
		for owner := range imageUsers {
			if r.isOn(owner, n.number) {
				n.issue(owner)
			}
		}
	}
	return r, nil
}

// slots of a second, by which what was served is counted.
const slots = 100

// course runs for a time and returns what was served in all at the begin of each slot of it.
func (r *imageRun) course(ns int64) (served [][]int64) {
	for end := r.kernel.Now() + ns; r.kernel.Now() < end; {
		served = append(served, slices.Clone(r.served))
		r.kernel.Run(r.kernel.Now() + second/slots)
	}
	return append(served, slices.Clone(r.served))
}

// seconds calls do with what an initiator got in each second of a course that begins at a slot or
// later.
func seconds(course [][]int64, from, owner int, do func(n float64)) {
	for at := from; at+slots < len(course); at++ {
		do(float64(course[at+slots][owner] - course[at][owner]))
	}
}

// images are what happens to an image.
var images = []struct {
	name    string
	busy    int  // of 100 reports so many are late
	moves   bool // the promised one does
	dies    bool // the controller does, each time
	settled int  // slots after which seconds are judged
}{
	{name: "it stays"},
	{name: "it stays, reports late", busy: 20},
	{name: "it moves", moves: true, settled: slots * 2 / 5},
	{name: "it moves, reports late", busy: 20, moves: true, settled: slots * 2 / 5},
	{name: "it stays, the controller dies", dies: true},
}

// runImage judges any second that begins 400 ms after a move or later, and any where nothing moves.
func runImage(env *experiment.Env, r *experiment.Result) error {
	rounds := imageRounds
	if env.Reduced {
		rounds /= 3
	}
	for i := range images {
		c := &images[i]
		g, err := newImage(env, c.busy)
		if err != nil {
			return err
		}
		g.course(5 * second)
		least, most := math.Inf(1), 0.0
		for range rounds {
			if c.moves {
				g.at = (g.at + 1) % clusterNodes
				g.nodes[g.at].issue(promised)
			}
			if c.dies && !g.alone {
				g.controller = nil
				g.kernel.After(controllerGone, kernel.Redistribution, g.elect)
			}
			course := g.course(imageStays + g.random.Int64N(second/intervalsOfSecond))
			seconds(course, c.settled, promised, func(n float64) { least = min(least, n/imageReserved) })
			seconds(course, 0, promised, func(n float64) { most = max(most, n/imageLimit) })
			seconds(course, 0, held, func(n float64) { most = max(most, n/imageHeld) })
		}
		r.Paper(overNodes)
		r.AtLeast(c.name+": least of the reservation in any second", "met", least, 0.98)
		r.AtMost(c.name+": most of a limit in any second", "held", most, 1.01)
	}
	return nil
}
