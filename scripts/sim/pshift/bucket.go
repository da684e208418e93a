package pshift

import (
	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/scheduler/pshift"
)

// shown is how many of a pair's waiting requests the dispatcher sees: it looks
// at the first only, so that the others can be a number. One more may be in
// service.
const shown = 2

// bucket is the demand of one client.
type bucket struct {
	run    *run
	id     int
	spec   Bucket
	pairs  []*pair // by server, nil where it never was
	held   []*pair // those that are not nil, in order of creation
	phase  *Phase
	issued int64 // of the period
	done   int64 // of the period
}

// pair is a bucket at a server.
type pair struct {
	bucket *bucket
	server *server
	queue  *scheduler.Queue
	tasks  [shown + 1]scheduler.Task
	free   []*scheduler.Task

	active               bool
	waiting              int64 // requests that the dispatcher does not see
	arrivals             int64 // in the interval
	reserved, normal     int64 // tokens used since the last report
	haveR, haveL         int64 // tokens held
	ahead                int64 // used of the last interval's tokens beyond the new ones
	submitted, completed int64

	// Open loop: planned requests arrive evenly between from and the end of
	// the period; arrived of them are there.
	planned, arrived, from int64
}

// enter moves the demand to a phase's servers. Open loop: what was planned and
// has not arrived goes there; closed loop: the window is filled there, and the
// others run dry.
func (b *bucket) enter(phase *Phase, now int64) {
	b.generate(now)
	rest := b.spec.Demand
	for _, p := range b.held {
		rest -= p.arrived
		p.planned, p.active = p.arrived, false
	}
	b.phase = phase
	for k, j := range phase.Servers {
		p := b.pair(j)
		p.active = true
		if b.spec.Demand > 0 {
			p.plan(int64(float64(rest)*phase.Shares[k]+0.5), now)
		} else if more := b.run.setup.Outstanding - p.outstanding(); more > 0 {
			p.arrive(more, now)
		}
	}
}

// beginPeriod starts the counts and, open loop, the demand of a period.
func (b *bucket) beginPeriod(now int64) {
	b.issued, b.done = 0, 0
	if b.spec.Demand == 0 {
		return
	}
	for _, p := range b.held {
		p.planned, p.arrived = 0, 0
	}
	for k, j := range b.phase.Servers {
		b.pairs[j].plan(int64(float64(b.spec.Demand)*b.phase.Shares[k]+0.5), now)
	}
}

func (b *bucket) pair(j int) *pair {
	if b.pairs[j] == nil {
		p := &pair{bucket: b, server: b.run.servers[j]}
		p.queue = p.server.dispatcher.Add(scheduler.QueueConfig{})
		if b.run.setup.Mode != RoundRobin && b.spec.Limit != pshift.Unlimited {
			p.server.dispatcher.SetTokens(p.queue, 0, 0, 0)
		} else {
			p.haveL = pshift.Unlimited
		}
		for i := range p.tasks {
			p.tasks[i].Cost, p.tasks[i].Owner = 1, p
			p.free = append(p.free, &p.tasks[i])
		}
		b.pairs[j] = p
		b.held = append(b.held, p)
	}
	return b.pairs[j]
}

// generate lets the requests arrive that are due, open loop.
func (b *bucket) generate(now int64) {
	if b.spec.Demand == 0 {
		return
	}
	end := int64(b.run.period+1) * b.run.setup.Period
	for _, p := range b.held {
		if p.arrived < p.planned {
			p.generate(now, end)
		}
	}
}

// plan adds requests that will arrive from now to the end of the period.
func (p *pair) plan(count, now int64) { p.planned, p.from = p.arrived+count, now }

func (p *pair) generate(now, end int64) {
	rest := p.planned - p.arrived
	due := int64(float64(rest) * float64(now-p.from) / float64(max(1, end-p.from)))
	if due > 0 {
		p.arrived += due
		// The rest arrives evenly in the time that is left, from the
		// moment on at which the last due one came.
		p.from += int64(float64(due) * float64(end-p.from) / float64(rest))
		p.arrive(due, now)
	}
}

func (p *pair) outstanding() int64 { return p.submitted - p.completed }

// arrive submits requests.
func (p *pair) arrive(count, now int64) {
	p.waiting += count
	p.arrivals += count
	p.submitted += count
	p.feed(now)
	p.server.serve(now)
}

// feed shows waiting requests to the dispatcher.
func (p *pair) feed(now int64) {
	for p.waiting > 0 && p.queue.Pending() < shown && len(p.free) > 0 {
		task := p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		p.waiting--
		p.server.dispatcher.Enqueue(p.queue, task, now)
	}
}

// demand is the estimate of the requests until the period's end. At the start
// of the first period an open-loop bucket has declared them. A closed-loop
// bucket takes what it can get.
func (p *pair) demand(left int64) int64 {
	queued := p.waiting + int64(p.queue.Pending())
	switch {
	case p.bucket.spec.Demand > 0 && p.bucket.run.period == 0 && left == p.bucket.run.setup.Intervals:
		return p.planned
	case p.bucket.spec.Demand > 0:
		return pshift.EstimateDemand(queued, p.arrivals, left)
	case p.active:
		return p.bucket.run.controller.Capacity[p.server.id]
	}
	return queued
}

// owed is what a bucket used of old tokens after the last reports where it got fewer new
// ones: the next redistribution makes up for it, and nothing does in the last interval.
func (b *bucket) owed() (tokens int64) {
	for _, p := range b.held {
		tokens += p.ahead
	}
	return tokens
}

// setTokens replaces the tokens by new ones, of which some are used already.
func (p *pair) setTokens(reserved, normal, now int64) {
	p.haveR = reserved - p.reserved
	p.haveL = normal
	if normal != pshift.Unlimited { // what was used too much of one kind is missing in the other
		p.haveL -= p.normal
		if p.haveR < 0 {
			p.haveR, p.haveL = 0, p.haveL+p.haveR
		}
		if p.haveL < 0 && p.haveR > 0 {
			p.haveR, p.haveL = max(0, p.haveR+p.haveL), min(0, p.haveR+p.haveL)
		}
		p.ahead = max(0, -p.haveL)
	}
	p.server.dispatcher.SetTokens(p.queue, p.haveR, p.haveL, now)
}

// issue books an I/O that the dispatcher has let go, and checks its token.
func (p *pair) issue(now int64, grant haechi.Grant) {
	b := p.bucket
	b.issued++
	b.run.setup.Log.Line(now, "issue", int64(p.server.id), int64(b.id), int64(grant))
	switch {
	case grant == haechi.GrantReserved:
		p.reserved++
		p.haveR--
	case grant == haechi.GrantNormal && p.haveL != pshift.Unlimited:
		p.normal++
		p.haveL--
	}
	if grant == haechi.GrantReserved && p.haveR < 0 || p.haveL < 0 && grant == haechi.GrantNormal || grant == haechi.GrantOpportunistic {
		b.run.violate("bucket %d issued an I/O on server %d without a token", b.id+1, p.server.id+1)
	}
}

// complete ends an I/O; a closed-loop client submits the next.
func (p *pair) complete(now int64, task *scheduler.Task) {
	p.free = append(p.free, task)
	p.completed++
	p.bucket.done++
	if p.bucket.spec.Demand == 0 && p.active {
		p.arrive(1, now)
		return
	}
	p.feed(now)
}
