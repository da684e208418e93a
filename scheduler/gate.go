package scheduler

import (
	"math"
	"slices"

	"lunar/scheduler/haechi"
)

// GateConfig sets a Gate.
type GateConfig struct {
	Arbitration Arbitration
	Mode        PoolMode
	// Window is how many dispatched commands may be under way at once on each
	// device; more wait here, where order can be chosen. 0 is no bound.
	Window int
	// Threads is how many event threads share the limits; 0 is 1.
	Threads int
	// Nodes: the limits are shared with gates of other nodes, too.
	Nodes  bool
	Period int64 // T, ns; 0 is 1 s
	Batch  int64 // B, tokens; 0 is by the device's capacity
	// Lead is how far ahead of their even spread reservation tokens may be
	// used, ns; 0 is 5 ms, negative releases a period's tokens at once.
	Lead  int64
	Yield haechi.YieldMode
	// Turn is for how long, in ns, the thread serves somebody until those who go
	// first may interrupt; 0 is DefaultTurn.
	Turn int64
}

// DefaultTurn is about what the commands of one system call of a busy connection take.
const DefaultTurn = 30e3

// Gate is the scheduler of one event thread, which alone calls it. Commands
// come in by Admit; those that it does not let pass at once come out of Next.
// Every method that takes now must get a time not before the last one.
type Gate struct {
	on       bool // a policy with rules is in force
	config   GateConfig
	thread   int
	policy   *Policy
	servers  []*server // by slot; nil is free
	busy     bitset    // the servers at which commands wait
	turn     int       // where Next looks next, so that devices take turns
	waiting  int
	turns    Turns
	promised int   // queues that have a reservation, or are urgent
	urgent   int   // queues of that class
	made     int64 // servers and clients
	done     int64 // tokens of commands that have ended

	leavers int // clients that no queue uses, and that linger

	entities []*entity
	byKey    map[string]*entity
	flows    flows
	end      int64 // of the period
}

// NewGate returns the gate of a thread without rules: everything passes.
func NewGate(thread int, config GateConfig) *Gate {
	if config.Period == 0 {
		config.Period = 1e9
	}
	if config.Lead == 0 {
		config.Lead = 5e6
	}
	if config.Turn == 0 {
		config.Turn = DefaultTurn
	}
	g := &Gate{config: config, thread: thread, policy: &Policy{}, byKey: map[string]*entity{}}
	g.turns.SetLength(config.Turn)
	return g
}

// Turns shares the thread. It is of use while somebody is Promised.
func (g *Gate) Turns() *Turns { return &g.turns }

// Promised reports whether there is a queue that may go before others.
func (g *Gate) Promised() bool { return g.promised > 0 }

// Urgent reports whether commands may come that go before all others.
func (g *Gate) Urgent() bool { return g.urgent > 0 }

// engineConfig is what an entity's engine in a server goes by.
func (g *Gate) engineConfig(e *entity, s *server) haechi.EngineConfig {
	batch := g.config.Batch
	if batch == 0 {
		batch = s.batch
	}
	return haechi.EngineConfig{Period: g.config.Period, Batch: batch, Lead: e.lead(max(0, g.config.Lead)), Yield: g.config.Yield}
}

// Admit offers a command of a queue at now. True: it may run, its tokens are
// taken. False: it waits and will come from Next. Without rules all may run.
func (g *Gate) Admit(q *Queue, t *Task, now int64) (dispatch bool) {
	if !g.on {
		t.queue = nil
		return true
	}
	return g.admit(q, t, now)
}

// admit lets a command pass if nothing waits that could run before it.
func (g *Gate) admit(q *Queue, t *Task, now int64) bool {
	s := q.server
	if q.tasks.length == 0 && s.free() && !s.dispatcher.outranks(q) && s.dispatcher.admit(q, t, now) {
		s.inflight++
		if !s.free() {
			s.unthrottle(now)
		}
		return true
	}
	s.saturated = s.saturated || !s.free()
	s.dispatcher.Enqueue(q, t, now)
	g.waiting++
	if s.dispatcher.waiting == 1 {
		g.busy.add(s.slot)
	}
	return false
}

// Next returns a waiting command that may run now, its tokens taken; nil if
// there is none. It is due after Admit returned false, after Done and at Wake,
// until it returns nil.
func (g *Gate) Next(now int64) *Task {
	if len(g.servers) == 1 && g.waiting > 0 {
		return g.next(g.servers[0], now)
	}
	for range g.busy.count {
		at := g.busy.next(g.turn)
		g.turn = at + 1
		if t := g.next(g.servers[at], now); t != nil {
			return t
		}
	}
	return nil
}

func (g *Gate) next(s *server, now int64) *Task {
	if !s.free() {
		return nil
	}
	t := s.dispatcher.Next(now)
	if t == nil {
		s.throttle(now)
		return nil
	}
	s.inflight++
	g.dequeued(s)
	s.unthrottle(now)
	return t
}

// dequeued notes that a command waits no longer.
func (g *Gate) dequeued(s *server) {
	g.waiting--
	if s.dispatcher.waiting == 0 {
		g.busy.remove(s.slot)
	}
}

// Wake is the time at which Next may have a command though nothing was Done;
// math.MaxInt64 if no time helps.
func (g *Gate) Wake() int64 {
	at := int64(math.MaxInt64)
	for i := g.busy.from(0); i >= 0; i = g.busy.from(i + 1) {
		if s := g.servers[i]; s.free() { // else Done comes first
			at = min(at, s.dispatcher.Wake())
		}
	}
	return at
}

// Done says that a command that was let pass has ended.
func (g *Gate) Done(t *Task, now int64) {
	if t.queue == nil {
		return
	}
	s := t.queue.server
	s.inflight--
	g.done += t.Cost
	if !t.Hit {
		s.done += t.Cost
	}
	s.dispatcher.Done(t, now)
}

// Cancel takes a waiting command out; it must not have been let pass.
func (g *Gate) Cancel(t *Task, now int64) {
	s := t.queue.server
	s.dispatcher.Cancel(t, now)
	g.dequeued(s)
	if s.dispatcher.limited == 0 {
		s.unthrottle(now)
	}
}

// Waiting is how many commands wait.
func (g *Gate) Waiting() int { return g.waiting }

// InFlight is how many commands were let pass and have not ended.
func (g *Gate) InFlight() (n int) {
	for _, s := range g.servers {
		if s != nil {
			n += s.inflight
		}
	}
	return n
}

// Tick is due every millisecond while Hurried, and with each report while Active: engines yield,
// and reservation tokens that have become due bring their queues forward.
func (g *Gate) Tick(now int64) {
	for _, s := range g.servers {
		if s == nil {
			continue
		}
		for _, p := range s.clients {
			p.engine.Tick(now)
		}
		if s.dispatcher.waiting > 0 {
			s.dispatcher.RefreshAll(now)
		}
	}
}

// Hurried reports whether time alone changes something between two reports: somebody has a
// reservation, tokens of which become due or are yielded, or waits.
func (g *Gate) Hurried() bool {
	return g.waiting > 0 || slices.ContainsFunc(g.servers, func(s *server) bool {
		return s != nil && slices.ContainsFunc(s.clients, func(p *client) bool { return p.entity.reservation > 0 })
	})
}

// Active reports whether Tick and the messages are needed.
func (g *Gate) Active() bool { return g.on || g.waiting > 0 }
