package load

import (
	"time"

	"lunar/internal/evloop"
)

// lateness is how far behind its rate a connection may fall and still make up
// for it.
const lateness = int64(100 * time.Millisecond)

// pace spreads a connection's commands over time.
type pace struct {
	gap   float64 // ns from one command to the next; 0 is no pace
	next  float64 // when the next is due
	timer evloop.Timer
}

func newPace(rate float64) pace {
	if rate == 0 {
		return pace{}
	}
	return pace{gap: 1e9 / rate}
}

// due reports whether a command may start at now.
func (p *pace) due(now int64) bool {
	if p.gap == 0 {
		return true
	}
	p.next = max(p.next, float64(now-lateness))
	return p.next <= float64(now)
}

// took says that a command has started.
func (p *pace) took() { p.next += p.gap }

// wait arms the timer for a connection whose next command is not due yet. A window
// that is closed opens with a response, which is a turn of its own.
func (c *connection) wait() {
	if c.pace.gap == 0 || len(c.free) == 0 || c.pace.timer.Armed() || !c.engine.issuing || !c.state.WindowOpen() {
		return
	}
	c.pace.timer.Fire = c.Run
	c.engine.loop.ArmAt(&c.pace.timer, int64(c.pace.next)+1)
}
