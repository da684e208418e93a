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
	done     []progress // by thread
	divided  []int64    // of one member, by thread
	heard    []heard    // by thread
	began    int64
	interval int // of the period, from 0
	started  bool
	loaded   bool // commands waited for the device in this period
	held     bool // in an interval of it limits let less pass than the device can do
}

// member is an entity over all threads.
type member struct {
	key         string
	client      int // of the monitor; -1 inside another reservation
	level       Level
	reservation int64  // tokens per period
	limit       int64  // tokens/s; Unlimited is none
	parts       []part // by thread
	attainment  attainment
}

// part is an entity on one thread.
type part struct {
	present    bool
	last       EntityReport // the newest
	mark       partTotals   // at the interval's start
	start      partTotals   // at the period's start
	backlogged bool         // in all reports of the interval
	waited     bool         // backlogged in the interval before
}

// heard counts a thread's reports of an interval.
type heard struct{ reports, backlogged int }

func (h *heard) add(backlogged bool) {
	h.reports++
	if backlogged {
		h.backlogged++
	}
}

// saturated reports whether commands waited for the device throughout. Where
// they did at times, as limits let bursts pass, the thread did not show all that
// it can do.
func (h heard) saturated() bool { return h.reports > 0 && h.backlogged == h.reports }

// partTotals are the totals of a part at one time.
type partTotals struct{ offered, served, hits, yielded int64 }

// progress is what the device has served of a thread, and what it had at the
// period's start.
type progress struct{ total, start int64 }

// device is what the device served. Cache hits say nothing of its capacity and
// use up no reservation of it.
func (s *partTotals) device() int64 { return s.served - s.hits }

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
		heard: make([]heard, config.Threads), control: NewController(0, config.Threads),
		done: make([]progress, config.Threads),
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

// Collect takes a thread's report; a thread may report as often as it likes.
// Entities that it does not name are gone from that thread.
func (c *Coordinator) Collect(r *GateReport) {
	c.heard[r.Thread].add(r.Backlogged)
	c.loaded = c.loaded || r.Backlogged
	c.done[r.Thread].total = r.Done
	for _, m := range c.members {
		m.parts[r.Thread].present = false
	}
	for i := range r.Entities {
		c.member(r.Entities[i].Entity).collect(r.Thread, &r.Entities[i])
	}
	c.dropGone()
}

// member finds or makes a member.
func (c *Coordinator) member(key string) *member {
	m := c.byKey[key]
	if m == nil {
		m = &member{key: key, client: -1, parts: make([]part, c.config.Threads)}
		for i := range m.parts {
			m.parts[i].backlogged = true
		}
		c.byKey[key] = m
		c.members = append(c.members, m)
	}
	return m
}

// collect takes an entity's report from a thread.
func (m *member) collect(thread int, e *EntityReport) {
	p := &m.parts[thread]
	if e.Number != p.last.Number { // the entity was made anew there
		*p = part{backlogged: true}
	}
	p.present, p.last = true, *e
	p.backlogged = p.backlogged && e.Backlogged
	m.limit, m.level = e.Limit, e.Level
}

// beginInterval starts counting an interval.
func (c *Coordinator) beginInterval() {
	clear(c.heard)
	for _, m := range c.members {
		for i := range m.parts {
			p := &m.parts[i]
			p.waited, p.mark, p.backlogged = p.backlogged, p.last.totals(), true
		}
	}
}

func (e *EntityReport) totals() partTotals { return partTotals{e.Offered, e.Served, e.Hits, e.Yielded} }

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
		s.hits += p.last.Hits - p.start.hits
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

// report tells the monitor what its clients have left and did, and what was done
// beside them: by who came or went within the period.
func (c *Coordinator) report() {
	others := int64(0)
	for _, p := range c.done {
		others += p.total - p.start
	}
	for _, m := range c.members {
		if m.client >= 0 {
			s := m.sums()
			c.monitor.Report(m.client, Report{Residual: m.residual(), Done: s.device()})
			others -= s.device()
		}
	}
	c.monitor.ReportOthers(max(0, others))
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
