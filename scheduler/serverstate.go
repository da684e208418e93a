package scheduler

// serverState is what the coordinator knows of a server.
type serverState struct {
	thread             int
	place              int // among the coordinator's
	backing            *backing
	present            bool  // an entity uses it
	number             int64 // of the gate's server
	last               int64 // its total in the newest report
	done               int64 // tokens that it has served in this period
	threads            int   // of a node that use the device
	residual           int64 // of its reservations, those inside others left out
	tokens             int64 // that a node may use of what nobody has reserved
	waiting            int64 // initiators of a node that want more than they have reserved
	promised           int64 // tokens that a node's entities have reserved
	needed             bool  // somebody waits for what it has reserved on a node
	weight             int64 // of a node, in what is under way
	window             int64 // millionths of the configured one; 0: all
	heard              heard
	over               bool           // the interval in which that was heard has ended
	clients, past      []*clientState // of the newest report, in order; of the one before
	heardOf            uint32         // the number of the newest report
	heardIn            uint32         // the number of the interval of that
	stayed, next       int            // how many of past are in clients; where before goes on
	served             int64          // tokens that the device has served for initiators in this interval
	throttledIntervals int            // intervals in a row in which limits held it back
}

// heard sums a server's reports of an interval up.
type heard struct {
	reports, backlogged int
	throttled           int64 // ns
}

func (h *heard) add(r *ServerReport) {
	h.reports++
	h.throttled += r.Throttled
	if r.Backlogged {
		h.backlogged++
	}
}

// leave has the server be used by nobody until it is heard again.
func (s *serverState) leave() {
	s.present, s.residual, s.stayed, s.next = false, 0, 0, 0
	s.heardOf++
	s.past, s.clients = s.clients, s.past[:0]
}

// before is the client that an entity was in the report before; nil: it has come, or the
// reports are not in order of their numbers.
func (s *serverState) before(e *EntityReport) *clientState {
	for s.next < len(s.past) && s.past[s.next].number <= e.Number {
		p := s.past[s.next]
		if s.next++; p.number == e.Number && p.member.key == e.Entity {
			return p
		}
	}
	return nil
}

// collect takes a server's report.
func (s *serverState) collect(r *ServerReport) {
	if s.over { // what an interval has told counts until something new is heard
		s.over, s.heard, s.served = false, heard{}, 0
		s.heardIn++
	}
	s.heard.add(r)
	s.backing.loaded = s.backing.loaded || r.Backlogged
	if r.Number != s.number { // the server was made anew
		s.number, s.last = r.Number, 0
	}
	s.done += r.Done - s.last
	s.backing.total += r.Done - s.last
	s.threads, s.residual = r.Threads, r.Residual
	s.backing.hear(r)
	s.last, s.present = r.Done, len(r.Entities) > 0
}

// throttledPart is the part of an interval, one in so many, in which limits may leave
// a device with room before they are said to hold it back.
const throttledPart = 16

// throttled reports whether limits held a server back in the interval.
func (c *Coordinator) throttled(s *serverState) bool {
	return s.heard.throttled*throttledPart > c.config.Period/int64(c.config.Intervals)
}

// saturated reports whether commands waited for the device throughout the
// interval. Where they did at times, as limits let bursts pass, the server did
// not show all that it can do: what limits let pass would be taken for its
// capacity, and so be all that they let pass in the next interval.
//
// Nor did a node of which a controller hears for the first time: what it has served begins to count
// with that.
func (c *Coordinator) saturated(s *serverState) bool {
	return s.heard.reports > 0 && s.heard.backlogged == s.heard.reports && !c.throttled(s) && (s.served > 0 || !c.overNodes())
}

// headroom is what a server that limits hold back may be able to do besides a
// capacity: a 64th of it at first, and the more the longer they do, up to a
// quarter. A capacity that nobody knows would else never be found.
func (s *serverState) headroom(capacity int64) int64 {
	if s.throttledIntervals == 0 {
		return 0
	}
	return capacity >> max(2, 7-s.throttledIntervals)
}

