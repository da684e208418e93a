// Package haechi simulates Haechi's cluster around the real engines, dispatcher
// and monitor of lunar/scheduler: ten clients with a NIC each and one data node
// that serves one I/O at a time. As in the server, the engines and the
// dispatcher sit at the node, for initiators cannot be changed.
package haechi

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"

	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// tick is δ, the check and the report interval, in ns.
const tick = second / 1000

// estimatorWindow is M; estimatorSlack is the share of Ω that a period may
// miss and still count as using all of it. η is 1 % of the profile.
const (
	estimatorWindow = 5
	estimatorSlack  = 0.002
)

// maxViolations is how many broken invariants a run describes.
const maxViolations = 10

// Client is one client of a set-up. Rates are I/Os per period.
type Client struct {
	Reservation int64
	Demand      int64
	Pattern     Pattern
}

// Background is other load on the data node: from a period on it takes a share
// of the node's time.
type Background struct {
	Period int
	Share  float64
}

// Setup is one run. Periods count from the first measured one; warm-up
// periods come before.
type Setup struct {
	Clients     []Client
	ClientCost  int64 // ns per I/O in a client's NIC, 1/C_L
	ServerCost  int64 // ns per I/O in the data node, 1/C_G
	Batch       int64 // B
	QoS         bool  // token gates; else clients send as they like ("bare")
	Served      bool  // the node is composed as in the server; Arbitration, Yield, Batch and LocalCap are its defaults then
	Window      int   // commands under way on the device of a served node; 0: the default
	Basic       bool  // no conversion and no yielding
	Adaptive    bool  // capacity estimation
	Yield       haechi.YieldMode
	Arbitration scheduler.Arbitration
	// LocalCap lets engines give back what one client can no longer use in
	// the rest of the period, ξ ≤ (T−t)·C_L.
	LocalCap   bool
	Background []Background
	Warmup     int
	Periods    int
	Latency    bool // keep latency histograms
	Log        *experiment.Log
}

// Outcome is what a run measured, per measured period.
type Outcome struct {
	Done       [][]int64 // I/Os by period and client
	Omega      []int64   // Ω with which the period began
	Latency    []*hdrhistogram.Histogram
	Violations []string
}

// run is the state of one simulation.
type run struct {
	setup   *Setup
	kernel  kernel.Kernel
	server  server
	served  *served // nil: the paper's arrangement
	clients []*client
	monitor *haechi.Monitor
	period  int // -Warmup, ..., Periods-1
	first   int // client that the next timer looks at first
	issued  int64
	waited  bool // an I/O has waited for the data node in this period
	out     Outcome
}

// What the events of a run mean.
const (
	beginPeriod int32 = iota
	checkPool
	tickEngines
)

// Simulate makes one run.
func Simulate(setup *Setup) *Outcome {
	r := &run{setup: setup, period: -setup.Warmup - 1}
	r.monitor = haechi.NewMonitor(setup.monitor())
	r.server = server{run: r, dispatcher: r.newDispatcher()}
	if setup.Served {
		r.serveWith()
	}
	for i := range setup.Clients {
		c := newClient(r, i)
		r.clients = append(r.clients, c)
		r.monitor.Join(c.spec.Reservation)
	}
	r.kernel.At(0, kernel.PeriodStart, r, beginPeriod)
	if setup.QoS && !setup.Served {
		r.kernel.At(tick, kernel.Conversion, r, checkPool)
		r.kernel.At(tick, kernel.TokenTick, r, tickEngines)
	}
	r.kernel.Run(int64(setup.Warmup+setup.Periods)*second - 1)
	r.closePeriod()
	for _, c := range r.clients {
		c.balance()
	}
	return &r.out
}

// serveWith makes the node the server's.
func (r *run) serveWith() {
	var err error
	if r.served, err = newServed(r); err != nil {
		panic("haechi: " + err.Error()) // reservations of a set-up that no rule can have
	}
}

// capacity is Ω.
func (r *run) capacity() int64 {
	if r.served != nil {
		return r.served.coord.Monitor(&r.served.device).Capacity()
	}
	return r.monitor.Capacity()
}

// profile is Ω_prof, what the data node serves in a period.
func (s *Setup) profile() int64 { return second / s.ServerCost }

