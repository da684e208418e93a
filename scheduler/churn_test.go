package scheduler

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"lunar/internal/racetest"
	"lunar/scheduler/haechi"
)

// churn is a server's life in short: commands come and go on several threads
// while rules change and initiators and logical units appear and disappear.
type churn struct {
	t       *testing.T
	rng     *rand.Rand
	coord   *Coordinator
	devices []*Device
	mode    PoolMode
	gates   []*Gate
	queues  [][]*Queue // open ones, by gate
	running [][]*Task
	state   map[*Task]string
	now     int64
	offered int
	done    int
	log     func(format string, args ...any)
}

func newChurn(t *testing.T, seed uint64, mode PoolMode, log func(string, ...any)) *churn {
	c := &churn{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), mode: mode, state: map[*Task]string{}, log: log,
		coord:  NewCoordinator(CoordinatorConfig{Threads: 3, Period: 100 * ms, Monitor: haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: 1000}}}),
		queues: make([][]*Queue, 3), running: make([][]*Task, 3), devices: []*Device{{Name: "x"}, {Name: "y"}},
	}
	for thread := range 3 {
		c.gates = append(c.gates, NewGate(thread, GateConfig{Window: 4, Threads: 3, Mode: mode, Period: 100 * ms, Batch: 20}))
	}
	return c
}

