package haechi

import "lunar/internal/arith"

// YieldMode says when an engine gives reservation tokens back that its
// initiator does not use.
type YieldMode uint8

const (
	// YieldIdle gives back only when nothing was pending or in flight for at
	// least half of the tick: what fits closed-loop initiators, whose demand
	// shows only in what they have outstanding.
	YieldIdle YieldMode = iota
	// YieldLiteral follows Haechi's text: the ceiling binds whatever the
	// demand is, so a slow server takes tokens from a busy initiator.
	YieldLiteral
	// YieldDemand keeps what the pending commands will need above the
	// ceiling: for open-loop initiators, whose demand is known.
	YieldDemand
	// YieldNever is pShift's and basic Haechi's: tokens stay until replaced.
	YieldNever
)

// EngineConfig is what does not change from period to period.
type EngineConfig struct {
	Period        int64 // T, ns
	Limit         int64 // tokens per period; 0 is none
	Batch         int64 // B, tokens per fetch from the global pool
	LocalCapacity int64 // C_L, tokens per period that one initiator can use; 0 is unknown
	Retry         int64 // ns between fetches from an empty pool; 0 is 1 ms
	// Lead paces the reservation: tokens may be used at most Lead tokens
	// ahead of their even spread over the period, so that a burst of
	// reserved commands cannot stall the others. 0 releases all at once, as
	// the papers do.
	Lead  int64
	Yield YieldMode
}

// Grant says which token a command was issued with.
type Grant uint8

const (
	// GrantNone: no token; the command waits.
	GrantNone Grant = iota
	// GrantLimit: the limit is reached; the command waits.
	GrantLimit
	// GrantReserved: a reservation token.
	GrantReserved
	// GrantNormal: a token of the global pool or of the limit's budget.
	GrantNormal
	// GrantOpportunistic: no token; the device had room (soft pool).
	GrantOpportunistic
	// Grants is how many there are.
	Grants
)

// Engine is Haechi's client side: the tokens of one initiator on one event
// thread. Only that thread touches it. The zero Engine has no tokens.
type Engine struct {
	// The fields that every command touches come first.
	xi       int64 // ξ: reservation tokens; negative is owed
	floor    int64 // ξ must be above it to be used; positive only when paced
	local    int64 // loc: unspent tokens of the global pool; negative is owed
	open     int64 // accepted, not completed, in tokens
	inflight int64 // issued, not completed, in tokens
	served   int64 // tokens completed since the engine was made
	drained  bool  // nothing was pending at some time since TakeBacklogged

	nextFetch int64
	idleSince int64
	idle      int64 // ns idle since the last tick
	lastTick  int64

	cfg        EngineConfig
	ceiling    int64 // ⌊X⌋
	granted    int64 // tokens of the last grant
	grantedAt  int64
	grantedEnd int64
	yielded    int64 // reservation tokens given back this period
	hits       int64 // of served, what needed no device

	// Further counts follow from those above and what they were at some time.
	issuedBefore int64 // served and inflight at the period's start, less what counts for this one
	servedBefore int64 // served at the period's start
	uncounted    int64 // accepted since the engine was made, less served and open
}

// NewEngine returns an engine without tokens.
func NewEngine(cfg EngineConfig) *Engine {
	e := &Engine{drained: true}
	e.Configure(cfg)
	return e
}

// Configure replaces the configuration; tokens and counts stay.
func (e *Engine) Configure(cfg EngineConfig) {
	if cfg.Retry == 0 {
		cfg.Retry = 1e6
	}
	e.cfg = cfg
}

// SetTokens replaces the reservation tokens and what is owed, for who divides
// tokens without periods.
func (e *Engine) SetTokens(tokens int64) { e.xi = tokens }