func (s *Setup) monitor() haechi.MonitorConfig {
	reserved := int64(0)
	for _, c := range s.Clients {
		reserved += c.Reservation
	}
	return haechi.MonitorConfig{
		Period: second, Basic: s.Basic,
		Estimator: haechi.EstimatorConfig{
			Profile: s.profile(), Floor: s.profile() / 2, Step: s.profile() / 100, Window: estimatorWindow, Slack: estimatorSlack,
		},
	}
}

// Fire runs a timer of the node.
func (r *run) Fire(now int64, what int32) {
	switch what {
	case beginPeriod:
		r.turn(now)
	case checkPool:
		r.check(now)
		r.kernel.At(now+tick, kernel.Conversion, r, checkPool)
	case tickEngines:
		r.inTurn(func(c *client) {
			if !r.setup.Basic {
				c.engine.Tick(now)
			}
			r.server.dispatcher.Refresh(c.queue, now)
		})
		r.server.serve(now)
		r.kernel.At(now+tick, kernel.TokenTick, r, tickEngines)
	}
}

// inTurn visits all clients, each time beginning with the next one, so that
// none is always the first at a pool that is nearly empty.
func (r *run) inTurn(visit func(*client)) {
	for i := range r.clients {
		visit(r.clients[(r.first+i)%len(r.clients)])
	}
	r.first++
}

// turn ends a period and begins the next.
func (r *run) turn(now int64) {
	if now > 0 {
		r.closePeriod()
	}
	r.period++
	r.issued, r.waited = 0, false
	r.server.cost = r.setup.costIn(r.period)
	r.monitor.BeginPeriod(now)
	r.setup.Log.Line(now, "period", int64(r.period), r.capacity(), r.monitor.Pool.Tokens())
	r.inTurn(func(c *client) { c.beginPeriod(now) })
	r.kernel.At(now+second, kernel.PeriodStart, r, beginPeriod)
}

// costIn is the data node's time per I/O in a period, background included.
func (s *Setup) costIn(period int) int64 {
	share := 0.0
	for _, b := range s.Background {
		if period >= b.Period {
			share = b.Share
		}
	}
	return int64(float64(s.ServerCost)/(1-share) + 0.5)
}

// closePeriod takes the last reports and keeps what was measured.
func (r *run) closePeriod() {
	done := make([]int64, len(r.clients))
	for i, c := range r.clients {
		done[i] = c.done
		r.monitor.Report(i, c.engine.Report())
	}
	if r.period >= 0 {
		r.out.Omega = append(r.out.Omega, r.capacity())
	}
	if r.served == nil {
		r.closeMonitored()
	}
	if r.period >= 0 {
		r.out.Done = append(r.out.Done, done)
	}
}

// closeMonitored ends the period of the paper's arrangement.
func (r *run) closeMonitored() {
	r.checkIssued()
	if r.setup.Adaptive {
		used := r.monitor.EndPeriod(r.waited)
		r.setup.Log.Line(r.kernel.Now(), "used", used, r.monitor.Capacity())
	}
}

// checkIssued is the invariant of the hard pool.
func (r *run) checkIssued() {
	if !r.setup.QoS {
		return
	}
	allowed := r.monitor.Capacity() + int64(len(r.clients))*(r.setup.Batch+window)
	if r.issued > allowed {
		r.violate("period %d issued %d I/Os, more than Ω + n·(B+window) = %d", r.period, r.issued, allowed)
	}
}

// check is the monitor's check interval: reports come in, the pool is rewritten.
func (r *run) check(now int64) {
	reporting := r.monitor.Reporting()
	if reporting {
		for i, c := range r.clients {
			r.monitor.Report(i, c.engine.Report())
		}
	}
	r.monitor.Check(now)
	if !reporting || r.setup.Basic {
		return
	}
	r.setup.Log.Line(now, "convert", r.monitor.Pool.Tokens())
	r.inTurn(func(c *client) {
		c.engine.Wake(now)
		r.server.dispatcher.Refresh(c.queue, now)
	})
	r.server.serve(now)
}

func (r *run) violate(format string, args ...any) {
	if len(r.out.Violations) < maxViolations {
		r.out.Violations = append(r.out.Violations, fmt.Sprintf(format, args...))
	}
}
