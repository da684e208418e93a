package scheduler

// entity is an Entity's part on one event thread: its engine, its share of the
// limits and its counts.
type entity struct {
	Entity
	number      int64 // of all that the gate has made
	rule        int   // number in the policy, -1 none
	reservation int64
	engine      *Engine
	limits      []*Limit
	ceiling     int64 // of the limits, tokens/s; Unlimited is none
	share       int64 // of the limits, millionths
	queues      int   // that use it
	root        bool
	yieldedPast int64 // before the engine's period
}

// apply takes over a rule (nil: none) at now. Limits keep what was taken from
// them when the rule keeps its kinds of limit.
func (e *entity) apply(p *Policy, rule *Rule, config EngineConfig, now int64) {
	var was Rate
	if e.Rule != nil {
		was = e.Rule.Limit
	}
	e.Rule, e.rule, e.reservation, e.ceiling = rule, p.number(rule), 0, Unlimited
	var old [2]*Limit
	for _, l := range e.limits {
		old[kind(l.PerByte)] = l
	}
	e.limits = nil
	if rule != nil {
		e.reservation, e.ceiling = p.cost.Tokens(rule.Reservation), p.cost.ceiling(rule.Limit)
		old[0].hasten(was.IOPS, rule.Limit.IOPS, now)
		old[1].hasten(was.Bytes, rule.Limit.Bytes, now)
		e.limit(old[0], false, rule.Limit.IOPS)
		e.limit(old[1], true, rule.Limit.Bytes)
		e.setShare(e.share)
	}
	config.Lead = e.lead(config)
	e.engine.Configure(config)
}

func kind(perByte bool) int {
	if perByte {
		return 1
	}
	return 0
}

// lead is how far ahead reservation tokens may be used: GateConfig.Lead's time
// at the reserved rate, at least one.
func (e *entity) lead(config EngineConfig) int64 {
	if config.Lead == 0 {
		return 0
	}
	return max(1, mulDiv(e.reservation, config.Lead, 1e9))
}

func (e *entity) limit(old *Limit, perByte bool, rate int64) {
	if rate == 0 {
		return
	}
	if old == nil {
		old = &Limit{PerByte: perByte}
	}
	old.Rule = e.rule
	e.limits = append(e.limits, old)
}

// hasten lets what is owed be paid at a higher rate: nobody waits as long as a
// limit of the past would have it. A lower rate makes nobody owe more for what
// was permitted then.
func (l *Limit) hasten(from, to, now int64) {
	if l != nil && to > from && l.full > now {
		l.full = now + mulDiv(l.full-now, from, to)
	}
}

// setShare sets the part of the limits that this thread may use.
func (e *entity) setShare(share int64) {
	e.share = share
	for _, l := range e.limits {
		rate, burst := e.Rule.Limit.IOPS, e.Rule.Burst.IOPS
		if l.PerByte {
			rate, burst = e.Rule.Limit.Bytes, e.Rule.Burst.Bytes
		}
		l.SetRate(mulDiv(rate, share, whole), mulDiv(burst, share, whole))
	}
}

// yielded is the total of tokens given back.
func (e *entity) yielded() int64 { return e.yieldedPast + e.engine.Yielded() }

// beginPeriod starts a period with R-tokens.
func (e *entity) beginPeriod(now, tokens int64) {
	e.yieldedPast += e.engine.Yielded()
	e.engine.BeginPeriod(now, tokens)
}