// change puts random rules into force.
func (c *churn) change() {
	lun := uint64(c.rng.IntN(2))
	reservation, limit := Rate{IOPS: c.rng.Int64N(3000)}, Rate{}
	if c.rng.IntN(2) == 0 {
		limit = Rate{IOPS: reservation.IOPS + 1 + c.rng.Int64N(3000), Bytes: 4096 * (1 + c.rng.Int64N(5000))}
	}
	all := []Rule{
		{Name: "a", Initiators: []string{"a*"}, Reservation: reservation, Limit: limit, Class: Class(c.rng.IntN(4))},
		{Name: "all", Initiators: []string{"*"}, Limit: Rate{IOPS: 500 + c.rng.Int64N(5000)}, Weight: c.rng.Int64N(5)},
		{Name: "group", Group: "g", Reservation: Rate{IOPS: c.rng.Int64N(2000)}},
		{Name: "unit", Initiators: []string{"*"}, LUN: &lun, Reservation: reservation, Class: Class(c.rng.IntN(4))},
	}
	from := c.rng.IntN(3)
	p, err := NewPolicy(all[from:from+c.rng.IntN(len(all)-from+1)], []Group{{"g", []string{"a1", "b?"}}}, Cost{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, g := range c.gates {
		g.Apply(p, c.now)
	}
}

// open and shut bring sessions and take them away, with what waits.
func (c *churn) open(thread int) {
	f := Flow{Initiator: []string{"a1", "a2", "b1", "c"}[c.rng.IntN(4)], Target: "t", LUN: uint64(c.rng.IntN(2))}
	c.queues[thread] = append(c.queues[thread], c.gates[thread].Open(f, c.devices[f.LUN], c.now))
}

func (c *churn) shut(thread int) {
	open, g := c.queues[thread], c.gates[thread]
	if len(open) == 0 {
		return
	}
	q := open[c.rng.IntN(len(open))]
	for q.Pending() > 0 {
		t := q.tasks.head
		if c.rng.IntN(2) == 0 {
			t = q.tasks.tail
		}
		g.Cancel(t, c.now)
		c.to(t, "waiting", "done")
	}
	c.running[thread] = slices.DeleteFunc(c.running[thread], func(t *Task) bool {
		if t.Queue() == q {
			c.finish(thread, t)
		}
		return t.Queue() == q
	})
	c.queues[thread] = slices.DeleteFunc(open, func(x *Queue) bool { return x == q })
	g.Close(q, c.now)
}

// to moves a command from one state to the next.
func (c *churn) to(t *Task, from, state string) {
	if c.state[t] != from {
		c.t.Fatalf("at %d: found a command %q, expected %q before %q", c.now, c.state[t], from, state)
	}
	c.state[t] = state
	if state == "done" {
		c.done++
	}
}

func (c *churn) offer(thread int) {
	if len(c.queues[thread]) == 0 {
		return
	}
	t := &Task{Cost: 1 + c.rng.Int64N(8)}
	t.Bytes = 4096 * t.Cost
	q := c.queues[thread][c.rng.IntN(len(c.queues[thread]))]
	c.offered++
	if c.gates[thread].Admit(q, t, c.now) {
		c.run(thread, t, "")
	} else {
		c.to(t, "", "waiting")
	}
}

func (c *churn) run(thread int, t *Task, from string) {
	c.to(t, from, "running")
	c.running[thread] = append(c.running[thread], t)
	if t.Queue() == nil {
		return
	}
	c.log("%d %d %d %d %d", c.now, thread, t.Queue().slot, t.Cost, t.Grant())
	if g := t.Grant(); g != haechi.GrantReserved && g != haechi.GrantNormal && (g != haechi.GrantOpportunistic || c.mode == HardPool) {
		c.t.Fatalf("found a command dispatched with %d", g)
	}
}

func (c *churn) finish(thread int, t *Task) {
	t.Hit = c.rng.IntN(8) == 0
	c.gates[thread].Done(t, c.now)
	c.to(t, "running", "done")
}

// step is one event on one thread.
func (c *churn) step() {
	thread := c.rng.IntN(3)
	switch n := c.rng.IntN(1000); {
	case n < 5:
		c.change()
	case n < 20 && len(c.queues[thread]) < 8:
		c.open(thread)
	case n < 30:
		c.shut(thread)
	case n < 500:
		c.offer(thread)
	case len(c.running[thread]) > 0:
		at := c.rng.IntN(len(c.running[thread]))
		t := c.running[thread][at]
		c.running[thread] = slices.Delete(c.running[thread], at, at+1)
		c.finish(thread, t)
	}
	for t := c.gates[thread].Next(c.now); t != nil; t = c.gates[thread].Next(c.now) {
		c.run(thread, t, "waiting")
	}
	c.pass(c.rng.Int64N(ms / 4))
	c.check(c.gates[thread])
}

// pass lets time pass, with the ticks and redistributions that are due.
func (c *churn) pass(ns int64) {
	before := c.now / ms
	if c.now += ns; c.now/ms == before {
		return
	}
	for _, g := range c.gates {
		g.Tick(c.now)
	}
	if c.now >= c.coord.Deadline() {
		exchange(c.coord, c.now, c.gates...)
	} else if c.rng.IntN(4) == 0 {
		welcome(c.coord, c.now, c.gates...)
		c.checkShares()
	}
}

// checkShares checks that the threads' shares of a limit are no more than all of
// it, but for those that have just come to a thread.
func (c *churn) checkShares() {
	shares := map[string]int64{}
	for _, g := range c.gates {
		for _, e := range g.entities {
			if e.queues > 0 {
				shares[e.Key] += e.share
			}
		}
	}
	for key, share := range shares {
		if share > whole && c.coord.byKey[key] != nil {
			c.t.Fatalf("at %d: %s has %d millionths of its limits", c.now, key, share)
		}
	}
}

// check compares what engines count with what the queues hold, and servers and
// their windows with what runs.
func (c *churn) check(g *Gate) {
	pend, inflight, servers := map[*haechi.Engine]int64{}, map[*haechi.Engine]int64{}, map[*server]int{}
	waiting := 0
	for q := range g.flows.all() {
		waiting += q.Pending()
		servers[q.server] += q.Pending()
		for _, e := range append([]*haechi.Engine{q.engine}, q.inner...) {
			pend[e] += q.pendingTokens()
			inflight[e] += q.inflight
		}
	}
	for e, n := range pend {
		if e.Pending() != n || e.InFlight() != inflight[e] {
			c.t.Fatalf("at %d: an engine counts %d pending and %d in flight, its queues %d and %d", c.now, e.Pending(), e.InFlight(), n, inflight[e])
		}
	}
	for s, n := range servers {
		if s.dispatcher.Waiting() != n || g.busy.has(s.slot) != (n > 0) || s.inflight > s.window || s.inflight < 0 {
			c.t.Fatalf("at %d: device %s counts %d waiting and %d in flight, its queues %d", c.now, s.device.Name, s.dispatcher.Waiting(), s.inflight, n)
		}
	}
	if waiting != g.Waiting() || len(g.entities) != len(g.byKey) {
		c.t.Fatalf("at %d: found %d waiting and %d entities, expected %d and %d", c.now, g.Waiting(), len(g.entities), waiting, len(g.byKey))
	}
}

// drain serves all that is left.
func (c *churn) drain() {
	for range 200_000 {
		left := 0
		for thread, g := range c.gates {
			for t := g.Next(c.now); t != nil; t = g.Next(c.now) {
				c.run(thread, t, "waiting")
			}
			for _, t := range c.running[thread] {
				c.finish(thread, t)
			}
			c.running[thread] = nil
			left += g.Waiting()
		}
		if left == 0 {
			return
		}
		c.pass(ms)
	}
	c.t.Fatal("found commands that are never served")
}

// leave closes all sessions. Nothing is kept of them once nothing is owed any more.
func (c *churn) leave() {
	for thread := range c.gates {
		for len(c.queues[thread]) > 0 {
			c.shut(thread)
		}
	}
	for range 200 {
		c.pass(100 * ms)
	}
	for _, g := range c.gates {
		servers := slices.DeleteFunc(slices.Clone(g.servers), func(s *server) bool { return s == nil })
		if len(g.byKey)+len(g.entities)+len(servers)+g.flows.list.Len() > 0 {
			c.t.Errorf("found %d entities, %d servers and %d queues, expected none", len(g.entities), len(servers), g.flows.list.Len())
		}
	}
	if k := c.coord; len(k.members)+len(k.byKey)+len(k.servers) > 0 || len(k.devices) > len(c.devices) {
		c.t.Errorf("found %d members, %d servers and %d devices", len(k.members), len(k.servers), len(k.devices))
	}
}

// TestChurn: whatever changes, every command is let pass once or cancelled,
// none without a token that its mode asks for, and none waits for ever. The
// same seed gives the same decisions.
func TestChurn(t *testing.T) {
	seeds := uint64(3)
	if racetest.Enabled {
		seeds = 1 // all gates are of one goroutine
	}
	for _, mode := range []PoolMode{SoftPool, HardPool, NoPool} {
		for seed := range seeds {
			var sums [2]uint64
			for i := range sums {
				h := fnv.New64a()
				c := newChurn(t, seed, mode, func(format string, args ...any) { fmt.Fprintf(h, format, args...) })
				c.change()
				for range 5_000 {
					c.step()
				}
				c.drain()
				c.leave()
				if c.done != c.offered {
					t.Errorf("mode %d, seed %d: found %d of %d commands done", mode, seed, c.done, c.offered)
				}
				sums[i] = h.Sum64()
			}
			if sums[0] != sums[1] {
				t.Errorf("mode %d, seed %d: found different decisions in the second run", mode, seed)
			}
		}
	}
}
