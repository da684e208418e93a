package haechi

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"lunar/scheduler"
	"lunar/sim/kernel"
)

// client is one host: its demand, its token gate, its NIC.
type client struct {
	run     *run
	id      int
	spec    Client
	engine  *scheduler.Engine
	queue   backlog
	flight  ring  // issued and not yet at the server, in order
	out     int   // issued and not completed
	nicFree int64 // when the NIC has sent what it has
	latency *hdrhistogram.Histogram

	submitted, completed int64 // of the run
	done                 int64 // of the period
	reserved             int64 // reservation tokens spent in the period
	issued               int64 // of the period
	fetched              int64 // global tokens fetched less those spent in the period
	nextArrival          int64 // number of the period's next request, constant rate
}

// What the events of a client mean.
const (
	submit  int32 = iota // the next request of a constant rate
	atNode               // the oldest I/O in flight reaches the server
	maxTime = int64(3600) * second
)

func newClient(r *run, id int) *client {
	c := &client{run: r, id: id, spec: r.setup.Clients[id]}
	c.engine = scheduler.NewEngine(scheduler.EngineConfig{
		Period: second, Limit: c.spec.Limit, Batch: r.setup.Batch,
		LocalCapacity: second / r.setup.ClientCost, Yield: r.setup.Yield,
	})
	if r.setup.Latency {
		c.latency = hdrhistogram.New(1_000, maxTime, 3)
		r.out.Latency = append(r.out.Latency, c.latency)
	}
	return c
}

// beginPeriod gives the engine its tokens and submits by the pattern.
func (c *client) beginPeriod(now int64) {
	c.done, c.reserved, c.issued, c.fetched, c.nextArrival = 0, 0, 0, 0, 0
	c.engine.BeginPeriod(now, c.run.monitor.Reservation(c.id))
	switch c.spec.Pattern {
	case Closed:
		if c.submitted == 0 {
			c.accept(now, window)
		}
	case Burst:
		c.accept(now, c.spec.Demand)
	case Constant:
		c.planArrival(now)
	}
}

// planArrival plans the next request of a constant rate; the requests of a
// period are at equal distances from its start on.
func (c *client) planArrival(periodStart int64) {
	if c.nextArrival < c.spec.Demand {
		at := periodStart + c.nextArrival*second/c.spec.Demand
		c.nextArrival++
		c.run.kernel.At(at, kernel.Arrival, c, submit)
	}
}

// Fire runs an event of the client.
func (c *client) Fire(now int64, what int32) {
	if what == atNode {
		c.run.waited = c.run.waited || c.run.server.busy
		c.run.server.arrive(now, c.id, c.flight.pop())
		return
	}
	c.accept(now, 1)
	c.planArrival(now / second * second)
	c.fill(now)
}

func (c *client) accept(now, count int64) {
	c.queue.push(now, count)
	c.submitted += count
	if c.run.setup.QoS {
		c.engine.Arrive(count, now)
	}
}

// fill issues while the window and the tokens allow it.
func (c *client) fill(now int64) {
	for c.out < window && c.queue.count > 0 {
		grant := c.gate(now)
		if grant == scheduler.GrantNone || grant == scheduler.GrantLimit {
			return
		}
		c.issue(now, grant)
	}
}

// gate asks the engine for a token, and the pool through it.
func (c *client) gate(now int64) scheduler.Grant {
	if !c.run.setup.QoS {
		return scheduler.GrantOpportunistic
	}
	grant := c.engine.Issue(1)
	if grant != scheduler.GrantNone {
		return grant
	}
	held := c.engine.Local()
	if !c.engine.Fetch(&c.run.monitor.Pool, now) {
		return scheduler.GrantNone
	}
	c.fetched += c.engine.Local() - held
	c.run.setup.Log.Line(now, "fetch", int64(c.id), c.engine.Local())
	return c.engine.Issue(1)
}

// issue sends the oldest request through the NIC.
func (c *client) issue(now int64, grant scheduler.Grant) {
	c.book(grant)
	c.run.setup.Log.Line(now, "issue", int64(c.id), int64(grant))
	c.flight.push(io{submitted: c.queue.pop(), reserved: grant == scheduler.GrantReserved})
	c.out++
	c.nicFree = max(c.nicFree, now) + c.run.setup.ClientCost
	c.run.kernel.At(c.nicFree+wire, kernel.Arrival, c, atNode)
}

// book counts an I/O against what the client was given: no I/O without a
// token, none above the limit.
func (c *client) book(grant scheduler.Grant) {
	c.issued++
	c.run.issued++
	switch grant {
	case scheduler.GrantReserved:
		if c.reserved++; c.reserved > c.spec.Reservation {
			c.run.violate("client %d spent %d reservation tokens of %d", c.id+1, c.reserved, c.spec.Reservation)
		}
	case scheduler.GrantNormal:
		if c.fetched--; c.fetched < 0 {
			c.run.violate("client %d issued an I/O without a token", c.id+1)
		}
	}
	if c.spec.Limit > 0 && c.issued > c.spec.Limit {
		c.run.violate("client %d issued %d I/Os in a period, limit %d", c.id+1, c.issued, c.spec.Limit)
	}
}

// complete ends an I/O.
func (c *client) complete(now int64, x io) {
	c.out--
	c.done++
	c.completed++
	if c.run.setup.QoS {
		c.engine.Complete(1, now)
	}
	if c.latency != nil && c.run.period >= 0 {
		// A time above the histogram's range would only be one that is too
		// long for any run.
		_ = c.latency.RecordValue(now - x.submitted)
	}
	if c.spec.Pattern == Closed {
		c.accept(now, 1)
	}
	c.fill(now)
}

// balance is the invariant that no request was lost or ran twice.
func (c *client) balance() {
	inFlight := int64(c.flight.size)
	for class := range classes {
		inFlight += int64(c.run.server.queues[c.id][class].size)
	}
	if c.run.server.busy && c.run.server.serving == c.id {
		inFlight++
	}
	if inFlight != int64(c.out) || c.submitted != c.completed+c.queue.count+inFlight {
		c.run.violate("client %d submitted %d requests: %d completed, %d queued, %d in flight (window says %d)",
			c.id+1, c.submitted, c.completed, c.queue.count, inFlight, c.out)
	}
}
