package scheduler

// historyPeriods is how many periods an attainment remembers.
const historyPeriods = 60

// PeriodResult is what an entity got in one period, in tokens.
type PeriodResult struct {
	Reservation int64
	Offered     int64
	Served      int64
	Yielded     int64 // of the reservation, given back unused
}

// Met reports whether the reservation was kept: all of it was served, or all
// that was asked for, or what is missing was given back.
func (r PeriodResult) Met() bool { return r.Served+r.Yielded >= min(r.Reservation, r.Offered) }

// attainment is a ring of the last periods.
type attainment struct {
	periods [historyPeriods]PeriodResult
	count   int
	kept    Kept
}

// Kept counts the periods with a reservation since an entity appeared: those
// in which it was kept, and those in which it was not.
type Kept struct{ Met, Missed int64 }

func (a *attainment) add(s partTotals, reservation int64) {
	r := PeriodResult{reservation, s.offered, s.served, s.yielded}
	a.periods[a.count%historyPeriods] = r
	a.count++
	switch {
	case reservation == 0:
	case r.Met():
		a.kept.Met++
	default:
		a.kept.Missed++
	}
}

// Kept returns how often an entity's reservation was kept; zeros if there is no
// such entity.
func (c *Coordinator) Kept(entity string) Kept {
	if m := c.byKey[entity]; m != nil {
		return m.attainment.kept
	}
	return Kept{}
}

// Attainment returns the last periods of an entity, the newest last; nil if
// there is no such entity.
func (c *Coordinator) Attainment(entity string) []PeriodResult {
	m := c.byKey[entity]
	if m == nil {
		return nil
	}
	n := min(m.attainment.count, historyPeriods)
	results := make([]PeriodResult, 0, n)
	for i := m.attainment.count - n; i < m.attainment.count; i++ {
		results = append(results, m.attainment.periods[i%historyPeriods])
	}
	return results
}

// Effect is one rule's effect on a flow.
type Effect struct {
	Rule  string // its name
	Level Level
	Share int64 // the part of the rule's limits that the thread has, millionths
	// HeldIOPS and HeldBytes are for how long, in ns since the last rule
	// change, the rule's limits held commands back.
	HeldIOPS, HeldBytes int64
	Reserved            int64 // reservation tokens left
}

// Explanation is what happened to one flow on one event thread.
type Explanation struct {
	Flow     Flow
	Thread   int
	Counters Counters
	Effects  []Effect // from the outside in
	Waits    Histogram
	Services Histogram
	Waiting  int // commands
}

// Merge adds what happened to the same flow elsewhere. Rules that only the
// other has stay out.
func (x *Explanation) Merge(o *Explanation) {
	x.Counters.add(&o.Counters)
	x.Waits.Merge(&o.Waits)
	x.Services.Merge(&o.Services)
	x.Waiting += o.Waiting
	for i := range x.Effects {
		for j := range o.Effects {
			if e, from := &x.Effects[i], &o.Effects[j]; e.Rule == from.Rule {
				e.HeldIOPS, e.HeldBytes = e.HeldIOPS+from.HeldIOPS, e.HeldBytes+from.HeldBytes
			}
		}
	}
}

// Explain says what happened to an initiator's flows on this thread, in order
// of opening. An empty name is all initiators.
func (g *Gate) Explain(initiator string, now int64) []Explanation {
	var all []Explanation
	for q := range g.flows.all() {
		if initiator == "" || q.flow.Initiator == initiator {
			all = append(all, g.explain(q, now))
		}
	}
	return all
}

// ExplainQueue says what happened to one queue.
func (g *Gate) ExplainQueue(q *Queue, now int64) Explanation { return g.explain(q, now) }

func (g *Gate) explain(q *Queue, now int64) Explanation {
	x := Explanation{Flow: q.flow, Thread: g.thread, Counters: q.Counters(), Waits: *q.Waits(), Services: q.services, Waiting: q.Pending()}
	for _, p := range q.stakes {
		e := p.entity
		if e.Rule == nil {
			continue
		}
		effect := Effect{Rule: ruleName(g.policy.rules, e.rule), Level: e.Level, Share: e.share, Reserved: max(0, p.engine.Residual())}
		q.addHeld(e, now, &effect)
		x.Effects = append(x.Effects, effect)
	}
	return x
}

// addHeld adds for how long the limits of an entity held the queue back.
func (q *Queue) addHeld(e *entity, now int64, effect *Effect) {
	for i, l := range q.limits {
		if l.Rule != e.rule {
			continue
		}
		held := q.throttled[i]
		if i == q.heldBy {
			held += now - q.heldSince
		}
		if l.PerByte {
			effect.HeldBytes += held
		} else {
			effect.HeldIOPS += held
		}
	}
}
