package taskset

import "math"

// Turn is where a command stands among the others, by age. The zero Turn is older than
// all.
type Turn struct {
	place uint64 // by arrival
	order uint64 // among those that stand ahead of the one with the place, by arrival
}

const (
	itself = math.MaxUint64 - iota // order of the one that the place is of
	kept                           // order of those that have not entered yet
)

// Before reports whether t is older than o.
func (t Turn) Before(o Turn) bool {
	return t.place < o.place || t.place == o.place && t.order < o.order
}

// Ahead is the Turn of a command that has not entered yet but came before one with the
// Turn t: when it enters it stands behind all that have entered, or will have by then,
// with such a Turn, and ahead of t.
func (t Turn) Ahead() Turn { return Turn{t.place, kept} }

// place gives a command that enters its Turn.
func (s *Set) place(c *Command) {
	switch {
	case c.Turn == Turn{}:
		s.last++
		c.Turn = Turn{s.last, itself}
	case c.Turn.order == kept:
		s.ahead++
		c.Turn.order = s.ahead
	}
}
