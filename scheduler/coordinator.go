package scheduler

import (
	"slices"

	"lunar/scheduler/haechi"
	"lunar/scheduler/pshift"
)

// CoordinatorConfig sets a Coordinator.
type CoordinatorConfig struct {
	Threads   int
	Period    int64 // T, ns; 0 is 1 s
	Intervals int   // redistributions per period; 0 is 5
	Monitor   haechi.MonitorConfig
	Profiles  map[string]int64 // capacity to start from by name of device, in place of Monitor.Estimator's
	Shift     pshift.Options
	Even      int64 // one part in so many of a limit is divided evenly; 0 is 4
	// Above: it is a node's, and looks to the coordinator over all nodes as threads look to
	// it.
	Above bool
	// Foreign says of which devices another coordinator has the monitor; nil: of none.
	Foreign func(device string) bool
}

// Coordinator stands over the gates of all event threads. For each backing
// device a monitor makes the tokens of each period, and every T/5 pShift divides
// what each entity has left, on all devices together, over its servers by
// demand: a server is a device as one event thread uses it. One owner calls it:
// Collect with the reports of all threads, then Redistribute, then each thread
// gets its grant. A thread whose grant is late goes on with the old one.
type Coordinator struct {
	config   CoordinatorConfig
	control  *pshift.Controller
	above    *above     // nil: there is none
	dealt    int64      // of the limits, millionths
	made     int64      // members and backings
	devices  []*backing // in order of appearance
	byDevice map[*Device]*backing
	servers  []*serverState // in order of appearance
	members  []*member      // in order of appearance
	byKey    map[string]*member
	weights  []int64 // of one member, by server
	on       []bool  // of one member, by thread
	began    int64
	interval int // of the period, from 0
	started  bool
}

// member is an entity over all servers.
type member struct {
	key         string
	number      int64 // of all that the coordinator has made
	level       Level
	quota       quota         // of the coordinator above
	uses        []use         // what that one is told
	reservation int64         // tokens per period
	limit       int64         // tokens/s; Unlimited is none
	clients     []clientState // by server
	at          []int         // the servers that it has, or had in this period, in order
	fresh       bool          // it has come to a server since the last grants
	gone        bool          // no server has it
	tokens      []int64
	shares      []int64 // of its limits, millionths, by thread; 0: it is not there
	attainment  attainment
}

// NewCoordinator returns a coordinator before its first period.
func NewCoordinator(config CoordinatorConfig) *Coordinator {
	if config.Period == 0 {
		config.Period = 1e9
	}
	if config.Intervals == 0 {
		config.Intervals = 5
	}
	if config.Even == 0 {
		config.Even = 4
	}
	config.Monitor.Period = config.Period
	c := &Coordinator{config: config, dealt: whole, byDevice: map[*Device]*backing{}, byKey: map[string]*member{}, control: pshift.NewController(0, 0)}
	if config.Above {
		c.above = &above{nodes: 1, lapsed: true}
	}
	return c
}

// Deadline is the time of the next Redistribute; 0 before the first.
func (c *Coordinator) Deadline() int64 {
	if !c.started {
		return 0
	}
	return c.began + c.config.Period*int64(c.interval+1)/int64(c.config.Intervals) + c.patience()
}

// end is when the period ends.
func (c *Coordinator) end() int64 { return c.began + c.config.Period }

// Collect takes a thread's report; a thread may report as often as it likes.
// Entities that it does not name are gone from that thread.
func (c *Coordinator) Collect(r *GateReport) {
	for j, s := range c.servers {
		if s.thread == r.Thread {
			s.leave(j)
		}
	}
	for i := range r.Servers {
		server := &r.Servers[i]
		j := c.server(r.Thread, server.Device)
		s := c.servers[j]
		s.collect(server)
		for n := range server.Entities {
			e := &server.Entities[n]
			m := s.before(n, e.Entity)
			if m == nil {
				m = c.member(e.Entity)
			}
			s.members = append(s.members, m)
			s.served += m.collect(j, e)
		}
	}
	c.removeGone(r.Thread)
}

// server finds or makes the server that a device is on a thread.
func (c *Coordinator) server(thread int, d *Device) int {
	for j, s := range c.servers {
		if s.thread == thread && s.backing.device == d {
			return j
		}
	}
	c.servers = append(c.servers, &serverState{thread: thread, backing: c.backing(d)})
	for _, m := range c.members {
		m.clients = append(m.clients, clientState{backlogged: true})
	}
	return len(c.servers) - 1
}

