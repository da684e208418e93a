package gather

import "lunar/scheduler/batch"

// small is how many bytes a request has at most that is worth gathering (Tyche).
const small = 4096

// Point is a gathering point: it counts the requests that wait and decides when
// they leave. Make one with New.
type Point struct {
	level    batch.Level
	delay    int64
	waiting  int
	backlog  int
	first    int64 // when the oldest of them began to wait
	more     bool  // others are under way that may join
	counters Counters
}

// Counters are what a gathering point did, since its beginning.
type Counters struct {
	Requests uint64 // that left
	Batches  uint64 // in which they left
	Full     uint64 // batches that left because they had reached the level
	Alone    uint64 // because nobody else was under way
	Late     uint64 // because the first had waited for the delay
}

// New returns a gathering point at which nothing waits.
func New(c batch.Config, now int64) Point {
	p := Point{delay: c.Delay}
	p.level.Start(c, now)
	return p
}

// Level returns how many are gathered now.
func (p *Point) Level() int { return p.level.Current() }

// Waiting returns how many wait.
func (p *Point) Waiting() int { return p.waiting }

// Counters returns what has left so far.
func (p *Point) Counters() Counters { return p.counters }

// Gathers reports whether a request may wait at all: those of the urgent class may
// not, and of large ones each is worth a message of its own.
func (p *Point) Gathers(bytes int, urgent bool) bool { return !urgent && bytes <= small }

// Add notes that one more waits. More tells that others are under way that may
// still join it; a caller that cannot know says true, and relies on the delay.
func (p *Point) Add(more bool, now int64) {
	if p.waiting == 0 {
		p.first = now
	}
	p.waiting++
	p.more = more
	p.level.Waiting(p.waiting+p.backlog, now)
}

// Backlog notes that n requests wait before the gathering point from now on, where
// the same thread works on them first: those of its inbox, or of what it has read.
// They are no reason to leave or to stay, but one message could carry them too, so
// the level may rise to their number.
func (p *Point) Backlog(n int, now int64) {
	p.backlog = n
	p.level.Waiting(p.waiting+p.backlog, now)
}

// Expect replaces what the last Add said about others under way.
func (p *Point) Expect(more bool) { p.more = more }

// Ready returns how many have to leave now, 0 if they are to wait. It is the level
// when that has been reached, and all when they are fewer and waiting is over. Who
// can send more than that at once may do so.
func (p *Point) Ready(now int64) int {
	switch level := p.level.Current(); {
	case p.waiting >= level:
		return level
	case p.waiting > 0 && (!p.more || now-p.first >= p.delay):
		return p.waiting
	}
	return 0
}

// Deadline returns when those that wait have to leave at the latest; false if none
// waits. A timer that comes later delays them by as much.
func (p *Point) Deadline() (at int64, ok bool) { return p.first + p.delay, p.waiting > 0 }

// Sent notes that n of those that wait have left, the oldest first. Oldest is when
// the first of the others had begun to wait; it does not matter if there is none.
func (p *Point) Sent(n int, oldest, now int64) {
	if n <= 0 {
		return
	}
	c := &p.counters
	c.Requests += uint64(n)
	c.Batches++
	switch {
	case n >= p.level.Current():
		c.Full++
	case !p.more:
		c.Alone++
	default:
		c.Late++
	}
	p.waiting = max(0, p.waiting-n)
	p.first = oldest
	p.level.Waiting(p.waiting+p.backlog, now)
}

// Completed notes that a request of so many bytes is done, gathered or not: that is
// the throughput that the level follows.
func (p *Point) Completed(bytes int, now int64) { p.level.Completed(bytes, now) }

// Observe lets the level change on time while nothing happens.
func (p *Point) Observe(now int64) { p.level.Observe(now) }
