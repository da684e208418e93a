package pshift

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"lunar/scheduler/pshift"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// placeZipf is the exponent of a bucket's demand over its active servers.
const placeZipf = 0.5

// Purposes of the generators, apart from the servers' own.
const (
	forReservations uint64 = 1<<32 + iota
	forPlaces
	forDemand
	forGates
	forNodes
)

// size is the cluster of the simulated experiments.
type size struct {
	env     *experiment.Env
	log     *experiment.Log
	servers int
	buckets int
	iops    int64
}

// newSize returns 64 servers with 10,000 buckets, or if reduced 16 servers with
// 2,000 buckets.
func newSize(env *experiment.Env) *size {
	s := &size{env: env, log: experiment.NewLog(env.Log), servers: 64, buckets: 10_000, iops: 20_000}
	if env.Reduced {
		s.servers, s.buckets = 16, 2_000
	}
	return s
}

// simulate runs a set-up; the log is complete when it returns.
func (s *size) simulate(setup *Setup) *Outcome {
	setup.Seed, setup.Log = s.env.Seed, s.log
	if setup.Mode == Shifting && !s.env.Decides(division) {
		plain := *setup
		plain.Mode = RoundRobin
		setup = &plain
	}
	out := Simulate(setup)
	if err := s.log.Flush(); err != nil {
		out.Violations = append(out.Violations, "the decision log could not be written: "+err.Error())
	}
	return out
}

// reservations divides total over n buckets whose weights are drawn from the
// Zipf weights by Zipf probability.
func reservations(total int64, n int, exponent float64, seed uint64) []int64 {
	r := kernel.NewRand(seed, forReservations)
	ranks := kernel.ZipfWeights(n, exponent)
	draw := kernel.NewDraw(ranks)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = ranks[draw.Next(r)]
	}
	return kernel.Shares(total, weights)
}

// zipfPhase is a phase on random servers with Zipf shares.
func zipfPhase(r *rand.Rand, at int64, bucket, servers, active int) Phase {
	shares := kernel.ZipfWeights(active, placeZipf)
	sum := 0.0
	for _, w := range shares {
		sum += w
	}
	for k := range shares {
		shares[k] /= sum
	}
	return Phase{At: at, Bucket: bucket, Servers: r.Perm(servers)[:active], Shares: shares}
}

// byTime sorts phases by time, equal times as they are.
func byTime(phases []Phase) []Phase {
	slices.SortStableFunc(phases, func(a, b Phase) int { return cmp.Compare(a.At, b.At) })
	return phases
}

// open is the set-up of experiments 1 and 2: all capacity reserved, Zipf
// reservations, demand of 1.5 R over active servers, which change; changes
// tells how often for each bucket. seed chooses the workload.
func (s *size) open(active int, changes func(*rand.Rand) int, seed uint64) *Setup {
	const period = 5 * second
	setup := &Setup{Servers: s.servers, IOPS: s.iops, Period: period, Intervals: 5, Periods: 1}
	places := kernel.NewRand(seed, forPlaces)
	total := int64(s.servers) * s.iops * period / second
	for i, reserved := range reservations(total, s.buckets, 0.5, seed) {
		setup.Buckets = append(setup.Buckets, Bucket{Reservation: reserved, Limit: pshift.Unlimited, Demand: reserved * 3 / 2})
		setup.Phases = append(setup.Phases, zipfPhase(places, 0, i, s.servers, active))
		for range changes(places) {
			at := 1 + places.Int64N(period-1)
			setup.Phases = append(setup.Phases, zipfPhase(places, at, i, s.servers, active))
		}
	}
	byTime(setup.Phases)
	return setup
}

// instance is the workload of the static experiments as pShift's problem at a
// period's start: r of the capacity is reserved, demand is m times the
// reservation on eight active servers.
func instance(servers, buckets int, capacity int64, r, m, exponent float64, seed uint64) (*pshift.Instance, []int64) {
	const active = 8
	p := pshift.NewInstance(buckets, servers)
	places := kernel.NewRand(seed, forDemand)
	budget := reservations(int64(r*float64(capacity)*float64(servers)), buckets, exponent, seed)
	for j := range p.Capacity {
		p.Capacity[j] = capacity
	}
	for i, reserved := range budget {
		phase := zipfPhase(places, 0, i, servers, active)
		for k, d := range kernel.Shares(int64(m*float64(reserved)+0.5), phase.Shares) {
			p.Demand[i*servers+phase.Servers[k]] = d
		}
	}
	return p, budget
}

// missing is the share of buckets with less than least of their reservation in
// any period.
func missing(setup *Setup, out *Outcome, least float64) float64 {
	missed := 0
	for i, b := range setup.Buckets {
		for _, done := range out.Done {
			if float64(done[i]) < least*float64(b.Reservation) {
				missed++
				break
			}
		}
	}
	return float64(missed) / float64(len(setup.Buckets))
}

// over is the share of buckets with more than most of their limit in any period.
func over(setup *Setup, out *Outcome, most float64) float64 {
	n := 0
	for i, b := range setup.Buckets {
		for _, done := range out.Done {
			if float64(done[i]) > most*float64(b.Limit) {
				n++
				break
			}
		}
	}
	return float64(n) / float64(len(setup.Buckets))
}