// member finds or makes a member.
func (c *Coordinator) member(key string) *member {
	m := c.byKey[key]
	if m == nil {
		c.made++
		m = &member{key: key, number: c.made, quota: c.newQuota(), clients: make([]clientState, len(c.servers)), tokens: make([]int64, c.config.Threads), shares: make([]int64, c.config.Threads)}
		for i := range m.clients {
			m.clients[i].backlogged = true
		}
		c.byKey[key] = m
		c.members = append(c.members, m)
	}
	return m
}

// collect takes an entity's report from a server. It returns what the device has served since
// the one before, of an initiator: every command counts in one of these.
func (m *member) collect(server int, e *EntityReport) (served int64) {
	p := &m.clients[server]
	if e.Number != p.last.Number { // the client was made anew there
		*p = clientState{backlogged: true, fresh: true, untold: p.untold}
		m.fresh = true
	}
	since := e.totals().less(p.last.totals())
	p.untold.add(since)
	p.present, p.last = true, *e
	if at, listed := slices.BinarySearch(m.at, server); !listed {
		m.at = slices.Insert(m.at, at, server)
	}
	p.backlogged = p.backlogged && e.Backlogged
	if m.limit, m.level = e.Limit, e.Level; m.level == InitiatorLevel {
		served = since.device()
	}
	return served
}

// beginInterval starts counting an interval.
func (c *Coordinator) beginInterval() {
	for _, s := range c.servers {
		s.heard, s.served = heard{}, 0
	}
	for _, m := range c.members {
		m.fresh = false
		for _, j := range m.at {
			p := &m.clients[j]
			p.waited, p.mark, p.backlogged, p.fresh = p.backlogged, p.last.totals(), true, false
		}
	}
}

// Grow makes room for a number of threads.
func (c *Coordinator) Grow(threads int) {
	more := make([]int64, max(0, threads-c.config.Threads))
	c.config.Threads += len(more)
	for _, m := range c.members {
		m.tokens, m.shares = append(m.tokens, more...), append(m.shares, more...)
	}
}

// removeGone removes members that were on a thread and that no server has any more.
func (c *Coordinator) removeGone(thread int) {
	any := false
	for _, s := range c.servers {
		if s.thread != thread {
			continue
		}
		for _, m := range s.past {
			if !m.gone && !m.present() {
				m.gone, any = true, true
				delete(c.byKey, m.key)
			}
		}
	}
	if !any {
		return
	}
	kept := c.members[:0]
	for _, m := range c.members {
		if !m.gone {
			kept = append(kept, m)
		}
	}
	clear(c.members[len(kept):])
	c.members = kept
}

// removeServers removes servers that no entity uses, at the end of the period in
// which they still counted.
func (c *Coordinator) removeServers() {
	kept, places := 0, make([]int, len(c.servers))
	for j, s := range c.servers {
		if !s.present {
			continue
		}
		c.servers[kept], places[j] = s, kept
		for _, m := range c.members {
			m.clients[kept] = m.clients[j]
		}
		kept++
	}
	if kept == len(c.servers) {
		return
	}
	clear(c.servers[kept:])
	c.servers = c.servers[:kept]
	for _, m := range c.members {
		m.clients = m.clients[:kept]
		for i, j := range m.at { // none of a server that is gone
			m.at[i] = places[j]
		}
	}
}

// present reports whether the entity is anywhere.
func (m *member) present() bool {
	for _, j := range m.at {
		if m.clients[j].present {
			return true
		}
	}
	return false
}

// sums adds up the clients since the period's start.
func (m *member) sums() (s clientTotals) {
	for _, j := range m.at {
		p := &m.clients[j]
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
	for _, b := range c.devices {
		if !b.foreign {
			b.monitor.Check(now)
		}
	}
}

// report tells each device's monitor what of its reservations is left, and what
// it did, also for who came or went within the period.
func (c *Coordinator) report() {
	for _, b := range c.devices {
		r := haechi.Report{}
		for j, s := range c.servers {
			if s.backing == b {
				r.Done += s.done
				r.Residual += c.residual(j)
			}
		}
		b.monitor.Report(initiators, r)
	}
}

// residual is what is reserved of a server. What lies inside another
// reservation is part of it.
func (c *Coordinator) residual(server int) (residual int64) {
	if c.overNodes() {
		return c.servers[server].residual
	}
	for _, m := range c.servers[server].members {
		if p := &m.clients[server]; p.last.Root {
			residual += p.last.Residual
		}
	}
	return residual
}
