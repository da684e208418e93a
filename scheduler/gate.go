package scheduler

// GateConfig sets a Gate.
type GateConfig struct {
	Arbitration Arbitration
	Mode        PoolMode
	// Window is how many dispatched commands may be under way at once; more
	// wait here, where order can be chosen. 0 is no bound.
	Window int
	Period int64 // T, ns; 0 is 1 s
	Batch  int64 // B, tokens; 0 is 1000
	// Lead is how far ahead of their even spread reservation tokens may be
	// used, ns; 0 is 5 ms, negative releases a period's tokens at once.
	Lead  int64
	Yield YieldMode
}

// Gate is the scheduler of one event thread, which alone calls it. Commands
// come in by Admit; those that it does not let pass at once come out of Next.
// Every method that takes now must get a time not before the last one.
type Gate struct {
	on         bool // a policy with rules is in force
	config     GateConfig
	engine     EngineConfig
	thread     int
	policy     *Policy
	dispatcher *Dispatcher
	inflight   int
	saturated  bool  // a command waited for the window since the last report
	done       int64 // tokens that the device has served

	entities []*entity
	made     int64 // entities
	byKey    map[string]*entity
	flows    []*Queue // in order of opening
	end      int64    // of the period
}

// NewGate returns the gate of a thread without rules: everything passes. pool
// is the coordinator's.
func NewGate(thread int, config GateConfig, pool *Pool) *Gate {
	if config.Period == 0 {
		config.Period = 1e9
	}
	if config.Batch == 0 {
		config.Batch = 1000
	}
	if config.Lead == 0 {
		config.Lead = 5e6
	}
	return &Gate{
		config: config, thread: thread, policy: &Policy{},
		engine:     EngineConfig{Period: config.Period, Batch: config.Batch, Lead: max(0, config.Lead), Yield: config.Yield},
		dispatcher: NewDispatcher(config.Arbitration, config.Mode, pool),
		byKey:      map[string]*entity{},
	}
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

// admit lets a command pass if nothing waits that could run in its place.
func (g *Gate) admit(q *Queue, t *Task, now int64) bool {
	if q.place == isOut && g.room() && !g.dispatcher.ready() && g.dispatcher.admit(q, t, now) {
		g.inflight++
		return true
	}
	g.saturated = g.saturated || !g.room()
	g.dispatcher.Enqueue(q, t, now)
	return false
}

func (g *Gate) room() bool { return g.config.Window == 0 || g.inflight < g.config.Window }

// Next returns a waiting command that may run now, its tokens taken; nil if
// there is none. It is due after Admit returned false, after Done and at Wake,
// until it returns nil.
func (g *Gate) Next(now int64) *Task {
	if !g.room() {
		return nil
	}
	t := g.dispatcher.Next(now)
	if t != nil {
		g.inflight++
	}
	return t
}

// Wake is the time at which Next may have a command though nothing was Done;
// math.MaxInt64 if no time helps.
func (g *Gate) Wake() int64 { return g.dispatcher.Wake() }

// Done says that a command that was let pass has ended.
func (g *Gate) Done(t *Task, now int64) {
	if t.queue == nil {
		return
	}
	g.inflight--
	if !t.Hit {
		g.done += t.Cost
	}
	g.dispatcher.Done(t, now)
}

// Cancel takes a waiting command out; it must not have been let pass.
func (g *Gate) Cancel(t *Task, now int64) { g.dispatcher.Cancel(t, now) }

// Waiting is how many commands wait.
func (g *Gate) Waiting() int { return g.dispatcher.Waiting() }

// InFlight is how many commands were let pass and have not ended.
func (g *Gate) InFlight() int { return g.inflight }

// Tick is due every millisecond while Active: engines yield, and reservation
// tokens that have become due bring their queues forward.
func (g *Gate) Tick(now int64) {
	for _, e := range g.entities {
		e.engine.Tick(now)
	}
	g.dispatcher.RefreshAll(now)
}

// Active reports whether Tick and the messages are needed.
func (g *Gate) Active() bool { return g.on || g.dispatcher.waiting > 0 }
