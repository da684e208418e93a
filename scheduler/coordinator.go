package scheduler

// CoordinatorConfig sets a Coordinator.
type CoordinatorConfig struct {
	Threads   int
	Period    int64 // T, ns; 0 is 1 s
	Intervals int   // redistributions per period; 0 is 5
	Monitor   MonitorConfig
	Shift     ShiftOptions
}

// Coordinator stands over the gates of one backstore device: the monitor makes
// the tokens of each period, and every T/5 pShift divides what each entity has
// left over the event threads by demand. One owner calls it: Collect with the
// reports of all threads, then Redistribute, then each thread gets its grant.
// A thread whose grant is late goes on with the old one.
type Coordinator struct {
	config   CoordinatorConfig
	monitor  *Monitor
	control  *Controller
	members  []*member // in order of appearance
	byKey    map[string]*member
	threads  []threadState
	began    int64
	interval int // of the period, from 0
	started  bool
	loaded   bool // commands waited for the device in this period
}

// member is an entity over all threads.
type member struct {
	key         string
	client      int // of the monitor; -1 inside another reservation
	rule        int
	reservation int64 // tokens per period
	limited     bool
	parts       []part // by thread
	attainment  attainment
}

// part is an entity on one thread.
type part struct {
	present bool
	last    EntityReport // the newest
	offered int64        // in the last interval
	served  int64        // in the last interval
	start   partTotals   // at the period's start
}

// partTotals are the totals of a part at one time.
type partTotals struct{ offered, served, yielded int64 }

// threadState is what the coordinator knows of a thread.
type threadState struct {
	backlogged bool
	served     int64 // in the last interval
}

// NewCoordinator returns a coordinator before its first period.
func NewCoordinator(config CoordinatorConfig) *Coordinator {
	if config.Period == 0 {
		config.Period = 1e9
	}
	if config.Intervals == 0 {
		config.Intervals = 5
	}
	config.Monitor.Period = config.Period
	return &Coordinator{
		config: config, monitor: NewMonitor(config.Monitor), byKey: map[string]*member{},
		threads: make([]threadState, config.Threads), control: NewController(0, config.Threads),
	}
}

// Monitor is the coordinator's monitor; its Pool is for the gates.
func (c *Coordinator) Monitor() *Monitor { return c.monitor }

// Deadline is the time of the next Redistribute; 0 before the first.
func (c *Coordinator) Deadline() int64 {
	if !c.started {
		return 0
	}
	return c.began + c.config.Period*int64(c.interval+1)/int64(c.config.Intervals)
}

// Collect takes a thread's report. Entities that it does not name are gone
// from that thread.
func (c *Coordinator) Collect(r *GateReport) {
	t := &c.threads[r.Thread]
	t.backlogged, t.served = r.Backlogged, 0
	c.loaded = c.loaded || r.Backlogged
	for _, m := range c.members {
		m.parts[r.Thread].present = false
	}
	for i := range r.Entities {
		e := &r.Entities[i]
		served := c.member(e.Entity).collect(r.Thread, e)
		if e.Level == InitiatorLevel { // every command counts there once
			t.served += served
		}
	}
	c.dropGone()
}

// member finds or makes a member.
func (c *Coordinator) member(key string) *member {
	m := c.byKey[key]
	if m == nil {
		m = &member{key: key, client: -1, parts: make([]part, c.config.Threads)}
		c.byKey[key] = m
		c.members = append(c.members, m)
	}
	return m
}

// collect takes an entity's report from a thread; it returns what was served
// there since the one before.
func (m *member) collect(thread int, e *EntityReport) (served int64) {
	p := &m.parts[thread]
	if e.Served < p.last.Served { // the entity was made anew there
		p.last, p.start = EntityReport{}, partTotals{}
	}
	p.offered, p.served = e.Offered-p.last.Offered, e.Served-p.last.Served
	p.present, p.last = true, *e
	m.rule, m.limited = e.Rule, e.Limited
	return p.served
}

// dropGone removes members that no thread has.
func (c *Coordinator) dropGone() {
	kept := c.members[:0]
	for _, m := range c.members {
		if m.present() > 0 {
			kept = append(kept, m)
			continue
		}
		delete(c.byKey, m.key)
		if m.client >= 0 {
			c.monitor.Leave(m.client)
		}
	}
	clear(c.members[len(kept):])
	c.members = kept
}

// present is on how many threads the entity is.
func (m *member) present() int {
	n := 0
	for i := range m.parts {
		if m.parts[i].present {
			n++
		}
	}
	return n
}

// sums adds up the parts since the period's start.
func (m *member) sums() (s partTotals) {
	for i := range m.parts {
		p := &m.parts[i]
		s.offered += p.last.Offered - p.start.offered
		s.served += p.last.Served - p.start.served
		s.yielded += p.last.Yielded - p.start.yielded
	}
	return s
}

// Check converts unused reservations into global tokens, between two calls of
// Redistribute as often as the reports come.
func (c *Coordinator) Check(now int64) {
	c.report()
	c.monitor.Check(now)
}

// report tells the monitor what its clients have left and did.
func (c *Coordinator) report() {
	for _, m := range c.members {
		if m.client >= 0 {
			c.monitor.Report(m.client, Report{Residual: m.residual(), Done: m.sums().served})
		}
	}
}

func (m *member) residual() int64 {
	residual := int64(0)
	for i := range m.parts {
		if m.parts[i].present {
			residual += m.parts[i].last.Residual
		}
	}
	return residual
}