// clientState is what the coordinator knows of an entity on one server, which has it. Over nodes there
// are very many, and most of the time goes to reaching them: what every interval looks at for all of
// an entity's, or of a server's, comes first and is a cache line.
type clientState struct {
	member     *member
	server     *serverState
	number     int64 // of the gate's client: another one starts its counts anew
	queued     int64
	offered    int64  // tokens in this interval
	reserved   int64  // tokens granted
	share      int32  // of the limits, millionths
	heardOf    uint32 // the server's report that has named it last
	root       bool   // no entity around it has a reservation
	fresh      bool   // no grant has named it
	backlogged bool   // in all reports of the interval
	waited     bool   // backlogged in the interval before
	ebbing     bool   // a node says that nothing comes any more
	waits      uint8  // reports in a row in which something waited all the time; settled: as many or more
	ebbs       uint8  // likewise, in which nothing came, but for those in which nothing was served either
	heardIn    uint32 // the server's interval of the newest report
	served     int64  // tokens in this period
	period     int64  // tokens served in the last period
	last       clientTotals
}

// collect takes an entity's report, and returns what has come since the one before.
func (p *clientState) collect(e *EntityReport) (since clientTotals) {
	m, s := p.member, p.server
	if p.heardOf != s.heardOf {
		p.heardOf = s.heardOf
		s.stayed++
	}
	if e.Number != p.number { // the client was made anew there
		*p = clientState{member: m, server: s, number: e.Number, heardOf: s.heardOf, heardIn: s.heardIn, share: p.share, fresh: true, backlogged: true}
		m.fresh = true
	}
	if p.heardIn != s.heardIn {
		p.heardIn = s.heardIn
		p.waited, p.backlogged, p.offered = p.backlogged, true, 0
	}
	since = e.totals().less(p.last)
	p.last = e.totals()
	p.queued, p.root, p.ebbing, p.backlogged = e.Queued, e.Root, e.Ebbing, p.backlogged && e.Backlogged
	p.trend(e, since)
	p.offered += since.offered
	p.served += since.served
	m.done.add(since)
	if m.rate, m.limit, m.level = e.Reservation, e.Limit, e.Level; m.level == InitiatorLevel {
		s.served += since.device() // every command counts in one of these
	}
	if e.Root {
		s.residual += e.Residual
	}
	return since
}

// settled is how many reports in a row, of all those of an interval, tell where demand has gone.
const settled = 2

// trend notes whether demand has come to stay or goes away.
func (p *clientState) trend(e *EntityReport, since clientTotals) {
	if p.waits = min(p.waits+1, settled); !e.Backlogged {
		p.waits = 0
	}
	switch {
	case since.offered > 0:
		p.ebbs = 0
	case since.served > 0 || e.Queued == 0:
		p.ebbs = min(p.ebbs+1, settled)
	}
}

// beginInterval has the next report be the first of an interval.
func (s *serverState) beginInterval() {
	if s.over = true; !s.present {
		s.heard, s.served = heard{}, 0
	}
}

// clientTotals are the totals of a client at one time.
type clientTotals struct{ offered, served, hits, yielded int64 }

// device is what the device served. Cache hits say nothing of its capacity and
// use up no reservation of it.
func (s *clientTotals) device() int64 { return s.served - s.hits }

func (s *clientTotals) add(o clientTotals) {
	s.offered, s.served, s.hits, s.yielded = s.offered+o.offered, s.served+o.served, s.hits+o.hits, s.yielded+o.yielded
}

func (s clientTotals) less(o clientTotals) clientTotals {
	return clientTotals{s.offered - o.offered, s.served - o.served, s.hits - o.hits, s.yielded - o.yielded}
}

func (e *EntityReport) totals() clientTotals {
	return clientTotals{e.Offered, e.Served, e.Hits, e.Yielded}
}
