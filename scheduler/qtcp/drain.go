package qtcp

// When flows hold back, in ns.
const (
	// drainGather is how long after a flow has come, for the sake of those that come with it.
	drainGather = 200_000_000
	// drainRest is how much longer than they held back they do not, whoever comes.
	drainRest = 32
	// drainEvery is after how long in any case: ways change.
	drainEvery = 60_000_000_000
	// drainSlack is how late some begin.
	drainSlack = 10_000_000
)

// Drain is when the flows of a bottleneck hold back, all at the same time, until its queue is empty
// and each has measured a round trip without one. Flows that see congestion by what round trips
// take beyond the shortest one need that: who comes while others keep a queue takes it for a part
// of its way, keeps a longer one, and leaves next to nothing to those who know better. The zero
// value is of a bottleneck without flows. Times are in ns.
type Drain struct {
	began, until int64
	came         int64 // when a flow did that has not held back yet; 0: none
}

// Met reports whether a flow that held back at a time has met an empty queue lately.
func Met(at, now int64) bool { return at > 0 && now-at < drainEvery }

// Came tells of a flow that has not.
func (d *Drain) Came(now int64) {
	if d.came == 0 {
		d.came = now
	}
}

// Due reports whether flows should begin to hold back.
func (d *Drain) Due(now int64) bool {
	if d.came > 0 && now-d.came >= drainGather && now-d.until >= drainRest*(d.until-d.began) {
		return true
	}
	return now-d.began >= drainEvery
}

// Begin has the flows hold back, whose round trips take trip at most: one until the queue is empty,
// one that measures, and one for those who begin late.
func (d *Drain) Begin(now, trip int64) {
	d.began, d.until, d.came = now, now+3*trip+drainSlack, 0
}

// Holding reports whether flows have to hold back now.
func (d *Drain) Holding(now int64) bool { return now < d.until }

// Holds begins what is due, and is Holding. One flow alone does not hold back: the queue is its own.
// longest is called at a beginning, for the longest round trip of the flows.
func (d *Drain) Holds(now int64, flows int, longest func() int64) bool {
	if flows > 1 && d.Due(now) {
		d.Begin(now, longest())
	}
	return d.Holding(now)
}
