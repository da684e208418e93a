package scheduler

// server is a device as one event thread uses it.
type server struct {
	thread   int
	backing  *backing
	present  bool  // an entity uses it
	number   int64 // of the gate's site
	last     int64 // its total in the newest report
	done     int64 // tokens that it has served in this period
	heard    heard
	heldBack int // intervals in a row in which limits held it back
}

// heard sums a server's reports of an interval up.
type heard struct {
	reports, backlogged int
	held                int64 // ns
}

func (h *heard) add(r *SiteReport) {
	h.reports++
	h.held += r.Held
	if r.Backlogged {
		h.backlogged++
	}
}

// collect takes a site's report.
func (s *server) collect(r *SiteReport) {
	s.heard.add(r)
	s.backing.loaded = s.backing.loaded || r.Backlogged
	if r.Number != s.number { // the site was made anew
		s.number, s.last = r.Number, 0
	}
	s.done += r.Done - s.last
	s.last, s.present = r.Done, len(r.Entities) > 0
}

// heldPart is the part of an interval, one in so many, in which limits may leave
// a device with room before they are said to hold it back.
const heldPart = 16

// held reports whether limits held a server back in the interval.
func (c *Coordinator) held(s *server) bool {
	return s.heard.held*heldPart > c.config.Period/int64(c.config.Intervals)
}

// saturated reports whether commands waited for the device throughout the
// interval. Where they did at times, as limits let bursts pass, the server did
// not show all that it can do: what limits let pass would be taken for its
// capacity, and so be all that they let pass in the next interval.
func (c *Coordinator) saturated(s *server) bool {
	return s.heard.reports > 0 && s.heard.backlogged == s.heard.reports && !c.held(s)
}

// room is what a server that limits hold back may be able to do besides a
// capacity: a 64th of it at first, and the more the longer they do, up to a
// quarter. A capacity that nobody knows would else never be found.
func (s *server) room(capacity int64) int64 {
	if s.heldBack == 0 {
		return 0
	}
	return capacity >> max(2, 7-s.heldBack)
}
