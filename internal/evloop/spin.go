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
	l.spin = spinner{always: p.Always, limit: int64(p.Limit), score: l.spin.score}
	if p.Budget > 0 {
		l.spin.price = 100 * l.spin.limit / int64(p.Budget)
	}
}

// SetBusyPoll is SetPoll with a limit and no budget.
func (l *Loop) SetBusyPoll(limit time.Duration) { l.SetPoll(Poll{Limit: limit}) }

// spinner decides whether it pays to look. It learns from every idle time, whether it
// was spent looking or asleep: those that end within limit speak for looking, the
// others against it. An idle loop sleeps.
type spinner struct {
	always  bool
	limit   int64 // longest look in nanoseconds; 0 never looks
	price   int64 // of a look that finds no work: the time in which the budget earns it
	paid    int64 // until when the budget is spent
	score   int   // looking pays while it is at least spinFrom
	looking bool  // in this idle time
}

const (
	spinFrom = 8
	spinMost = 16
	// spinMiss is what one idle time longer than limit takes off the score:
	// a look that finds no work costs the whole limit, one that pays saves less.
	spinMiss = 4
	// spinAdvance is how far ahead, in nanoseconds, the budget may be spent.
	spinAdvance = 10_000_000
)

// pays reports whether to go on looking after idle nanoseconds without work.
func (s *spinner) pays(idle, now int64) bool {
	if s.always {
		return true
	}
	if s.score < spinFrom || idle >= s.limit || s.paid > now+spinAdvance {
		return false
	}
	s.looking = true
	return true
}

// learn takes in how long the loop was idle before it found work. It tells whether
// it had looked, and whether it found no work.
func (s *spinner) learn(idle, now int64) (looked, vain bool) {
	looked, vain = s.looking, s.looking && idle >= s.limit
	s.looking = false
	if vain {
		s.paid = max(s.paid, now) + s.price
	}
	if idle < s.limit {
		s.score = min(s.score+1, spinMost)
	} else {
		s.score = max(s.score-spinMiss, 0)
	}
	return looked, vain
}
