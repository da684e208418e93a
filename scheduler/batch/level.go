package batch

import "math/bits"

// Level is the number of requests to gather, Tyche's current_batch_level. Feed it
// with Completed and Waiting; Current is the result. An interval ends with the first
// call after its time, and what is compared are rates, so that no timer is needed.
// The zero Level is always 1.
type Level struct {
	mode     Mode
	max      int
	interval int64

	current int
	began   int64 // the interval
	bytes   int64 // completed in it
	waiting int
	area    int64 // waiting integrated over the interval, requests × ns
	noted   int64 // until when area has been counted

	before    int64 // bytes/s of the interval before, with the level that is kept
	unchanged int   // intervals since the level changed
	probe     probe
	lower     int64 // bytes/s that the probe with a lower level brought
}

// probe is what an interval is for.
type probe uint8

const (
	none  probe = iota
	below       // one interval with a level less
	above       // one with a level more
)

// Start sets the level anew at the time now: to 1, or to what is configured.
func (l *Level) Start(c Config, now int64) {
	c = c.filled()
	*l = Level{mode: c.Mode, max: c.Max, interval: c.Interval, current: 1, began: now, noted: now, waiting: l.waiting}
	if c.Mode == Static {
		l.current = c.Level
	}
}

// Current returns the level, 1 or more.
func (l *Level) Current() int { return max(l.current, 1) }

// Completed notes that a request of so many bytes is done.
func (l *Level) Completed(bytes int, now int64) {
	l.Observe(now)
	l.bytes += int64(bytes)
}

// Waiting notes that n requests wait from now on: what one message could carry if
// it were large enough.
func (l *Level) Waiting(n int, now int64) {
	l.Observe(now)
	l.count(now)
	l.waiting = n
}

// count brings area up to now.
func (l *Level) count(now int64) {
	l.area += int64(l.waiting) * (now - l.noted)
	l.noted = now
}

// Observe ends the interval if its time is over. The other calls do so too: it is
// for those who want levels to change on time while nothing happens.
func (l *Level) Observe(now int64) {
	if l.mode != Adaptive || now-l.began < l.interval {
		return
	}
	l.count(now)
	took := now - l.began
	l.judge(rate(l.bytes, took), took)
	l.began, l.bytes, l.area = now, 0, 0
}

// rate is bytes in ns as bytes per second. An interval is so long that it fits.
func rate(bytes, ns int64) int64 {
	hi, lo := bits.Mul64(uint64(bytes), 1e9)
	q, _ := bits.Div64(hi, lo, uint64(ns))
	return int64(q)
}

// judge ends an interval that took ns and brought x bytes/s.
func (l *Level) judge(x, took int64) {
	switch l.probe {
	case none:
		l.update(x, took)
	case below:
		l.lower = x
		l.current++
		l.try(above)
	case above:
		l.current--
		l.adopt(x)
	}
}

// update is Tyche's rule.
func (l *Level) update(x, took int64) {
	next := l.current
	switch change := (x - l.before) * 100; {
	case change > threshold*l.before:
		next = raised(l.current, l.max, l.area, took)
	case change < -threshold*l.before:
		next = lowered(l.current, l.area, took)
	}
	l.before = x
	if l.unchanged++; next != l.current {
		l.current, l.unchanged = next, 0
	}
	if l.unchanged >= quiet && x > 0 {
		l.lower = 0
		l.try(below)
	}
}

// raised is ⌈(level + min(a, highest)) / 2⌉ with a = area / took.
func raised(level, highest int, area, took int64) int {
	sum := int64(level)*took + min(area, int64(highest)*took)
	return max(1, min(highest, int((sum+2*took-1)/(2*took))))
}

// lowered is ⌊(1 + min(a, level)) / 2⌋.
func lowered(level int, area, took int64) int {
	sum := took + min(area, int64(level)*took)
	return max(1, int(sum/(2*took)))
}

// try begins a probe with the next level on one side of the current one, or ends
// with what is known if there is none.
func (l *Level) try(p probe) {
	switch {
	case p == below && l.current > 1:
		l.probe, l.current = below, l.current-1
	case l.current < l.max:
		l.probe, l.current = above, l.current+1
	default:
		l.adopt(0)
	}
}

// adopt ends the probes, the higher level's having brought x bytes/s: the better
// one is kept if it is better by the threshold.
func (l *Level) adopt(x int64) {
	l.probe, l.unchanged = none, 0
	best := max(l.lower, x)
	if best <= l.before || (best-l.before)*100 < threshold*l.before {
		return
	}
	if best == l.lower {
		l.current--
	} else {
		l.current++
	}
	l.before = best
}
