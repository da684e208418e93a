package haechi

import "lunar/internal/arith"

// MonitorConfig sets a Monitor.
type MonitorConfig struct {
	Period    int64 // T, ns
	Basic     bool  // basic Haechi: no conversion of unused reservations
	Estimator EstimatorConfig
	Pool      *Pool // the global tokens; nil: its own
}

// Monitor is Haechi's node side: it makes the tokens of each period, holds the
// global pool, converts unused reservations into global tokens and follows the
// capacity. One owner calls it; only its Pool is shared.
type Monitor struct {
	Pool *Pool

	cfg       MonitorConfig
	estimator *Estimator
	clients   []client
	began     int64
	initial   int64 // G0
	others    int64 // tokens completed this period by who is no client
	reporting bool
}

// client is what the monitor knows of one engine.
type client struct {
	present     bool
	reservation int64
	last        Report
}

// NewMonitor returns a monitor without clients, before its first period.
func NewMonitor(cfg MonitorConfig) *Monitor {
	if cfg.Pool == nil {
		cfg.Pool = &Pool{}
	}
	return &Monitor{Pool: cfg.Pool, cfg: cfg, estimator: NewEstimator(cfg.Estimator)}
}

// Join adds a client with a reservation in tokens per period, which counts
// from the next period on. It returns the client's number, the lowest free.
func (m *Monitor) Join(reservation int64) int {
	for i := range m.clients {
		if !m.clients[i].present {
			m.clients[i] = client{present: true, reservation: reservation}
			return i
		}
	}
	m.clients = append(m.clients, client{present: true, reservation: reservation})
	return len(m.clients) - 1
}

// Remove removes a client; its number may be given again.
func (m *Monitor) Remove(id int) { m.clients[id] = client{} }

// SetReservation changes a client's reservation from the next period on.
func (m *Monitor) SetReservation(id int, reservation int64) { m.clients[id].reservation = reservation }

// Reservation is a client's reservation in tokens per period.
func (m *Monitor) Reservation(id int) int64 { return m.clients[id].reservation }

// Reserved is ΣR, tokens per period.
func (m *Monitor) Reserved() int64 {
	sum := int64(0)
	for i := range m.clients {
		sum += m.clients[i].reservation
	}
	return sum
}

// Capacity is Ω, tokens per period.
func (m *Monitor) Capacity() int64 { return m.estimator.Capacity() }

// Estimator is the monitor's capacity estimation.
func (m *Monitor) Estimator() *Estimator { return m.estimator }

// Reporting reports whether the engines have been told to report.
func (m *Monitor) Reporting() bool { return m.reporting }

// BeginPeriod starts a period: the pool gets what is not reserved. Each engine
// is then told its Reservation.
func (m *Monitor) BeginPeriod(now int64) {
	m.began, m.reporting, m.others = now, false, 0
	for i := range m.clients {
		m.clients[i].last = Report{Residual: m.clients[i].reservation}
	}
	m.estimator.Reserve(m.Reserved())
	m.initial = m.Capacity() - m.Reserved()
	m.Pool.Set(m.initial)
}

// Report takes a client's report.
func (m *Monitor) Report(id int, r Report) { m.clients[id].last = r }

// ReportOthers takes what was completed in this period by who is not a client,
// or no longer: it has used the capacity, too. Haechi's clients do not change
// within a period.
func (m *Monitor) ReportOthers(done int64) { m.others = done }

// Check looks at the pool, every check interval. It returns true when the
// engines must be told to report, which happens once per period: when somebody
// took global tokens. From then on it converts: the pool becomes the rest of
// the capacity less the residual reservations.
func (m *Monitor) Check(now int64) (signal bool) {
	if m.cfg.Basic {
		return false
	}
	if m.reporting {
		m.convert(now)
		return false
	}
	m.reporting = m.Pool.Tokens() < m.initial
	return m.reporting
}

// convert rewrites the pool. A fetch between load and store of another thread
// is not lost: the swap fails and the pool is left for the next check.
func (m *Monitor) convert(now int64) {
	old := m.Pool.tokens.Load()
	m.Pool.tokens.CompareAndSwap(old, m.Convertible(now))
}

// Convertible is max(min(⌊Ω·(T−t)/T⌋, Ω − ΣN) − Σ residuals, 0) at now. Haechi
// has no second term of the minimum; without it a device that is faster than Ω
// gets new tokens for ever, and neither does a period end near Ω (invariant 3)
// nor does its throughput climb by η per period, as the paper shows.
func (m *Monitor) Convertible(now int64) int64 {
	left := arith.MulDiv(m.Capacity(), max(0, m.cfg.Period-(now-m.began)), m.cfg.Period)
	unserved, residual := m.Capacity()-m.others, int64(0)
	for i := range m.clients {
		unserved -= m.clients[i].last.Done
		residual += m.clients[i].last.Residual
	}
	return max(0, min(left, unserved)-residual)
}

// EndPeriod ends a period after the last reports: it updates the capacity. backlogged says that commands waited
// for the device at some time in it. It returns the tokens served.
func (m *Monitor) EndPeriod(backlogged bool) (used int64) {
	used = m.others
	for i := range m.clients {
		used += m.clients[i].last.Done
	}
	m.estimator.Observe(used, backlogged)
	return used
}
