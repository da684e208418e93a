package pshift

import (
	"fmt"
	"math"
	"math/rand/v2"

	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// gatedIOPS is the rate of each device, gatedWindow the commands that it needs at
// once to reach it.
const (
	gatedIOPS   = 2000
	gatedWindow = 16
)

// gatedDepth is what an initiator keeps outstanding on each device.
const gatedDepth = 64

const (
	reportEvery = 20_000_000 // ns between reports of the gates
	tickEvery   = 1_000_000  // ns between their ticks
	turnaround  = 200_000    // ns from a response to the next command, and up to as much again
	seldom      = 50         // one wake-up in so many is late by up to longLate, the others by up to late
	lateness    = 100_000    // ns
	longLate    = 3_000_000  // ns
)

// gated is experiment 3c as the server runs it: the real gates and the real
// coordinator over devices that take a window of commands at once, and event
// threads that are woken late, as on a machine that has other things to do.
type gated struct {
	gatedWorld
	coord   *scheduler.Coordinator
	threads []*gatedThread
}

// gatedWorld is what event threads have in common.
type gatedWorld struct {
	kernel kernel.Kernel
	random *rand.Rand
	served []int64 // by initiator
}

// device is what event threads give commands.
type device interface {
	// submit returns when a command ends that could have come when it was due.
	submit(due int64) int64
}

// gatedDevice takes a window of commands at once, and ends one each gap.
type gatedDevice struct {
	window, gap int64
	last        int64 // end of the last command that it has
}

func (d *gatedDevice) submit(due int64) int64 {
	d.last = max(d.last, due+(d.window-1)*d.gap) + d.gap
	return d.last
}

// gatedThread is an event thread with its device.
type gatedThread struct {
	run     *gatedWorld
	gate    *scheduler.Gate
	device  device
	stays   func(owner int) bool // reports whether an initiator has its next command come here, too
	due     int64                // when the pass that runs should have come
	running []inDevice
	coming  []coming
	armed   int64 // when the timer fires, 0: it does not
	timer   int64 // number of the last one that was set
}

// inDevice is a command that ends at a time, coming one that arrives then.
type inDevice struct {
	task *scheduler.Task
	at   int64
}

type coming struct {
	task  *scheduler.Task
	queue *scheduler.Queue
	at    int64
}

// initiatorOf numbers the initiators by their names.
func initiatorOf(i int) string { return fmt.Sprintf("iqn.c%d", i) }

// newGated sets it up: initiator i uses devices 0 to i. The profile is what is known
// of each device, 0 nothing.
func newGated(env *experiment.Env, rule scheduler.Rule, profile int64) (*gated, error) {
	rule.Initiators = []string{"*"}
	policy, err := scheduler.NewPolicy([]scheduler.Rule{rule}, nil, scheduler.Cost{})
	if err != nil {
		return nil, err
	}
	const threads = 4
	r := &gated{gatedWorld: gatedWorld{random: kernel.NewRand(env.Seed, forGates), served: make([]int64, threads)}}
	r.coord = scheduler.NewCoordinator(scheduler.CoordinatorConfig{Threads: threads,
		Monitor: haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: profile, Slack: 0.002}}})
	for j := range threads {
		w := &gatedThread{
			run: &r.gatedWorld, gate: scheduler.NewGate(j, scheduler.GateConfig{Window: gatedWindow, Threads: threads}),
			device: &gatedDevice{window: gatedWindow, gap: second / gatedIOPS}, stays: func(int) bool { return true },
		}
		if env.Decides(gating) { // without rules a gate lets all pass
			w.gate.Apply(policy, 0)
		}
		device := &scheduler.Device{Name: fmt.Sprint(j)}
		for i := j; i < threads; i++ {
			q := w.gate.Open(scheduler.Flow{Initiator: initiatorOf(i), Target: "t"}, device, 0)
			for range gatedDepth {
				w.await(&scheduler.Task{Cost: 1, Owner: i}, q, r.random.Int64N(turnaround))
			}
		}
		r.threads = append(r.threads, w)
		w.tick()
	}
	r.kernel.At(0, kernel.Redistribution, kernel.Call(r.coordinate), 0)
	return r, nil
}

// seconds runs so many and returns what each initiator got in each.
func (r *gated) seconds(n int) (each [][]int64) {
	for range n {
		before := append([]int64(nil), r.served...)
		r.kernel.Run(r.kernel.Now() + second)
		for i := range before {
			before[i] = r.served[i] - before[i]
		}
		each = append(each, before)
	}
	return each
}

