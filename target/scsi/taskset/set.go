package taskset

import "slices"

// Attribute is a task attribute (SAM-5 clause 8.6).
type Attribute uint8

// The task attributes.
const (
	Simple      Attribute = iota
	Ordered               // waits for all older commands, and those that are newer for it
	HeadOfQueue           // never waits, others wait for it
	ACA                   // the one command that the faulted nexus may send during an ACA condition
)

// Command is a command of the task set. Its owner sets the exported fields and
// leaves them alone until Remove.
type Command struct {
	Attribute Attribute
	Class     Class
	Extent    Extent
	Nexus     any  // that it came by; comparable
	NACA      bool // of its CONTROL byte
	Preempts  bool // PREEMPT AND ABORT, which no ACA condition of another keeps out
	Alone     bool // its attribute is for its own nexus: others' commands do not wait for it
	Owner     any

	// Turn is where the command stands. Enter gives one to a command that has
	// none, or has that of Turn.Ahead.
	Turn Turn

	dormant bool
	settled bool // ORDERED: all older commands have ended
}

// Verdict is what becomes of a command that enters.
type Verdict uint8

// The verdicts.
const (
	Enabled   Verdict = iota // it runs
	Dormant                  // it waits until it is among those that another call returns
	ACAActive                // refused with ACA ACTIVE status
	Busy                     // refused with BUSY status
	NoACA                    // refused: the ACA attribute without an ACA condition
)

// Set is a task set. The zero Set is empty.
type Set struct {
	last    uint64     // place of the command that entered last
	ahead   uint64     // of commands that had an older place kept for them
	present []*Command // those other than SIMPLE, and all that are dormant
	faulted any        // nexus that has the ACA condition
}

// Watched reports whether commands have to Enter: a command that others may wait
// for is there, or an ACA condition.
func (s *Set) Watched() bool { return len(s.present) > 0 || s.faulted != nil }

// Enter takes a command into the set. Each one that is not refused needs a Remove.
func (s *Set) Enter(c *Command) Verdict {
	if s.faulted != nil || c.Attribute == ACA {
		if refusal := s.admit(c); refusal != Enabled {
			return refusal
		}
	}
	s.place(c)
	c.dormant = s.faulted == nil && (c.Attribute == Ordered || c.Attribute == Simple && s.waits(c))
	if c.dormant || c.Attribute != Simple {
		s.present = append(s.present, c)
	}
	if c.dormant {
		return Dormant
	}
	return Enabled
}

// admit judges a command by the ACA condition (SAM-5 clause 5.9, for TST 000b).
func (s *Set) admit(c *Command) Verdict {
	own := c.Nexus == s.faulted
	switch {
	case s.faulted == nil:
		return NoACA
	case own && c.Attribute == ACA && !slices.ContainsFunc(s.present, func(o *Command) bool { return o.Attribute == ACA }),
		!own && c.Preempts:
		return Enabled
	case own, c.NACA, c.Attribute == ACA:
		return ACAActive
	}
	return Busy
}

// waits reports whether a command that is not enabled has to wait.
func (s *Set) waits(c *Command) bool {
	if c.Attribute == Ordered && !c.settled {
		return true
	}
	return slices.ContainsFunc(s.present, func(o *Command) bool { return o != c && o.delays(c) })
}

// delays reports whether c waits for o. ORDERED stands for all that is before it
// as well, whatever it does itself.
func (o *Command) delays(c *Command) bool {
	if o.Alone && o.Nexus != c.Nexus {
		return false
	}
	switch o.Attribute {
	case Ordered:
		return c.Attribute == Simple && o.Turn.Before(c.Turn) && c.Class != Free
	case HeadOfQueue, ACA:
		return o.interferes(c)
	}
	return false
}

// Settled tells that all commands older than c, which is ORDERED, have ended. It
// returns those that are enabled by that.
func (s *Set) Settled(c *Command) []*Command {
	c.settled = true
	return s.enable()
}

// Remove takes a command that has ended out of the set, and returns those that
// are enabled by that.
func (s *Set) Remove(c *Command) []*Command {
	s.present = slices.DeleteFunc(s.present, func(o *Command) bool { return o == c })
	return s.enable()
}

// Failed tells that c has ended with CHECK CONDITION status: with NACA that makes
// an ACA condition, if there is none; without, it ends the one that c has the
// attribute for.
func (s *Set) Failed(c *Command) []*Command {
	switch {
	case c.NACA && s.faulted == nil:
		s.faulted = c.Nexus
	case !c.NACA && c.Attribute == ACA:
		return s.Clear(c.Nexus)
	}
	return nil
}

// Clear ends the ACA condition of a nexus, or with nil any, and returns those
// that are enabled by that.
func (s *Set) Clear(nexus any) []*Command {
	if s.faulted == nil || nexus != nil && nexus != s.faulted {
		return nil
	}
	s.faulted = nil
	return s.enable()
}

// enable returns the dormant commands that may run now, which they do.
func (s *Set) enable() (enabled []*Command) {
	if s.faulted != nil {
		return nil
	}
	for _, c := range s.present {
		if c.dormant && !s.waits(c) {
			c.dormant = false
			enabled = append(enabled, c)
		}
	}
	s.present = slices.DeleteFunc(s.present, func(c *Command) bool { return !c.dormant && c.Attribute == Simple })
	return enabled
}
