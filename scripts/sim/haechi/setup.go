package haechi

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"lunar/scheduler"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// Times per I/O in ns at full rates.
const (
	oneSidedClient = 2_500 // 400 KIOPS
	oneSidedServer = 637   // 1570 KIOPS
	twoSidedClient = 3_058 // 327 KIOPS
	twoSidedServer = 2_342 // 427 KIOPS
)

// hosts is the number of clients.
const hosts = 10

// pairZipf is the exponent of the Zipf reservations, which pairs share.
const pairZipf = 0.6

// scale is the size of a run: reduced runs divide all rates and B by ten, as
// algorithms.md allows for tests, and are shorter.
type scale struct {
	env    *experiment.Env
	log    *experiment.Log
	divide int64
}

func newScale(env *experiment.Env) *scale {
	s := &scale{env: env, log: experiment.NewLog(env.Log), divide: 1}
	if env.Reduced {
		s.divide = 10
	}
	return s
}

// kilo is thousands of I/Os per period of the full size, in I/Os of this size.
func (s *scale) kilo(k float64) int64 { return int64(k * 1000 / float64(s.divide)) }

// toKilo is the reverse of kilo for a mean.
func (s *scale) toKilo(ios float64) float64 { return ios * float64(s.divide) / 1000 }

// setup is a one-sided cluster with the given clients.
func (s *scale) setup(clients []Client) *Setup {
	warmup, periods := 2, 8
	if s.env.Reduced {
		warmup, periods = 1, 2
	}
	return &Setup{
		Clients: clients, ClientCost: oneSidedClient * s.divide, ServerCost: oneSidedServer * s.divide,
		Batch: 1000 / s.divide, QoS: true, Arbitration: scheduler.ReservedFirst, LocalCap: true,
		Warmup: warmup, Periods: periods, Log: s.log,
	}
}

// served is a set-up with the server's composition and its defaults.
func (s *scale) served(clients []Client) *Setup {
	setup := s.setup(clients)
	setup.Served, setup.Adaptive = true, true
	return setup
}

// wide is a set-up of the server with more commands under way than it has by default.
func wide(setup *Setup) *Setup {
	setup.Window = wideWindow
	return setup
}

// tooFew is why the server's default leaves a part of the paper's node idle.
const tooFew = "32 commands under way are too few for 1.57 M/s where they count until their data have arrived; see the row with window 256"

// basic is a set-up in which what a reservation leaves is lost.
func basic(setup *Setup) *Setup {
	setup.Basic = true
	return setup
}

// equal is a set-up whose node serves the clients in turn. Engines keep what
// they cannot use any more: with ξ ≤ (T−t)·C_L a client that falls behind
// loses exactly the tokens that it is late with, as in mode literal.
func (s *scale) equal(clients []Client) *Setup {
	setup := s.setup(clients)
	setup.Arbitration, setup.LocalCap = scheduler.EqualShare, false
	return setup
}

// capacity is C_G in I/Os per period.
func (s *scale) capacity() int64 { return second / (oneSidedServer * s.divide) }

// reservations divides a share of the capacity over the hosts: evenly, or by
// Zipf with two hosts of each rank.
func (s *scale) reservations(share float64, zipf bool) []int64 {
	weights := make([]float64, 0, hosts)
	exponent := 0.0
	if zipf {
		exponent = pairZipf
	}
	for _, w := range kernel.ZipfWeights(hosts/2, exponent) {
		weights = append(weights, w, w)
	}
	return kernel.Shares(int64(share*float64(s.capacity())), weights)
}

// greedy is ten clients that ask, each period at once, for their reservation
// and the whole initial pool, or for a share of the reservation if shares has
// one for them.
func (s *scale) greedy(reservations []int64, shares ...float64) []Client {
	pool := s.capacity()
	for _, r := range reservations {
		pool -= r
	}
	clients := make([]Client, len(reservations))
	for i, r := range reservations {
		clients[i] = Client{Reservation: r, Demand: r + pool, Pattern: Burst}
		if i < len(shares) {
			clients[i].Demand = int64(shares[i] * float64(r))
		}
	}
	return clients
}

// simulate runs a set-up; the log is complete when it returns.
func (s *scale) simulate(setup *Setup) *Outcome {
	switch s.env.Stub {
	case gating:
		setup.QoS = setup.QoS && !setup.Served
	case arbitrating:
		if setup.Arbitration == scheduler.ReservedFirst && !setup.Served {
			setup.QoS, setup.Arbitration = false, scheduler.EqualShare
		}
	case converting:
		setup.Basic = true
	case estimating:
		setup.Adaptive = false
	}
	out := Simulate(setup)
	if err := s.log.Flush(); err != nil {
		out.Violations = append(out.Violations, "the decision log could not be written: "+err.Error())
	}
	return out
}

// means returns each client's I/Os per period.
func (o *Outcome) means() []float64 {
	means := make([]float64, len(o.Done[0]))
	for _, period := range o.Done {
		for i, n := range period {
			means[i] += float64(n) / float64(len(o.Done))
		}
	}
	return means
}

// total returns all clients' I/Os per period.
func (o *Outcome) total() float64 { return sum(o.means()) }

// totals returns all clients' I/Os of each period.
func (o *Outcome) totals() []float64 {
	totals := make([]float64, len(o.Done))
	for p, period := range o.Done {
		for _, n := range period {
			totals[p] += float64(n)
		}
	}
	return totals
}

// series returns one client's I/Os of each period.
func (o *Outcome) series(client int) []float64 {
	series := make([]float64, len(o.Done))
	for p, period := range o.Done {
		series[p] = float64(period[client])
	}
	return series
}

// attainment is the lowest N/R of any client in any period.
func (o *Outcome) attainment(clients []Client) float64 {
	lowest := 1e9
	for _, period := range o.Done {
		for i, n := range period {
			if r := clients[i].Reservation; r > 0 {
				lowest = min(lowest, float64(n)/float64(r))
			}
		}
	}
	return lowest
}

// merged is the latency histogram of all clients together.
func (o *Outcome) merged() *hdrhistogram.Histogram {
	all := hdrhistogram.New(1_000, maxTime, 3)
	for _, h := range o.Latency {
		all.Merge(h)
	}
	return all
}

func sum(values []float64) float64 {
	s := 0.0
	for _, v := range values {
		s += v
	}
	return s
}

// kilos converts I/Os of this size to thousands at full size.
func (s *scale) kilos(values []float64) []float64 {
	k := slices.Clone(values)
	for i := range k {
		k[i] = s.toKilo(k[i])
	}
	return k
}
