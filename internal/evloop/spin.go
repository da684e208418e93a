package evloop

import "time"

// Poll says whether a loop that has nothing to do looks for work again and again
// before it sleeps: a wake-up costs more time than many looks. The zero value
// never looks.
type Poll struct {
	Always bool          // it never sleeps
	Limit  time.Duration // the longest look otherwise
	Budget int           // percent of the time that may go into looks that find no work; 0: any
}

// SetPoll tells the loop when to look for work. Unless it is to look always, it does
// so while looking pays and the budget lasts, so that an idle loop sleeps.
func (l *Loop) SetPoll(p Poll) {
	l.spin.always, l.spin.limit, l.spin.budget = p.Always, int64(p.Limit), int64(p.Budget)
}

// SetBusyPoll is SetPoll with a limit and no budget.
func (l *Loop) SetBusyPoll(limit time.Duration) { l.SetPoll(Poll{Limit: limit}) }

// spinner decides whether it pays to look, and when. Requests may come at any time, and
// are looked for from the beginning of an idle time. The answer to an operation under
// way does not come before it is due: until then the thread sleeps. It learns from every
// idle time, whether that was spent looking or asleep. An idle loop sleeps.
type spinner struct {
	always bool
	limit  int64 // longest look in nanoseconds; 0 never looks
	budget int64 // percent; 0: any

	awaited  []*Answers // those with operations under way
	requests [2]habit   // of idle times without and with operations under way
	late     int64      // how late the clock ends a sleep, nanoseconds
	paid     int64      // until when the budget is spent

	// Of this idle time:
	next    [3]expected // requests, of the answers the first, and the first of those that pay
	alarm   int64       // when the clock ends the sleep, 0: it is open
	looking int64       // since when, 0: not now
	looked  bool
	vain    bool // a look has ended without work
}

// expected is what may come next; without a habit, nothing.
type expected struct {
	*habit
	due int64
}

const (
	// spinAdvance is how far ahead, in nanoseconds, the budget may be spent.
	spinAdvance = 10_000_000
	// spinLate is the most that a sleep is taken to end late: more is the machine's load.
	spinLate = 50_000
)

// Await notes that the operation of a begins in this pass.
func (l *Loop) Await(a *Await, of *Answers) {
	l.assertThread("Await")
	l.spin.await(a, of, l.now)
}

// Answered notes that the operation of a has ended.
func (l *Loop) Answered(a *Await) {
	l.assertThread("Answered")
	l.spin.answered(a, l.now)
}

func (s *spinner) await(a *Await, of *Answers, now int64) {
	if of.first == nil {
		of.place = len(s.awaited)
		s.awaited = append(s.awaited, of)
	}
	of.begin(a, now)
}

func (s *spinner) answered(a *Await, now int64) {
	of := a.of
	of.end(a, now)
	if of.first != nil {
		return
	}
	last := len(s.awaited) - 1
	s.awaited[of.place] = s.awaited[last]
	s.awaited[of.place].place = of.place
	s.awaited[last] = nil
	s.awaited = s.awaited[:last]
}

// begin is called when there is nothing to do from now on.
func (s *spinner) begin(now int64) {
	s.alarm, s.looking, s.looked, s.vain = 0, 0, false, false
	s.next = [3]expected{{&s.requests[min(len(s.awaited), 1)], now}}
	for _, a := range s.awaited {
		due := a.due()
		if due+s.limit <= now {
			continue
		}
		s.next[1].earlier(a, due)
		if a.pays() {
			s.next[2].earlier(a, due)
		}
	}
	if s.next[1] == s.next[2] {
		s.next[2] = expected{}
	}
}

func (e *expected) earlier(a *Answers, due int64) {
	if e.habit == nil || due < e.due {
		*e = expected{&a.habit, due}
	}
}

// wait returns for how long to sleep: 0 is to look, negative until there is work.
func (s *spinner) wait(now int64) time.Duration {
	if s.always {
		return 0
	}
	if s.alarm > 0 && now >= s.alarm {
		s.oversleeps(now - s.alarm)
	}
	d := s.sleep(now)
	s.alarm = 0
	switch {
	case d == 0 && s.looking == 0:
		s.looking, s.looked = now, true
		s.late -= s.late >> 8 // without a sleep nothing else tells that the clock is on time again
	case d != 0 && s.looking > 0:
		s.pay(now)
	}
	if d > 0 {
		s.alarm = now + d
	}
	return time.Duration(d)
}

// sleep is wait without a memory.
func (s *spinner) sleep(now int64) int64 {
	sleep := int64(-1)
	if s.limit == 0 || s.paid > now+spinAdvance {
		return sleep
	}
	for _, e := range s.next {
		if e.habit == nil || !e.pays() || now >= e.due+s.limit {
			continue
		}
		early := e.due - s.late - now
		if early <= s.late { // so short a sleep would save nothing
			return 0
		}
		if sleep < 0 || early < sleep {
			sleep = early
		}
	}
	return sleep
}

// oversleeps learns how late the clock ends a sleep.
func (s *spinner) oversleeps(late int64) { s.late += (min(late, spinLate) - s.late) / 8 }

// pay ends a look in vain.
func (s *spinner) pay(now int64) {
	if s.budget > 0 {
		s.paid = max(s.paid, now) + (now-s.looking)*100/s.budget
	}
	s.looking, s.vain = 0, true
}

// end is called when there is work again. It tells whether the loop had looked, and
// whether in vain.
func (s *spinner) end(now int64) (looked, vain bool) {
	if s.alarm > 0 && now >= s.alarm { // work came first: how late the clock is remains unknown
		s.oversleeps(spinLate)
	}
	over := true
	for _, e := range s.next {
		if e.habit == nil {
			continue
		}
		hit := now < e.due+s.limit
		over = over && !hit
		if now >= e.due-s.late {
			e.learn(hit)
		}
	}
	if s.looking > 0 && over {
		s.pay(now)
	}
	return s.looked, s.vain
}