// coordinate takes all reports, hands out what follows from them, and comes
// again.
func (r *gated) coordinate() {
	now := r.kernel.Now()
	for _, w := range r.threads {
		var report scheduler.GateReport
		w.gate.Report(&report, now)
		r.coord.Collect(&report)
	}
	grants := make([]scheduler.GateGrant, len(r.threads))
	if now >= r.coord.Deadline() {
		r.coord.Redistribute(now, grants)
		r.grant(grants)
	} else if r.coord.Check(now); r.coord.Welcome(now, grants) {
		r.grant(grants)
	}
	next := min(now+reportEvery, max(now+1, r.coord.Deadline()))
	r.kernel.At(next+r.late(), kernel.Redistribution, kernel.Call(r.coordinate), 0)
}

func (r *gated) grant(grants []scheduler.GateGrant) {
	for j, w := range r.threads {
		r.kernel.After(r.late(), kernel.Redistribution, func() {
			w.gate.Grant(&grants[j], r.kernel.Now())
			w.dispatch()
		})
	}
}

// late is how late a wake-up comes.
func (r *gatedWorld) late() int64 {
	if r.random.IntN(seldom) == 0 {
		return r.random.Int64N(longLate)
	}
	return r.random.Int64N(lateness)
}

// await lets a command arrive at a time.
func (w *gatedThread) await(t *scheduler.Task, q *scheduler.Queue, at int64) {
	w.coming = append(w.coming, coming{t, q, at})
	w.run.kernel.At(at+w.run.late(), kernel.Arrival, kernel.Call(w.pass), 0)
}

// arm sets the timer to when the next command ends or a limit lets one pass.
func (w *gatedThread) arm() {
	at := int64(math.MaxInt64)
	if len(w.running) > 0 {
		at = w.running[0].at
	}
	if w.gate.Waiting() > 0 {
		at = min(at, w.gate.Wake())
	}
	if at == math.MaxInt64 || at == w.armed {
		return
	}
	w.timer++
	w.armed = at
	number := w.timer
	w.run.kernel.At(max(at, w.run.kernel.Now())+w.run.late(), kernel.Completion, kernel.Call(func() {
		if number == w.timer {
			w.armed = 0
			w.pass()
		}
	}), 0)
}

// pass takes what has arrived and what the device has done.
func (w *gatedThread) pass() {
	now := w.run.kernel.Now()
	w.due = now
	if len(w.running) > 0 {
		w.due = min(now, w.running[0].at)
	}
	waiting := w.coming[:0]
	for _, c := range w.coming {
		switch {
		case c.at > now:
			waiting = append(waiting, c)
		case w.gate.Admit(c.queue, c.task, now):
			w.submit(c.task)
		}
	}
	w.coming = waiting
	for len(w.running) > 0 && w.running[0].at <= now {
		t := w.running[0].task
		w.running = w.running[1:]
		w.gate.Done(t, now)
		owner := t.Owner.(int)
		if w.run.served[owner]++; !w.stays(owner) {
			continue
		}
		w.await(t, t.Queue(), now+turnaround+w.run.random.Int64N(turnaround))
	}
	w.dispatch()
}

// dispatch gives the device what may run.
func (w *gatedThread) dispatch() {
	now := w.run.kernel.Now()
	for t := w.gate.Next(now); t != nil; t = w.gate.Next(now) {
		w.submit(t)
	}
	w.arm()
}

// submit gives a command to the device, which has lost nothing by a pass that
// came late.
func (w *gatedThread) submit(t *scheduler.Task) {
	w.running = append(w.running, inDevice{t, w.device.submit(w.due)})
}

func (w *gatedThread) tick() {
	now := w.run.kernel.Now()
	w.due = now
	w.gate.Tick(now)
	w.dispatch()
	w.run.kernel.After(tickEvery+w.run.late(), kernel.TokenTick, w.tick)
}

// run3cGates judges each second but the first ones, in which the devices become
// known.
func run3cGates(env *experiment.Env, r *experiment.Result) error {
	const reserved, limit, least = gatedIOPS * 30 / 50, gatedIOPS * 60 / 50, 0.97
	for _, c := range []struct {
		name    string
		profile int64
		skip    int
	}{{"capacity known", gatedIOPS, 1}, {"capacity learnt", 0, 4}} {
		g, err := newGated(env, scheduler.Rule{Reservation: scheduler.Rate{IOPS: reserved}, Limit: scheduler.Rate{IOPS: limit}}, c.profile)
		if err != nil {
			return err
		}
		low, high, total := int64(math.MaxInt64), int64(0), int64(math.MaxInt64)
		for _, each := range g.seconds(12)[c.skip:] {
			sum := int64(0)
			for _, n := range each {
				low, high, sum = min(low, n), max(high, n), sum+n
			}
			total = min(total, sum)
		}
		r.Paper(gating)
		r.AtLeast(c.name+": least of a reservation in a second", "met", float64(low)/reserved, 0.98)
		r.AtMost(c.name+": most of a limit in a second", "held", float64(high)/limit, 1.01)
		r.Model()
		r.AtLeast(c.name+": least of all devices' rate in a second", "", float64(total)/(4*gatedIOPS), least)
	}
	return nil
}
