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
	config    CoordinatorConfig
	control   *pshift.Controller
	above     *above                    // nil: there is none
	elsewhere func(entity string) int64 // of its limits, millionths, that other nodes have; nil: none
	made      int64                     // members and backings
	devices   []*backing                // in order of appearance
	byDevice  map[*Device]*backing
	servers   []*serverState // in order of appearance
	members   []*member      // in order of appearance
	byKey     map[string]*member
	weights   []int64 // of one member, by client
	on        []bool  // of one member, by thread
	away      []bool  // by thread: a node that has not reported in this interval
	began     int64
	interval  int // of the period, from 0
	started   bool
}

// member is an entity over all servers.
type member struct {
	key         string
	number      int64 // of all that the coordinator has made
	level       Level
	fresh       bool           // it has come to a server since the last grants
	gone        bool           // no server has it
	done        clientTotals   // in this period
	rate        int64          // of the reservation, tokens/s
	limit       int64          // tokens/s; Unlimited is none
	reservation int64          // tokens per period
	at          []*clientState // its clients, in order of their servers
	quota       quota          // of the coordinator above
	uses        []use          // what that one is told
	tokens      []int64        // by thread
	shares      []int64        // of its limits, millionths, by thread; 0: it is not there
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
	c := &Coordinator{config: config, byDevice: map[*Device]*backing{}, byKey: map[string]*member{}, control: pshift.NewController(0, 0)}
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
	for _, s := range c.servers {
		if s.thread == r.Thread {
			s.leave()
		}
	}
	for i := range r.Servers {
		server := &r.Servers[i]
		s := c.server(r.Thread, server.Device)
		s.collect(server)
		for n := range server.Entities {
			c.collect(s, &server.Entities[n])
		}
	}
	c.removeGone(r.Thread)
}

// collect takes what a report says of an entity on a server.
func (c *Coordinator) collect(s *serverState, e *EntityReport) {
	p := s.before(e)
	if p == nil {
		p = c.client(s, e)
	}
	e.Entity = p.member.key // the same memory is soon compared
	s.clients = append(s.clients, p)
	if since := p.collect(e); c.above != nil {
		p.member.use(s.backing).totals.add(since)
	}
}

// server finds or makes the server that a device is on a thread.
func (c *Coordinator) server(thread int, d *Device) *serverState {
	for _, s := range c.servers {
		if s.thread == thread && s.backing.device == d {
			return s
		}
	}
	s := &serverState{thread: thread, place: len(c.servers), backing: c.backing(d)}
	c.servers = append(c.servers, s)
	return s
}

// client finds or makes the client of an entity on a server.
func (c *Coordinator) client(s *serverState, e *EntityReport) *clientState {
	m := c.member(e.Entity)
	at, found := slices.BinarySearchFunc(m.at, s.place, func(p *clientState, place int) int { return p.server.place - place })
	if !found {
		m.fresh = true
		m.at = slices.Insert(m.at, at, &clientState{member: m, server: s, number: e.Number, heardOf: s.heardOf, heardIn: s.heardIn, fresh: true, backlogged: true})
	}
	return m.at[at]
}

// member finds or makes a member.
func (c *Coordinator) member(key string) *member {
	m := c.byKey[key]
	if m == nil {
		c.made++
		m = &member{key: key, number: c.made, quota: c.newQuota(), tokens: make([]int64, c.config.Threads), shares: make([]int64, c.config.Threads)}
		c.byKey[key] = m
		c.members = append(c.members, m)
	}
	return m
}

// Grow makes room for a number of threads.
func (c *Coordinator) Grow(threads int) {
	more := make([]int64, max(0, threads-c.config.Threads))
	c.config.Threads += len(more)
	for _, m := range c.members {
		m.tokens, m.shares = append(m.tokens, more...), append(m.shares, more...)
	}
}

// removeGone removes clients that a thread's newest report does not name, and members that no
// server has any more.
func (c *Coordinator) removeGone(thread int) {
	any := false
	for _, s := range c.servers {
		if s.thread != thread || s.stayed == len(s.past) {
			continue
		}
		for _, p := range s.past {
			if p.heardOf == s.heardOf || p.member.gone {
				continue
			}
			if p.member.leave(p); p.member.gone {
				any = true
				delete(c.byKey, p.member.key)
			}
		}
	}
	if any {
		c.members = slices.DeleteFunc(c.members, func(m *member) bool { return m.gone })
	}
}

// leave has the entity be on a server no more.
func (m *member) leave(p *clientState) {
	m.at = slices.DeleteFunc(m.at, func(o *clientState) bool { return o == p })
	m.gone = len(m.at) == 0
}

// removeServers removes servers that no entity uses, at the end of the period in
// which they still counted.
func (c *Coordinator) removeServers() {
	c.servers = slices.DeleteFunc(c.servers, func(s *serverState) bool { return !s.present })
	for place, s := range c.servers {
		s.place = place
	}
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
// it did, also for who came or went within the period. What lies inside another
// reservation is part of it.
func (c *Coordinator) report() {
	for _, b := range c.devices {
		r := haechi.Report{}
		for _, s := range c.servers {
			if s.backing == b {
				r.Done += s.done
				r.Residual += s.residual
			}
		}
		b.monitor.Report(initiators, r)
	}
}
