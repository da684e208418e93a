package scheduler

// serverState is what the coordinator knows of a server.
type serverState struct {
	thread             int
	backing            *backing
	present            bool  // an entity uses it
	number             int64 // of the gate's server
	last               int64 // its total in the newest report
	done               int64 // tokens that it has served in this period
	threads            int   // of a node that use the device
	residual           int64 // of a node
	tokens             int64 // that a node may use of what nobody has reserved
	weight             int64 // of a node, in what is under way
	window             int64 // millionths of the configured one; 0: all
	heard              heard
	members, past      []*member // of the newest report, in order; of the one before
	served             int64     // tokens that the device has served for initiators in this interval
	throttledIntervals int       // intervals in a row in which limits held it back
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

// leave has the server be used by nobody until it is heard again. Its clients are the j-th.
func (s *serverState) leave(j int) {
	s.present = false
	for _, m := range s.members {
		m.clients[j].present = false
	}
	s.past, s.members = s.members, s.past[:0]
}

// before is the member that was the n-th, if it has that key; nil: it has not.
func (s *serverState) before(n int, key string) *member {
	if n < len(s.past) && !s.past[n].gone && s.past[n].key == key {
		return s.past[n]
	}
	return nil
}

// collect takes a server's report.
func (s *serverState) collect(r *ServerReport) {
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
func (c *Coordinator) saturated(s *serverState) bool {
	return s.heard.reports > 0 && s.heard.backlogged == s.heard.reports && !c.throttled(s)
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

// clientState is what the coordinator knows of an entity on one server.
type clientState struct {
	present    bool
	fresh      bool         // no grant has named it
	last       EntityReport // the newest
	mark       clientTotals // at the interval's start
	start      clientTotals // at the period's start
	backlogged bool         // in all reports of the interval
	waited     bool         // backlogged in the interval before
	reserved   int64        // tokens granted
	untold     clientTotals // what the coordinator above was not told
	period     int64        // tokens served in the last period
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
