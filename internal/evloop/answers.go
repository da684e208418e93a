package evloop

// Answers learns how long operations of one kind take, such as the small reads of one
// device, so that a thread that waits for one can sleep until it is due and look from
// then on. It belongs to the thread of one loop. The zero value knows nothing yet.
type Answers struct {
	habit
	soon        int64  // nanoseconds that they take; about one in ten takes less
	first, last *Await // operations under way, oldest first
	place       int    // among those that have some
}

// Await is one operation under way. It is embedded in the object that it serves.
type Await struct {
	of         *Answers
	since      int64
	prev, next *Await
}

func (s *Answers) begin(a *Await, now int64) {
	*a = Await{of: s, since: now, prev: s.last}
	if s.last == nil {
		s.first = a
	} else {
		s.last.next = a
	}
	s.last = a
}

func (s *Answers) end(a *Await, now int64) {
	s.took(now - a.since)
	if a.prev == nil {
		s.first = a.next
	} else {
		a.prev.next = a.next
	}
	if a.next == nil {
		s.last = a.prev
	} else {
		a.next.prev = a.prev
	}
	*a = Await{}
}

// took follows the tenth percentile: a step down is eight times as long as one up, so
// that both balance when about one in ten is sooner.
func (s *Answers) took(d int64) {
	switch {
	case s.soon == 0:
		s.soon = d
	case d < s.soon:
		s.soon = max(d, s.soon-s.soon>>6)
	default:
		s.soon = min(d, s.soon+s.soon>>9+1)
	}
}

// due returns when the oldest operation's answer may be there.
func (s *Answers) due() int64 { return s.first.since + s.soon }
