package batch

// Batch is a gathering point: it counts the requests that wait and decides when
// they leave. Make one with New.
type Batch struct {
	level    Level
	delay    int64
	small    int
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
func New(c Config, now int64) Batch {
	var b Batch
	b.Set(c, now)
	return b
}

// Set changes the configuration; the level begins anew. Those that wait do so by
// the new one: ask Ready.
func (b *Batch) Set(c Config, now int64) {
	b.level.Start(c, now)
	c = c.filled()
	b.delay, b.small = c.Delay, c.Small
}

// Level returns how many are gathered now.
func (b *Batch) Level() int { return b.level.Current() }

// Waiting returns how many wait.
func (b *Batch) Waiting() int { return b.waiting }

// Counters returns what has left so far.
func (b *Batch) Counters() Counters { return b.counters }

// Gathers reports whether a request may wait at all: those of the urgent class may
// not, and of large ones each is worth a message of its own.
func (b *Batch) Gathers(bytes int, urgent bool) bool { return !urgent && bytes <= b.small }

// Add notes that one more waits. More tells that others are under way that may
// still join it; a caller that cannot know says true, and relies on the delay.
func (b *Batch) Add(more bool, now int64) {
	if b.waiting == 0 {
		b.first = now
	}
	b.waiting++
	b.more = more
	b.level.Waiting(b.waiting+b.backlog, now)
}

// Backlog notes that n requests wait before the gathering point from now on, where
// the same thread works on them first: those of its inbox, or of what it has read.
// They are no reason to leave or to stay, but one message could carry them too, so
// the level may rise to their number.
func (b *Batch) Backlog(n int, now int64) {
	b.backlog = n
	b.level.Waiting(b.waiting+b.backlog, now)
}

// Expect replaces what the last Add said about others under way.
func (b *Batch) Expect(more bool) { b.more = more }

// Ready returns how many have to leave now, 0 if they are to wait. It is the level
// when that has been reached, and all when they are fewer and waiting is over. Who
// can send more than that at once may do so.
func (b *Batch) Ready(now int64) int {
	switch level := b.level.Current(); {
	case b.waiting >= level:
		return level
	case b.waiting > 0 && (!b.more || now-b.first >= b.delay):
		return b.waiting
	}
	return 0
}

// Deadline returns when those that wait have to leave at the latest; false if none
// waits. A timer that comes later delays them by as much.
func (b *Batch) Deadline() (at int64, ok bool) { return b.first + b.delay, b.waiting > 0 }

// Sent notes that n of those that wait have left, the oldest first. Oldest is when
// the first of the others had begun to wait; it does not matter if there is none.
func (b *Batch) Sent(n int, oldest, now int64) {
	if n <= 0 {
		return
	}
	c := &b.counters
	c.Requests += uint64(n)
	c.Batches++
	switch {
	case n >= b.level.Current():
		c.Full++
	case !b.more:
		c.Alone++
	default:
		c.Late++
	}
	b.waiting = max(0, b.waiting-n)
	b.first = oldest
	b.level.Waiting(b.waiting+b.backlog, now)
}

// Completed notes that a request of so many bytes is done, gathered or not: that is
// the throughput that the level follows.
func (b *Batch) Completed(bytes int, now int64) { b.level.Completed(bytes, now) }

// Observe lets the level change on time while nothing happens.
func (b *Batch) Observe(now int64) { b.level.Observe(now) }
