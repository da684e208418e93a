package haechi

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/scripts/sim/kernel"
)

// window is the number of I/Os that a client keeps outstanding.
const window = 64

// wire is the time in ns from the node to the client and back; with both
// stations an unloaded round trip stays below the 60 µs of the model.
const wire = 8_000

// maxTime is the longest latency that histograms tell apart.
const maxTime = 3600 * second

// io is one outstanding I/O of a client.
type io struct {
	scheduler.Task
	client    *client
	submitted int64
}

// client is one host: its demand and its NIC, through which the data comes
// after the node has served an I/O, and at the node its queue and its engine.
// An I/O is in flight until its data has arrived, so that the engine does not
// take a client for idle that its own NIC slows down.
type client struct {
	run     *run
	id      int
	spec    Client
	engine  *haechi.Engine
	queue   *scheduler.Queue
	backlog backlog // submitted and not yet at the node
	ios     [window]io
	free    []*io
	flight  flight // served and not yet arrived
	nicFree int64  // when the NIC has received what the node has served
	latency *hdrhistogram.Histogram

	submitted, completed int64 // of the run
	done                 int64 // of the period
	reserved             int64 // reservation tokens spent in the period
	issued               int   // on the device of a served node
	nextArrival          int64 // number of the period's next request, constant rate
}

// flight is the I/Os whose data is under way, with the times of arrival, oldest
// first. One event at a time stands for all of them.
type flight struct {
	ios         [window]*io
	at          [window]int64
	first, size int
}

// What the events of a client mean.
const (
	submit  int32 = iota // the next request of a constant rate
	arrived              // the data of the oldest I/O in flight has arrived
)

func newClient(r *run, id int) *client {
	c := &client{run: r, id: id, spec: r.setup.Clients[id]}
	config := haechi.EngineConfig{Period: second, Batch: r.setup.Batch, Yield: r.setup.Yield}
	if r.setup.LocalCap {
		config.LocalCapacity = second / r.setup.ClientCost
	}
	c.engine = haechi.NewEngine(config)
	if r.served == nil {
		c.queue = r.server.dispatcher.Add(scheduler.QueueConfig{Engines: []*haechi.Engine{c.engine}})
	}
	for i := range c.ios {
		c.ios[i].client, c.ios[i].Cost, c.ios[i].Owner = c, 1, &c.ios[i]
		c.free = append(c.free, &c.ios[i])
	}
	if r.setup.Latency {
		c.latency = hdrhistogram.New(1_000, maxTime, 3)
		r.out.Latency = append(r.out.Latency, c.latency)
	}
	return c
}

// beginPeriod gives the engine its tokens and submits by the pattern.
func (c *client) beginPeriod(now int64) {
	c.done, c.reserved, c.nextArrival = 0, 0, 0
	if c.run.served == nil {
		if c.run.setup.QoS {
			c.engine.BeginPeriod(now, c.run.monitor.Reservation(c.id))
		}
		c.run.server.dispatcher.Refresh(c.queue, now)
	}
	switch c.spec.Pattern {
	case Closed:
		if c.submitted == 0 {
			c.submit(now, window)
		}
	case Burst:
		c.submit(now, c.spec.Demand)
	case Constant:
		c.planArrival(now)
	}
	c.send(now)
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
	if what == submit {
		c.submit(now, 1)
		c.planArrival(now / second * second)
		c.send(now)
		return
	}
	f := &c.flight
	x := f.ios[f.first]
	f.first, f.size = (f.first+1)%window, f.size-1
	if f.size > 0 {
		c.run.kernel.At(f.at[f.first], kernel.Completion, c, arrived)
	}
	c.complete(now, x)
}

func (c *client) submit(now, count int64) {
	c.backlog.push(now, count)
	c.submitted += count
}

// send gives requests to the node while the window allows it.
func (c *client) send(now int64) {
	for len(c.free) > 0 && c.backlog.count > 0 {
		x := c.free[len(c.free)-1]
		c.free = c.free[:len(c.free)-1]
		x.submitted = c.backlog.pop()
		if c.run.served != nil {
			c.run.served.arrive(x, now)
			continue
		}
		c.run.waited = c.run.waited || c.run.server.current != nil
		c.run.server.dispatcher.Enqueue(c.queue, &x.Task, now)
	}
	if c.run.served == nil {
		c.run.server.serve(now)
	}
}

// receive takes the data of a served I/O through the NIC.
func (c *client) receive(now int64, x *io) {
	c.nicFree = max(c.nicFree, now) + c.run.setup.ClientCost
	f := &c.flight
	last := (f.first + f.size) % window
	f.ios[last], f.at[last] = x, c.nicFree+wire
	if f.size++; f.size == 1 {
		c.run.kernel.At(f.at[last], kernel.Completion, c, arrived)
	}
}

// issue books an I/O that the dispatcher has let go, and checks that it had a token.
func (c *client) issue(now int64, grant haechi.Grant) {
	c.run.setup.Log.Line(now, "issue", int64(c.id), int64(grant))
	c.run.issued++
	if !c.run.setup.QoS {
		return
	}
	if grant == haechi.GrantReserved {
		c.reserved++
	}
	switch {
	case grant != haechi.GrantReserved && grant != haechi.GrantNormal:
		c.run.violate("client %d issued an I/O without a token", c.id+1)
	case c.reserved > c.spec.Reservation || c.engine.Residual() < 0:
		c.run.violate("client %d spent %d reservation tokens of %d", c.id+1, c.reserved, c.spec.Reservation)
	case c.engine.Local() < 0:
		c.run.violate("client %d spent %d global tokens that it had not fetched", c.id+1, -c.engine.Local())
	}
}

// complete ends an I/O.
func (c *client) complete(now int64, x *io) {
	if c.run.served != nil {
		c.run.served.done(x, now)
	} else {
		c.run.server.dispatcher.Done(&x.Task, now)
	}
	c.done++
	c.completed++
	c.free = append(c.free, x)
	if c.latency != nil && c.run.period >= 0 {
		c.latency.RecordValue(min(now-x.submitted, maxTime))
	}
	if c.spec.Pattern == Closed {
		c.submit(now, 1)
	}
	c.send(now)
}

// balance checks that no request was lost or ran twice.
func (c *client) balance() {
	inFlight := int64(c.flight.size)
	if c.run.served != nil {
		inFlight += int64(c.run.served.held(c))
	} else {
		inFlight += int64(c.queue.Pending())
	}
	if current := c.run.server.current; current != nil && current.client == c {
		inFlight++
	}
	if out := int64(window - len(c.free)); inFlight != out || c.submitted != c.completed+c.backlog.count+inFlight {
		c.run.violate("client %d submitted %d requests: %d completed, %d queued, %d in flight (window says %d)",
			c.id+1, c.submitted, c.completed, c.backlog.count, inFlight, out)
	}
}
