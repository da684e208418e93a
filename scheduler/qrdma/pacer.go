package qrdma

import "lunar/scheduler/qtcp"

// The constants of a Pacer.
const (
	// burst is how long a flow's rate may be saved up, in ns: a thread does not look at its
	// connections more often. makeUp is the same for a flow that waits for its rate and is
	// looked at late.
	burst, makeUp = 500_000, 20_000_000
	// smoothing is the part that the last operation has in how long operations take.
	smoothing = 1.0 / 8
	// catchUp bounds the intervals that are made up for at once. In so many a flow has
	// recovered whatever it may recover.
	catchUp = 256
)

// Pacer spaces what one connection posts by the rate of its Flow, or by what it is allowed if
// that is less, and tells the Flow about congestion: operations that end later than the
// shortest by more than a delay, beside the time that their bytes take on the line. NewPacer
// makes one. Times are in ns on one clock of the caller's, rates in bytes per second.
type Pacer struct {
	Flow
	line     Line
	delay    int64
	allowed  float64       // rate
	credit   float64       // bytes that may be posted; below 0: that were posted too early
	at       int64         // when it was that
	waits    bool          // nothing might be posted then
	took     float64       // how long operations take
	least    qtcp.Shortest // time of one, beside that of its bytes
	underway int64         // bytes
	began    int64         // of the interval
	late     bool          // one of its operations ended late
	moved    int64         // bytes that have ended since the last measurement
	since    int64         // that, beside idle intervals
}

// Stamp is an operation that was posted.
type Stamp struct{ At, Bytes int64 }

// NewPacer returns a pacer that has posted nothing by now.
func NewPacer(l Line, delay, now int64) Pacer {
	return Pacer{Flow: NewFlow(l), line: l, delay: delay, allowed: l.Rate, at: now, began: now, since: now}
}

// Interval is the time between two updates of the flow: that of an operation, for nothing is
// learned sooner.
func (p *Pacer) Interval() int64 { return max(Interval, int64(p.took)) }

// Pace is how fast the connection may post: its flow's rate or what it is allowed.
func (p *Pacer) Pace() float64 { return min(p.rate, p.allowed) }

// Wait is how long it is at now until something may be posted; 0 is now.
func (p *Pacer) Wait(now int64) int64 {
	rate, most := p.Pace(), float64(burst)
	if p.waits {
		most = makeUp
	}
	p.credit = min(rate*most/1e9, p.credit+rate*float64(now-p.at)/1e9)
	p.at, p.waits = now, p.credit < 0
	if !p.waits {
		return 0
	}
	return int64(-p.credit/rate*1e9) + 1
}

// Post notes that so many bytes are posted at now.
func (p *Pacer) Post(bytes, now int64) Stamp {
	p.credit -= float64(bytes)
	p.underway += bytes
	return Stamp{now, bytes}
}

// End notes that an operation has ended at now.
func (p *Pacer) End(s Stamp, now int64) {
	p.underway -= s.Bytes
	p.moved += s.Bytes
	took := now - s.At
	if p.took == 0 {
		p.took = float64(took)
	}
	p.took += (float64(took) - p.took) * smoothing
	beside := max(0, took-int64(float64(s.Bytes)/p.line.Rate*1e9))
	p.late = beside > p.least.Take(beside, now)+p.delay || p.late
}

// Due reports whether an interval has passed by now.
func (p *Pacer) Due(now int64) bool { return now-p.began >= p.Interval() }

// Look updates the flow, which may have the rate allowed, for the intervals that have passed
// by now, and reports whether operations have ended late. Intervals without anything under way
// are quiet, so that a flow with a low rate recovers while it waits. What a flow moves between
// waits that are longer than intervals is measured with them.
func (p *Pacer) Look(now int64, allowed float64) (late bool) {
	p.allowed = max(lowest*p.line.Rate, allowed)
	passed := (now - p.began) / p.Interval()
	switch {
	case p.moved > 0:
		p.Measure(float64(p.moved) * 1e9 / float64(now-p.since))
		p.moved, p.since = 0, now
	case p.underway == 0 && !p.waits:
		p.since = now
	}
	p.Update(p.line, p.late, p.Quality(p.allowed))
	if p.underway == 0 {
		for range min(passed, catchUp) - 1 {
			p.Update(p.line, false, DCQCN)
		}
	}
	late, p.began, p.late = p.late, now, false
	return late
}
