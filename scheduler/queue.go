package scheduler

import (
	"container/list"

	"lunar/scheduler/haechi"
	"lunar/scheduler/pshift"
)

// QueueConfig sets a Queue.
type QueueConfig struct {
	Weight  int64 // share inside the class; 0 is 1
	Class   Class
	Tagged  bool             // commands may name another class
	Engines []*haechi.Engine // whose reservation tokens it may use, the first one's global tokens too; nil gives it its own
	Limits  []*Limit         // all must let a command pass
}

// Limit is a paced limit that queues share, on one event thread.
type Limit struct {
	Bucket
	PerByte bool // counts Task.Bytes, else Task.Cost
	Rule    int  // number of the rule that it comes from
	waiting int  // queues that wait for it
}

// Queue holds the waiting tasks of one (initiator, logical unit) on one event
// thread.
type Queue struct {
	// What every command touches comes first.
	account
	server      *server
	dispatcher  *Dispatcher
	tasks       fifo
	engine      *haechi.Engine   // whose global tokens it uses
	inner       []*haechi.Engine // the others that have reservation tokens for it
	limits      []*Limit
	normal      int64 // L-tokens
	slot        int
	throttledBy int   // limit that holds it, -1 none
	inflight    int64 // tokens
	place       place
	class       Class
	dispatched  [haechi.Grants]int64 // commands, by grant
	served      int64                // commands
	tokens      int64                // of them
	bytes       int64                // of them
	serving     int64                // ns that they took, summed
	waited      int64                // ns that those dispatched had waited, summed

	throttled      []int64 // ns that each limit held the queue back
	until          int64   // when a queue that waits for a time is looked at again
	heapIndex      int
	throttledSince int64

	usage    *usage // of the thread, by its initiator
	promised bool   // it has a reservation, or is urgent
	tagged   bool   // commands may name their class
	tag      Tag    // the class that its commands have named
	ruled    bool   // rules apply to it

	open *list.Element // among the queues of the gate

	flow    Flow
	clients []*client // from the outside in; nil without a gate

	hits            int64 // commands
	cancelled       int64 // commands
	cancelledTokens int64
	waits           Histogram // but for the first bucket, of those that did not wait
	services        Histogram
}

// Counters are totals of a queue since it was added.
type Counters struct {
	Offered, Served             int64 // commands
	OfferedTokens, ServedTokens int64
	Bytes                       int64 // served
	Reserved, Normal            int64 // dispatches with a token
	Opportunistic               int64 // dispatches without a token (soft pool)
	Hits                        int64 // served from a cache
	Cancelled                   int64
	Named                       int64 // dispatches of commands that had named another class
	Waited                      int64 // ns between arrival and dispatch, summed
	Service                     int64 // ns between dispatch and done, summed
}

// add adds another queue's totals.
func (c *Counters) add(o *Counters) {
	for _, f := range []struct{ to, from *int64 }{
		{&c.Offered, &o.Offered}, {&c.Served, &o.Served}, {&c.OfferedTokens, &o.OfferedTokens}, {&c.ServedTokens, &o.ServedTokens},
		{&c.Bytes, &o.Bytes}, {&c.Reserved, &o.Reserved}, {&c.Normal, &o.Normal}, {&c.Opportunistic, &o.Opportunistic},
		{&c.Hits, &o.Hits}, {&c.Cancelled, &o.Cancelled}, {&c.Named, &o.Named}, {&c.Waited, &o.Waited}, {&c.Service, &o.Service},
	} {
		*f.to += *f.from
	}
}

// Counters returns the queue's totals.
func (q *Queue) Counters() Counters {
	named := int64(0)
	if q.tag != 0 {
		named = q.passed()
	}
	return Counters{
		Named: named, Offered: q.passed() + int64(q.tasks.length) + q.cancelled, Served: q.served,
		OfferedTokens: q.tokens + q.inflight + q.pendingTokens() + q.cancelledTokens, ServedTokens: q.tokens, Bytes: q.bytes,
		Reserved: q.dispatched[haechi.GrantReserved], Normal: q.dispatched[haechi.GrantNormal], Opportunistic: q.dispatched[haechi.GrantOpportunistic],
		Hits: q.hits, Cancelled: q.cancelled, Waited: q.waited, Service: q.serving,
	}
}