// BeginPeriod starts a period at now with its reservation. New tokens replace
// old ones; what is owed is carried over.
func (e *Engine) BeginPeriod(now, reservation int64) {
	e.local = min(e.local, 0)
	over := int64(0)
	if e.cfg.Limit > 0 {
		over = max(0, e.Issued()-e.cfg.Limit)
	}
	e.issuedBefore, e.servedBefore = e.served+e.inflight-over, e.served
	e.yielded, e.nextFetch = 0, now
	e.Grant(now, reservation, now+e.cfg.Period)
}

// Grant replaces the reservation tokens at now with tokens that are meant to
// last until end. A period start and each redistribution do this.
func (e *Engine) Grant(now, tokens, end int64) {
	e.xi = tokens + min(e.xi, 0)
	e.granted, e.grantedAt, e.grantedEnd = tokens, now, end
	e.settle(now)
	e.lastTick, e.idle = now, 0
	e.setCeiling(now)
}

// setCeiling computes ⌊X⌋: what the grant leaves when used evenly.
func (e *Engine) setCeiling(now int64) {
	span, left := e.grantedEnd-e.grantedAt, max(0, e.grantedEnd-now)
	e.ceiling = 0
	if span > 0 {
		e.ceiling = arith.MulDiv(e.granted, left, span)
	}
	e.floor = 0
	if e.cfg.Lead > 0 {
		e.floor = max(0, e.ceiling-e.cfg.Lead)
	}
}

// Arrive accepts a command of the given cost at now.
func (e *Engine) Arrive(cost, now int64) {
	if e.open == 0 {
		e.idle += now - e.idleSince
	}
	e.open += cost
}

// Cancel takes back a command that was accepted and not issued.
func (e *Engine) Cancel(cost, now int64) {
	e.open -= cost
	e.uncounted += cost
	e.drained = e.drained || e.open == e.inflight
	e.settle(now)
}

// Issue takes a token for an accepted command, in Haechi's order: the limit
// holds; else a reservation token; else one fetched from the pool before.
// GrantNone means that Fetch may help.
func (e *Engine) Issue(cost int64) Grant {
	switch {
	case e.atLimit():
		return GrantLimit
	case e.Reserved():
		e.Charge(cost, GrantReserved)
		return GrantReserved
	case e.local > 0:
		e.Charge(cost, GrantNormal)
		return GrantNormal
	}
	return GrantNone
}

// Reserved reports whether a reservation token may be used now.
func (e *Engine) Reserved() bool { return e.xi > e.floor }

// Due is Reserved with the tokens that have become due by now, between two ticks.
func (e *Engine) Due(now int64) bool {
	if e.xi > 0 && e.floor > 0 {
		e.setCeiling(now)
	}
	return e.Reserved()
}

// atLimit reports whether the period's limit is reached.
func (e *Engine) atLimit() bool { return e.cfg.Limit > 0 && e.Issued() >= e.cfg.Limit }

// Charge books a command of the given cost as issued with the grant.
func (e *Engine) Charge(cost int64, grant Grant) {
	switch grant {
	case GrantReserved:
		e.xi -= cost
	case GrantNormal:
		e.local -= cost
	}
	e.inflight += cost
	e.drained = e.drained || e.open == e.inflight
}

// Fetch asks the pool for a batch unless it was found empty less than Retry
// ago. It reports whether there is a local token now.
func (e *Engine) Fetch(pool *Pool, now int64) bool {
	if e.local > 0 {
		return true
	}
	if now < e.nextFetch || e.cfg.Batch == 0 {
		return false
	}
	e.local += pool.Fetch(e.cfg.Batch)
	if e.local > 0 {
		return true
	}
	e.nextFetch = now + e.cfg.Retry
	return false
}

// NextFetch is when the pool may be asked again.
func (e *Engine) NextFetch() int64 { return e.nextFetch }

// Wake lets the next Fetch ask at once: the monitor rewrote the pool.
func (e *Engine) Wake(now int64) { e.nextFetch = now }

// Complete books an issued command of the given cost as done at now.
func (e *Engine) Complete(cost, now int64) {
	e.served += cost
	e.inflight -= cost
	e.open -= cost
	e.settle(now)
}

