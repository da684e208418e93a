package scheduler

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
	for _, p := range q.clients {
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
		waited := q.throttled[i]
		if i == q.throttledBy {
			waited += now - q.throttledSince
		}
		if l.PerByte {
			effect.HeldBytes += waited
		} else {
			effect.HeldIOPS += waited
		}
	}
}