// passed is how many commands were dispatched.
func (q *Queue) passed() (n int64) {
	for _, with := range q.dispatched {
		n += with
	}
	return n
}

// Waits is the histogram of the time between arrival and dispatch.
func (q *Queue) Waits() *Histogram {
	all := q.waits
	all.buckets[0] = q.passed() - all.Count()
	return &all
}

// Services is the histogram of the time between dispatch and Done.
func (q *Queue) Services() *Histogram { return &q.services }

// Throttled is for how long, in ns, limit i of the configuration held the
// queue back.
func (q *Queue) Throttled(i int) int64 { return q.throttled[i] }

// Engine is the queue's first engine.
func (q *Queue) Engine() *haechi.Engine { return q.engine }

// Promised reports whether the queue has a reservation, or is urgent.
func (q *Queue) Promised() bool { return q.promised }

// Class is the class of the queue's commands, and whether a rule says it.
func (q *Queue) Class() (c Class, ruled bool) { return q.class, q.ruled }

// Tagged reports whether commands may name their class by their GROUP NUMBER.
func (q *Queue) Tagged() bool { return q.tagged }

// Pending is how many tasks wait.
func (q *Queue) Pending() int { return q.tasks.length }

// NormalTokens is what is left of the L-tokens; pshift.Unlimited if there is no
// budget.
func (q *Queue) NormalTokens() int64 { return q.normal }

// reserved reports whether a reservation token may be used.
func (q *Queue) reserved() bool {
	if q.engine.Reserved() {
		return true
	}
	for _, e := range q.inner {
		if e.Reserved() {
			return true
		}
	}
	return false
}

// limited returns the limit that holds the queue longest and until when; -1 if
// none does.
func (q *Queue) limited(now int64) (by int, until int64) {
	by, until = -1, now
	for i, l := range q.limits {
		if at := l.Ready(); at > until {
			by, until = i, at
		}
	}
	return by, until
}

// unlimited reports whether a command may pass all limits, with nobody waiting
// for one of them.
func (q *Queue) unlimited(now int64) bool {
	for _, l := range q.limits {
		if l.waiting > 0 || l.Ready() > now {
			return false
		}
	}
	return true
}

// charge takes the tokens of a command: of every engine that has reservation
// tokens, since an inner reservation is part of the outer one, or a normal one
// of the first engine.
func (q *Queue) charge(t *Task, grant haechi.Grant, now int64) {
	q.inflight += t.Cost
	t.charged = 1
	if len(q.inner) > 0 {
		q.chargeAll(t, grant)
	} else {
		q.engine.Charge(t.Cost, grant)
	}
	if grant != haechi.GrantReserved && q.normal != pshift.Unlimited {
		q.normal -= t.Cost
	}
	for _, l := range q.limits {
		l.Take(l.units(t), now)
	}
}

// chargeAll charges several engines.
func (q *Queue) chargeAll(t *Task, grant haechi.Grant) {
	t.charged = 0
	for i := range 1 + len(q.inner) {
		e := q.engineAt(i)
		if grant == haechi.GrantReserved && !e.Reserved() || grant != haechi.GrantReserved && i > 0 {
			e.Charge(t.Cost, haechi.GrantOpportunistic)
			continue
		}
		e.Charge(t.Cost, grant)
		t.charged |= 1 << i
	}
}

// engineAt is the i-th engine.
func (q *Queue) engineAt(i int) *haechi.Engine {
	if i == 0 {
		return q.engine
	}
	return q.inner[i-1]
}

// units is what the limit counts of a task.
func (l *Limit) units(t *Task) int64 {
	if l.PerByte {
		return t.Bytes
	}
	return t.Cost
}