// settle notes the start of an idle time.
func (e *Engine) settle(now int64) {
	if e.open == 0 {
		e.idleSince = now
	}
}

// Tick lowers the ceiling to now and yields by the mode. It is due every δ.
func (e *Engine) Tick(now int64) {
	e.setCeiling(now)
	e.yieldTo(e.keep(now))
	if e.cfg.LocalCapacity > 0 && e.cfg.Period > 0 && e.cfg.Yield != YieldNever {
		e.yieldTo(arith.MulDiv(e.cfg.LocalCapacity, max(0, e.grantedEnd-now), e.cfg.Period))
	}
	e.settle(now)
	e.lastTick, e.idle = now, 0
}

// keep returns how many reservation tokens the mode lets the engine keep.
func (e *Engine) keep(now int64) int64 {
	switch e.cfg.Yield {
	case YieldLiteral:
		return e.ceiling
	case YieldDemand:
		return e.ceiling + e.Pending()
	case YieldIdle:
		idle := e.idle
		if e.open == 0 {
			idle += now - e.idleSince
		}
		if 2*idle >= now-e.lastTick && now > e.lastTick {
			return e.ceiling
		}
	}
	return max(e.xi, 0)
}

// yieldTo gives back the tokens above keep.
func (e *Engine) yieldTo(keep int64) {
	if e.xi > keep {
		e.yielded += e.xi - keep
		e.xi = keep
	}
}

// Hit notes that a completed command needed no device.
func (e *Engine) Hit(cost int64) { e.hits += cost }

// Refund gives a token back that Charge took for a command that turned out to
// need none, such as a cache hit.
func (e *Engine) Refund(cost int64, grant Grant) {
	switch grant {
	case GrantReserved:
		e.xi = min(e.xi+cost, max(e.granted, e.xi))
	case GrantNormal:
		e.local += cost
	}
}

// Report is what an engine tells the monitor. In Haechi it is one 64-bit word.
type Report struct {
	Residual int64 // ξ: reservation tokens left
	Done     int64 // N: tokens completed this period
}

// Report returns the engine's report.
func (e *Engine) Report() Report { return Report{max(0, e.xi), e.Done()} }

// Residual is ξ, the reservation tokens left; negative is owed.
func (e *Engine) Residual() int64 { return e.xi }

// Local is loc, the unspent tokens of the global pool.
func (e *Engine) Local() int64 { return e.local }

// Issued is what was issued this period, in tokens.
func (e *Engine) Issued() int64 { return e.served + e.inflight - e.issuedBefore }

// Done is N, what was completed this period, in tokens.
func (e *Engine) Done() int64 { return e.served - e.servedBefore }

// Yielded is what was given back this period, in tokens.
func (e *Engine) Yielded() int64 { return e.yielded }

// Totals are what was accepted and what was completed since the engine was
// made, in tokens.
func (e *Engine) Totals() (offered, served int64) {
	return e.served + e.open + e.uncounted, e.served
}

// Hits is what of the completed tokens needed no device, since the engine was
// made.
func (e *Engine) Hits() int64 { return e.hits }

// TakeBacklogged reports whether something was pending all the time since the
// last call.
func (e *Engine) TakeBacklogged() bool {
	backlogged := !e.drained
	e.drained = e.Pending() == 0
	return backlogged && !e.drained
}

// Carry moves commands that were accepted (and issued) into or out of the
// engine's counts, when their queue gets another engine.
func (e *Engine) Carry(pend, inflight int64) {
	e.open += pend + inflight
	e.inflight += inflight
	e.uncounted -= pend + inflight
	e.issuedBefore += inflight
}

// Pending is what was accepted and not issued, in tokens.
func (e *Engine) Pending() int64 { return e.open - e.inflight }

// InFlight is what was issued and not completed, in tokens.
func (e *Engine) InFlight() int64 { return e.inflight }
