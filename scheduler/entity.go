package scheduler

import (
	"lunar/internal/arith"
	"lunar/scheduler/pshift"
)

// entity is an Entity's part on one event thread: its share of the limits, over
// all devices. Its reservation tokens are its clients'.
type entity struct {
	Entity
	rule        int // number in the policy, -1 none
	reservation int64
	limits      []*Limit
	ceiling     int64 // of the limits, tokens/s; Unlimited is none
	share       int64 // of the limits, millionths
	queues      int   // that use it
	clients     int   // of it, on all servers; those that linger, too
	usage       usage // of the thread
}

// apply takes over a rule (nil: none) at now. Limits keep what was taken from
// them when the rule keeps its kinds of limit.
func (e *entity) apply(p *Policy, rule *Rule, now int64) {
	var was Rate
	if e.Rule != nil {
		was = e.Rule.Limit
	}
	e.Rule, e.rule, e.reservation, e.ceiling = rule, p.number(rule), 0, pshift.Unlimited
	commands, bytes := e.limitOf(false), e.limitOf(true)
	e.limits = nil
	if rule != nil {
		e.reservation, e.ceiling = p.cost.Tokens(rule.Reservation), p.cost.ceiling(rule.Limit)
		commands.hasten(was.IOPS, rule.Limit.IOPS, now)
		bytes.hasten(was.Bytes, rule.Limit.Bytes, now)
		e.limit(commands, false, rule.Limit.IOPS)
		e.limit(bytes, true, rule.Limit.Bytes)
	}
	for _, l := range e.limits {
		l.SetRate(e.rate(l))
	}
}

// limitOf returns the limit of bytes or of commands; nil if there is none.
func (e *entity) limitOf(perByte bool) *Limit {
	for _, l := range e.limits {
		if l.PerByte == perByte {
			return l
		}
	}
	return nil
}

// lead is how far ahead reservation tokens may be used: GateConfig.Lead's time
// at the reserved rate, at least one.
func (e *entity) lead(ns int64) int64 {
	if ns == 0 {
		return 0
	}
	return max(1, arith.MulDiv(e.reservation, ns, 1e9))
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
		l.full = now + arith.MulDiv(l.full-now, from, to)
	}
}

// rate is a limit's rate and burst as far as this thread has them.
func (e *entity) rate(l *Limit) (rate, burst int64) {
	rate, burst = e.Rule.Limit.IOPS, e.Rule.Burst.IOPS
	if l.PerByte {
		rate, burst = e.Rule.Limit.Bytes, e.Rule.Burst.Bytes
	}
	return arith.MulDiv(rate, e.share, whole), arith.MulDiv(burst, e.share, whole)
}

// setShare sets the part of the limits that this thread may use from now on.
// What a bucket holds, or owes, stays the same number of units, so that a share
// that goes from thread to thread takes no burst along.
func (e *entity) setShare(share, now int64) {
	if share == e.share {
		return
	}
	e.share = share
	for _, l := range e.limits {
		rate, burst := e.rate(l)
		l.ChangeRate(rate, burst, now)
	}
}

// inDebt reports whether something that was taken from the limits has not been
// made up for.
func (e *entity) inDebt(now int64) bool {
	for _, l := range e.limits {
		if l.full > now {
			return true
		}
	}
	return false
}
