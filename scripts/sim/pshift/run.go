// Package pshift simulates pShift's cluster around the real dispatchers and the
// real controller of lunar/scheduler: servers that serve one I/O at a time, and
// buckets whose demand is spread over some servers and moves.
package pshift

import (
	"fmt"

	"lunar/scheduler/pshift"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// second is in ns.
const second = int64(1_000_000_000)

// controllerDelay is the time in ns from the servers' reports to the new
// tokens; servers use their old tokens meanwhile.
const controllerDelay = 1_800_000

// arrivalTick is the step in ns in which open-loop requests arrive.
const arrivalTick = 10_000_000

// maxViolations is how many broken invariants a run describes.
const maxViolations = 10

// Bucket is what one bucket is promised and allowed, I/Os per period.
type Bucket struct {
	Reservation int64
	Limit       int64 // pshift.Unlimited is none
	Demand      int64 // open loop: requests per period; 0 is closed loop
}

// Phase is where a bucket's demand goes from a time on.
type Phase struct {
	At      int64 // ns
	Bucket  int
	Servers []int
	Shares  []float64 // of the demand, open loop; they add up to 1
}

// Mode says who gives out the tokens.
type Mode uint8

// The modes.
const (
	Shifting   Mode = iota // pShift's controller
	MaxFlow                // bQueue's: a maximum flow each time, reservations only
	RoundRobin             // no QoS
)

// Setup is one run.
type Setup struct {
	Servers     int
	IOPS        int64 // of a server
	Period      int64 // ns
	Intervals   int64 // redistributions per period
	Periods     int
	Buckets     []Bucket
	Phases      []Phase // in order of time; each bucket has one at 0
	Outstanding int64   // closed loop: per bucket and server
	Mode        Mode
	Seed        uint64
	Log         *experiment.Log
}

// Outcome is what a run measured.
type Outcome struct {
	Done       [][]int64 // I/Os by period and bucket
	Progress   [][]int64 // first period: I/Os done by the end of each interval, by bucket
	Violations []string
}

// run is the state of one simulation.
type run struct {
	setup      *Setup
	kernel     kernel.Kernel
	servers    []*server
	buckets    []*bucket
	controller *pshift.Controller
	period     int
	interval   int64 // of the period
	out        Outcome
}

// What the events of a run mean; a phase is firstPhase and its index.
const (
	redistribute int32 = iota
	apply
	arrivals
	firstPhase
)

// Simulate makes one run.
func Simulate(setup *Setup) *Outcome {
	r := &run{setup: setup, period: -1, controller: pshift.NewController(len(setup.Buckets), setup.Servers)}
	for j := range setup.Servers {
		r.servers = append(r.servers, newServer(r, j))
	}
	open := false
	for i, spec := range setup.Buckets {
		r.buckets = append(r.buckets, &bucket{run: r, id: i, spec: spec, pairs: make([]*pair, setup.Servers)})
		r.controller.Reservation[i], r.controller.Limit[i] = spec.Reservation, spec.Limit
		open = open || spec.Demand > 0
	}
	for i := range setup.Phases {
		if at := setup.Phases[i].At; at > 0 {
			r.kernel.At(at, kernel.Arrival, r, firstPhase+int32(i))
		} else {
			r.enter(&setup.Phases[i], 0)
		}
	}
	if open {
		r.kernel.At(arrivalTick, kernel.Arrival, r, arrivals)
	}
	r.kernel.At(0, kernel.Redistribution, r, redistribute)
	r.kernel.Run(int64(setup.Periods)*setup.Period - 1)
	r.endInterval()
	r.endPeriod()
	r.balance()
	return &r.out
}

// Fire runs an event of the cluster.
func (r *run) Fire(now int64, what int32) {
	switch what {
	case redistribute:
		r.redistribute(now)
	case apply:
		r.apply(now)
	case arrivals:
		for _, b := range r.buckets {
			b.generate(now)
		}
		r.kernel.At(now+arrivalTick, kernel.Arrival, r, arrivals)
	default:
		r.enter(&r.setup.Phases[what-firstPhase], now)
	}
}

// enter moves a bucket's demand.
func (r *run) enter(p *Phase, now int64) { r.buckets[p.Bucket].enter(p, now) }

// redistribute begins an interval: the servers report, the controller computes.
// Tokens of a period's first interval are there at its start, for the
// controller can compute them before.
func (r *run) redistribute(now int64) {
	if now > 0 {
		r.endInterval()
	}
	r.interval++
	if r.period < 0 || r.interval == r.setup.Intervals {
		r.turn(now)
	}
	r.kernel.At(now+r.setup.Period/r.setup.Intervals, kernel.Redistribution, r, redistribute)
	if r.setup.Mode == RoundRobin {
		r.resetInterval()
		return
	}
	r.snapshot()
	r.compute()
	if r.interval == 0 {
		r.apply(now)
	} else {
		r.kernel.At(now+controllerDelay, kernel.Redistribution, r, apply)
	}
}

// turn ends a period and begins the next.
func (r *run) turn(now int64) {
	if r.period >= 0 {
		r.endPeriod()
	}
	r.period++
	r.interval = 0
	for _, b := range r.buckets {
		b.beginPeriod(now)
	}
}

func (r *run) endInterval() {
	if r.period > 0 {
		return
	}
	progress := make([]int64, len(r.buckets))
	for i, b := range r.buckets {
		progress[i] = b.done
	}
	r.out.Progress = append(r.out.Progress, progress)
}

func (r *run) endPeriod() {
	done := make([]int64, len(r.buckets))
	for i, b := range r.buckets {
		done[i] = b.done
		if r.setup.Mode != RoundRobin && b.spec.Limit != pshift.Unlimited && b.issued > b.spec.Limit+b.owed() {
			r.violate("period %d: bucket %d issued %d I/Os, limit %d and %d of old tokens", r.period, i+1, b.issued, b.spec.Limit, b.owed())
		}
	}
	r.out.Done = append(r.out.Done, done)
}

func (r *run) violate(format string, args ...any) {
	if len(r.out.Violations) < maxViolations {
		r.out.Violations = append(r.out.Violations, fmt.Sprintf(format, args...))
	}
}
