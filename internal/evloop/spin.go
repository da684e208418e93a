package evloop

// spinner decides whether it pays to look for work again and again before
// going to sleep: a wake-up costs more time than many looks. It learns from
// every idle time, whether it was spent looking or asleep: those that end
// within limit speak for looking, the others against it. An idle loop sleeps.
type spinner struct {
	limit int64 // longest look in nanoseconds; 0 never looks
	score int   // looking pays while it is at least spinFrom
}

const (
	spinFrom = 8
	spinMost = 16
	// spinMiss is what one idle time longer than limit takes off the score:
	// a look in vain costs the whole limit, one that pays saves less.
	spinMiss = 4
)

// pays reports whether to go on looking after idle nanoseconds without work.
func (s *spinner) pays(idle int64) bool { return s.score >= spinFrom && idle < s.limit }

// learn takes in how long the loop was idle before it found work.
func (s *spinner) learn(idle int64) {
	if idle < s.limit {
		s.score = min(s.score+1, spinMost)
	} else {
		s.score = max(s.score-spinMiss, 0)
	}
}
