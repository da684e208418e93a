package load

import (
	"time"

	"lunar/internal/evloop"
)

const (
	// lateness is how far behind its rate a connection may fall and still make
	// up for it.
	lateness = int64(100 * time.Millisecond)
	// burstLateness is the same where the rate is the most that may be sent.
	burstLateness = int64(time.Millisecond)
	// burstTime is how often a burst becomes due, at multiples of it.
	burstTime = int64(time.Second)
)

// pace spreads a connection's commands over time.
type pace struct {
	gap      float64 // ns from one command to the next; 0 is no pace
	next     float64 // when the next is due; 0: none was
	phase    float64 // part of the gap after which the first is due, so that connections do not send all at once
	lateness int64
	timer    evloop.Timer

	burst int64 // commands that become due at once; 0: there are no bursts
	left  int64 // that have and were not sent
	at    int64 // when more do
}

func newPace(rate float64, burst int, phase float64) pace {
	p := pace{phase: phase, burst: int64(burst), lateness: lateness}
	if rate > 0 {
		p.gap = 1e9 / rate
	}
	if burst > 0 {
		p.lateness = burstLateness
	}
	return p
}

// due reports whether a command may start at now.
func (p *pace) due(now int64) bool {
	if p.burst > 0 && now >= p.at {
		if p.at = now - now%burstTime + burstTime; p.left < p.burst { // what nobody serves does not pile up
			p.left += p.burst
		}
	}
	if p.burst > 0 && p.left == 0 {
		return false
	}
	if p.gap == 0 {
		return true
	}
	if p.next == 0 {
		p.next = float64(now-p.lateness) + p.phase*p.gap
	}
	p.next = max(p.next, float64(now-p.lateness))
	return p.next <= float64(now)
}

// took says that a command has started.
func (p *pace) took() {
	p.next += p.gap
	if p.burst > 0 {
		p.left--
	}
}

// when is when the next command is due, if none is.
func (p *pace) when() int64 {
	if p.burst > 0 && p.left == 0 {
		return p.at
	}
	return int64(p.next) + 1
}

// wait arms the timer for a connection whose next command is not due yet. A window
// that is closed opens with a response, which is a turn of its own.
func (c *connection) wait() {
	unpaced := c.pace.gap == 0 && c.pace.burst == 0
	if unpaced || len(c.free) == 0 || c.pace.timer.Armed() || !c.engine.issuing || !c.state.WindowOpen() {
		return
	}
	c.pace.timer.Fire = c.Run
	c.engine.loop.ArmAt(&c.pace.timer, c.pace.when())
}
