package pshift

import (
	"fmt"
	"math"

	"lunar/scheduler/pshift"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// outstanding is the closed-loop window of a bucket at a server.
const outstanding = 5

// newSmall is the size of the experiments with few buckets: full, or a tenth of
// the rate.
func newSmall(env *experiment.Env) *size {
	s := newSize(env)
	s.iops = 50_000
	if env.Reduced {
		s.iops = 5_000
	}
	return s
}

// unit is what a thousand I/Os per second are at this size.
func (s *size) unit() int64 { return s.iops / 50 }

// perSecond converts I/Os of this size to the full size's.
func (s *size) perSecond(n int64) float64 { return float64(n) * 50_000 / float64(s.iops) }

// stairs is experiment 3: bucket i is active on servers 1..i of four.
func (s *size) stairs(limit int64, mode Mode) *Setup {
	setup := &Setup{
		Servers: 4, IOPS: s.iops, Period: second, Intervals: 5, Periods: 1, Outstanding: outstanding, Mode: mode,
	}
	for i := range 4 {
		setup.Buckets = append(setup.Buckets, Bucket{Reservation: 30 * s.unit(), Limit: limit})
		phase := Phase{Bucket: i}
		for j := range i + 1 {
			phase.Servers = append(phase.Servers, j)
		}
		setup.Phases = append(setup.Phases, phase)
	}
	return setup
}

func run3a(env *experiment.Env) (r experiment.Result) {
	s := newSmall(env)
	out := s.simulate(s.stairs(pshift.Unlimited, RoundRobin))
	r.Model() // any server that takes all in turn gives this
	for i, want := range []float64{12_500, 29_166, 54_166, 104_166} {
		r.Near(fmt.Sprintf("B%d", i+1), experiment.Num(want), s.perSecond(out.Done[0][i]), want, 0.005)
	}
	r.Invariants(out.Violations)
	return r
}

func run3b(env *experiment.Env) (r experiment.Result) {
	s := newSmall(env)
	out := s.simulate(s.stairs(200*s.unit(), Shifting))
	reference := []string{"30,000", "34,509", "48,561", "86,930"}
	for i := range out.Done[0] {
		if r.Model(); i < 2 { // the others get as much from round robin
			r.Paper(division)
		}
		r.AtLeast(fmt.Sprintf("B%d", i+1), "≥30,000", s.perSecond(out.Done[0][i]), 29_700)
		r.Note(fmt.Sprintf("B%d against the reference model (%s)", i+1, reference[i]), "", experiment.Num(s.perSecond(out.Done[0][i])), "")
	}
	f := experiment.Figure{Name: "pshift-3b", Title: "pShift 3b: I/Os by interval of 200 ms", X: "interval", Y: "I/Os done"}
	for i := range 4 {
		line := make([]float64, len(out.Progress))
		for k, done := range out.Progress {
			line[k] = s.perSecond(done[i])
		}
		f.Series = append(f.Series, experiment.Line(fmt.Sprintf("B%d", i+1), 1, line))
	}
	r.Figures = append(r.Figures, f)
	r.Invariants(out.Violations)
	return r
}

func run3c(env *experiment.Env) (r experiment.Result) {
	s := newSmall(env)
	out := s.simulate(s.stairs(60*s.unit(), Shifting))
	total := 0.0
	for i, n := range out.Done[0] {
		rate := s.perSecond(n)
		total += rate
		if r.Paper(division); i == 2 { // round robin keeps both, too
			r.Model()
		}
		r.Require(fmt.Sprintf("B%d", i+1), "R and limit hold", "30000..60000", experiment.Num(rate), rate >= 30_000 && rate <= 60_000)
	}
	r.Model()
	r.AtLeast("total", "", total, 190_000)
	r.Invariants(out.Violations)
	return r
}

// moving is experiments 4 and 5: buckets with equal reservations and limits on
// 2 to 6 random servers of eight, each of which moves several times.
type moving struct {
	buckets, periods, changes int
	reserved, limit           int64 // per bucket and period
	zipf                      bool  // reserved is the mean, limits are 1.5 of the reservation
	iops, period              int64
}

func (s *size) moving(m moving, mode Mode) *Setup {
	const servers = 8
	setup := &Setup{
		Servers: servers, IOPS: m.iops, Period: m.period, Intervals: 5, Periods: m.periods, Outstanding: outstanding, Mode: mode,
	}
	places := kernel.NewRand(s.env.Seed, forPlaces)
	var uneven []int64
	if m.zipf {
		uneven = reservations(m.reserved*int64(m.buckets), m.buckets, placeZipf, s.env.Seed)
	}
	for i := range m.buckets {
		b := Bucket{Reservation: m.reserved, Limit: m.limit}
		if m.zipf {
			b.Reservation, b.Limit = uneven[i], uneven[i]*3/2
		}
		setup.Buckets = append(setup.Buckets, b)
		for k := range m.changes + 1 {
			at := int64(0)
			if k > 0 {
				at = 1 + places.Int64N(m.period*int64(m.periods)-1)
			}
			setup.Phases = append(setup.Phases, zipfPhase(places, at, i, servers, 2+places.IntN(5)))
		}
	}
	byTime(setup.Phases)
	return setup
}

// both runs a moving set-up with pShift and round robin.
func (s *size) both(m moving) (setup *Setup, shifted, plain *Outcome) {
	setup = s.moving(m, Shifting)
	return setup, s.simulate(setup), s.simulate(s.moving(m, RoundRobin))
}

func run4a(env *experiment.Env) (r experiment.Result) {
	s := newSmall(env)
	m := moving{buckets: 10, periods: 4, changes: 5, reserved: 30 * s.unit(), limit: 50 * s.unit(), iops: s.iops, period: second}
	setup, shifted, plain := s.both(m)
	wrong := violations(setup, shifted)
	r.Paper(division)
	r.Require("pShift, violations beyond 1 %", "none", "0", fmt.Sprint(wrong), wrong == 0)
	r.Model()
	r.AtLeast("round robin, violations", "buckets 3, 4, 5, 7, 8", float64(violations(setup, plain)), 1)
	f := experiment.Figure{Name: "pshift-4a", Title: "pShift 4a: I/Os per bucket in the first period", X: "bucket", Y: "I/Os"}
	for _, n := range []struct {
		name string
		out  *Outcome
	}{{"pShift", shifted}, {"round robin", plain}} {
		line := make([]float64, len(setup.Buckets))
		for i := range line {
			line[i] = s.perSecond(n.out.Done[0][i])
		}
		f.Series = append(f.Series, experiment.Line(n.name, 1, line))
	}
	r.Figures = append(r.Figures, f)
	r.Invariants(append(shifted.Violations, plain.Violations...))
	return r
}

// violations counts reservations missed and limits exceeded by over 1 %, by
// period and bucket.
func violations(setup *Setup, out *Outcome) int {
	n := 0
	for _, done := range out.Done {
		for i, b := range setup.Buckets {
			if float64(done[i]) < 0.99*float64(b.Reservation) || float64(done[i]) > 1.01*float64(b.Limit) {
				n++
			}
		}
	}
	return n
}

func run4b(env *experiment.Env) (r experiment.Result) {
	s := newSmall(env)
	m := moving{buckets: 200, periods: 4, changes: 5, reserved: 30 * s.unit() / 20, limit: 50 * s.unit() / 20, iops: s.iops, period: second}
	setup, shifted, plain := s.both(m)
	met := 1 - missing(setup, shifted, 0.99)
	r.Paper(division)
	r.Require("pShift, buckets that met R", "99.6 %", "≥99 %", experiment.Percent(met), met >= 0.99)
	exceeded := over(setup, shifted, 1)
	r.Require("pShift, buckets over the limit", "0", "0", experiment.Percent(exceeded), exceeded == 0)
	r.Model()
	const why = "no decision of ours is in it: how the paper's memcached divides a server, and how it counts periods, is not known"
	reached, below := shares(setup, plain)
	r.Claim("no QoS, met R, of buckets and periods", "68.5 %", "±10 points", experiment.Percent(reached), math.Abs(reached-0.685) <= 0.1, why)
	r.Claim("no QoS, under the limit, of buckets and periods", "83.5 %", "±10 points", experiment.Percent(below), math.Abs(below-0.835) <= 0.1, why)
	r.Note("no QoS, buckets that met R in all periods", "", experiment.Percent(1-missing(setup, plain, 0.99)), "of the four periods the worst counts, and each bucket moves five times in them")
	r.Note("no QoS, buckets under the limit in all periods", "", experiment.Percent(1-over(setup, plain, 1)), "")
	r.Invariants(append(shifted.Violations, plain.Violations...))
	return r
}

// shares are the shares of all buckets' periods that met the reservation, and that stayed
// under the limit.
func shares(setup *Setup, out *Outcome) (reached, below float64) {
	n := 0.0
	for _, done := range out.Done {
		for i, b := range setup.Buckets {
			n++
			if float64(done[i]) >= 0.99*float64(b.Reservation) {
				reached++
			}
			if done[i] <= b.Limit {
				below++
			}
		}
	}
	return reached / n, below / n
}

// run5 is small at both sizes.
func run5(env *experiment.Env) (r experiment.Result) {
	s := newSize(env)
	m := moving{buckets: 200, periods: 2, changes: 2, reserved: 160, zipf: true, iops: 1000, period: 5 * second}
	setup := s.moving(m, Shifting)
	out := s.simulate(setup)
	missed := missing(setup, out, 0.99)
	r.Paper(division)
	r.Require("buckets that miss R by over 1 %", "0.5 %", "≤1 %", experiment.Percent(missed), missed <= 0.01)
	exceeded := over(setup, out, 1)
	r.Claim("buckets over the limit", "0", "0", experiment.Percent(exceeded), exceeded == 0,
		"by one I/O: old tokens hold for 1.8 ms after the last reports of a period, and the smallest limits are of 73 I/Os")
	r.Invariants(out.Violations)
	return r
}
