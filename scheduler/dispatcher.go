package scheduler

import (
	"math"
	"math/bits"

	"lunar/scheduler/haechi"
	"lunar/scheduler/pshift"
)

// Arbitration says whether reserved commands go before normal ones.
type Arbitration uint8

const (
	// ReservedFirst (rprio) is pShift's Algorithm 1.
	ReservedFirst Arbitration = iota
	// EqualShare (equal) is Haechi's plain device: a token of either kind is
	// needed and all are served in turn.
	EqualShare
)

// PoolMode says whether normal commands need a token of the global pool.
type PoolMode uint8

const (
	// SoftPool lets a command go without a global token while the device has
	// room, and counts it as opportunistic.
	SoftPool PoolMode = iota
	// HardPool idles when the pool is spent, as Haechi.
	HardPool
	// NoPool: normal commands need an L-token only, as pShift.
	NoPool
)

// place is where a queue stands in a dispatcher.
type place int8

// The places. The rings come first.
const (
	inUrgent place = iota
	inReserved
	inHigh
	inMedium
	inLow
	rings
	isTimed // until a time: a limit, or an empty pool
	isOut   // nothing waits
	isSpent // something waits and there is no token
)

var classPlace = [...]place{High: inHigh, Medium: inMedium, Low: inLow, Urgent: inUrgent}

// Dispatcher is the server loop of pShift (Algorithm 1) for one event thread:
// of the waiting tasks it names the one to run next. It allocates only when
// queues are added.
//
// A queue whose last task goes stays in its ring until its turn comes again, so
// that whoever has one command after the other does not go in and out.
type Dispatcher struct {
	arbitration Arbitration
	mode        PoolMode
	occupied    uint8 // rings that have queues, by bit
	waiting     int
	timed       []*Queue // heap by until
	pool        *haechi.Pool
	queues      []*Queue // by slot; nil is free
	accounts    []*account
	limited     int // queues that limits hold

	rings   [rings]ring
	classes ring // over High, Medium and Low
	class   [3]*account
}

// NewDispatcher returns a dispatcher without queues. pool may be nil with
// NoPool.
func NewDispatcher(arbitration Arbitration, mode PoolMode, pool *haechi.Pool) *Dispatcher {
	d := &Dispatcher{arbitration: arbitration, mode: mode, pool: pool, classes: newRing()}
	for i := range d.rings {
		d.rings[i] = newRing()
	}
	d.classes.grow(len(d.class))
	for i, w := range ClassWeights {
		d.class[i] = &account{weight: w}
	}
	return d
}

// Add adds a queue, in the lowest free slot: round robin goes by slot.
func (d *Dispatcher) Add(config QueueConfig) *Queue {
	q := &Queue{dispatcher: d, normal: pshift.Unlimited, place: isOut, throttledBy: -1, slot: d.free()}
	if q.slot == len(d.queues) {
		d.queues, d.accounts = append(d.queues, nil), append(d.accounts, nil)
		for i := range d.rings {
			d.rings[i].grow(len(d.queues))
		}
	}
	d.queues[q.slot], d.accounts[q.slot] = q, &q.account
	q.engine = haechi.NewEngine(haechi.EngineConfig{Yield: haechi.YieldNever})
	q.configure(config)
	return q
}

func (d *Dispatcher) free() int {
	for i, q := range d.queues {
		if q == nil {
			return i
		}
	}
	return len(d.queues)
}

// configure takes a configuration in; without engines the queue keeps its own.
func (q *Queue) configure(config QueueConfig) {
	q.weight, q.class, q.tagged, q.limits = max(1, config.Weight), config.Class, config.Tagged, config.Limits
	q.throttled = make([]int64, len(q.limits))
	if config.Engines != nil {
		q.engine, q.inner = config.Engines[0], config.Engines[1:]
	}
}

// Configure changes a queue. Tasks that wait stay; throttle times start anew.
func (d *Dispatcher) Configure(q *Queue, config QueueConfig, now int64) {
	d.move(q, isOut, now)
	pending := q.pendingTokens()
	q.carry(-pending, -q.inflight)
	q.configure(config)
	q.carry(pending, q.inflight)
	d.Refresh(q, now)
}

// carry moves commands into or out of the counts of all engines.
func (q *Queue) carry(pending, inflight int64) {
	q.engine.Carry(pending, inflight)
	for _, e := range q.inner {
		e.Carry(pending, inflight)
	}
}

func (q *Queue) pendingTokens() int64 {
	tokens := int64(0)
	for t := q.tasks.head; t != nil; t = t.next {
		tokens += t.Cost
	}
	return tokens
}

// Remove removes a queue, which must be empty.
func (d *Dispatcher) Remove(q *Queue, now int64) {
	d.move(q, isOut, now)
	d.queues[q.slot], d.accounts[q.slot] = nil, nil
}

// SetTokens replaces a queue's R- and L-tokens, as a redistribution does.
// Unlimited L-tokens never end.
func (d *Dispatcher) SetTokens(q *Queue, reserved, normal, now int64) {
	q.engine.SetTokens(reserved)
	q.normal = normal
	d.Refresh(q, now)
}

// Enqueue gives a task to a queue.
func (d *Dispatcher) Enqueue(q *Queue, t *Task, now int64) {
	q.arrive(t, now)
	q.tasks.push(t)
	d.waiting++
	if q.tasks.length == 1 && !q.stays() {
		d.Refresh(q, now)
	}
}

// stays reports whether a queue that was empty may wait where it is.
func (q *Queue) stays() bool {
	return q.place < rings && len(q.limits) == 0 && (q.place <= inReserved || !q.reserved())
}

// arrive books a task as offered.
func (q *Queue) arrive(t *Task, now int64) {
	t.queue, t.arrived, t.grant, t.Hit = q, now, haechi.GrantNone, false
	q.engine.Arrive(t.Cost, now)
	for _, e := range q.inner {
		e.Arrive(t.Cost, now)
	}
}

// Cancel takes a waiting task out, as a task management function does.
func (d *Dispatcher) Cancel(t *Task, now int64) {
	q := t.queue
	q.tasks.remove(t)
	q.cancelled++
	q.cancelledTokens += t.Cost
	d.waiting--
	for i := range 1 + len(q.inner) {
		q.engineAt(i).Cancel(t.Cost, now)
	}
	d.Refresh(q, now)
}

// Waiting is how many tasks wait in all queues.
func (d *Dispatcher) Waiting() int { return d.waiting }

// Wake is the time at which a queue that waits for a time must be looked at, that is when Next
// may have a task where it had none; math.MaxInt64 if no time will help.
func (d *Dispatcher) Wake() int64 {
	if len(d.timed) == 0 {
		return math.MaxInt64
	}
	return d.timed[0].until
}

// Next returns the task to run, and takes its tokens; nil if there is none.
func (d *Dispatcher) Next(now int64) *Task {
	for len(d.timed) > 0 && d.timed[0].until <= now {
		d.Refresh(d.timed[0], now)
	}
	for {
		q := d.pick()
		if q == nil {
			return nil
		}
		to, grant := d.classify(q, now)
		if to == q.place {
			return d.dispatch(q, grant, now)
		}
		d.move(q, to, now)
	}
}

// pick returns the queue whose turn it is.
func (d *Dispatcher) pick() *Queue {
	if d.occupied == 0 {
		return nil
	}
	p := place(bits.TrailingZeros8(d.occupied))
	if p >= inHigh && (d.occupied != 1<<p || d.classes.missed.count > 0) { // else the class is alone
		p = inHigh + place(d.classes.pick(d.class[:]))
	}
	return d.queues[d.rings[p].pick(d.accounts)]
}

// dispatch runs the first task of a queue.
func (d *Dispatcher) dispatch(q *Queue, grant haechi.Grant, now int64) *Task {
	t := q.tasks.pop()
	d.waiting--
	t.issued, t.grant = now, grant
	q.charge(t, grant, now)
	q.dispatched[grant]++
	if waited := now - t.arrived; waited > 0 {
		q.waited += waited
		q.waits.Add(waited)
	}
	r := &d.rings[q.place]
	r.charge(q.slot, &q.account, t.Cost)
	if class := int(q.place - inHigh); class >= 0 {
		d.classes.charge(class, d.class[class], t.Cost)
	}
	if q.tasks.length == 0 { // else pick finds out what it may do next
		r.pause(q.slot, &q.account)
	}
	return t
}

// outranks reports whether something that waits may go before a queue's next command.
func (d *Dispatcher) outranks(q *Queue) bool {
	first := uint8(1)<<rings - 1
	switch {
	case q.class == Urgent:
		first = 1 << inUrgent
	case d.arbitration == ReservedFirst && q.reserved():
		first = 1<<inUrgent | 1<<inReserved
	}
	return d.waiting > 0 && d.occupied&first != 0
}

// admit dispatches a task that has just arrived in an empty queue, while no
// other queue goes before it. False: it may not run now.
func (d *Dispatcher) admit(q *Queue, t *Task, now int64) bool {
	if !q.unlimited(now) {
		return false
	}
	grant := d.grant(q, now)
	if grant <= haechi.GrantLimit {
		return false
	}
	q.arrive(t, now)
	t.issued, t.grant = now, grant
	q.charge(t, grant, now)
	q.dispatched[grant]++
	return true
}

// grant returns what a queue would dispatch with.
func (d *Dispatcher) grant(q *Queue, now int64) haechi.Grant {
	switch {
	case q.reserved():
		return haechi.GrantReserved
	case q.normal <= 0:
		return haechi.GrantLimit
	case d.mode == NoPool || q.engine.Fetch(d.pool, now):
		return haechi.GrantNormal
	case d.mode == SoftPool:
		return haechi.GrantOpportunistic
	}
	return haechi.GrantNone
}

// Done books a dispatched task as completed.
func (d *Dispatcher) Done(t *Task, now int64) {
	q := t.queue
	q.served++
	q.tokens += t.Cost
	q.bytes += t.Bytes
	q.serving += now - t.issued
	q.services.Add(now - t.issued)
	q.inflight -= t.Cost
	q.engine.Complete(t.Cost, now)
	for _, e := range q.inner {
		e.Complete(t.Cost, now)
	}
	if t.Hit {
		q.hits++
		q.refund(t)
	}
}

// refund gives the tokens of a cache hit back: it needs nothing of what they
// stand for, the capacity of the device.
func (q *Queue) refund(t *Task) {
	for i := range 1 + len(q.inner) {
		e := q.engineAt(i)
		e.Hit(t.Cost)
		if t.charged&(1<<i) != 0 {
			e.Refund(t.Cost, t.grant)
		}
	}
}

// Refresh finds a queue's place anew, after its tokens or limits changed.
func (d *Dispatcher) Refresh(q *Queue, now int64) {
	to, _ := d.classify(q, now)
	if to != q.place || to == isTimed {
		d.move(q, to, now)
	}
}

// RefreshAll does Refresh for all queues.
func (d *Dispatcher) RefreshAll(now int64) {
	for _, q := range d.queues {
		if q != nil && q.place != isOut {
			d.Refresh(q, now)
		}
	}
}

// classify returns the place of a queue and what it would dispatch with, and
// notes why and until when if it waits for a time.
func (d *Dispatcher) classify(q *Queue, now int64) (place, haechi.Grant) {
	if q.tasks.length == 0 {
		return isOut, haechi.GrantNone
	}
	by, until := q.limited(now)
	if by >= 0 || q.throttledBy >= 0 {
		q.throttle(by, until, now)
	}
	if by >= 0 {
		return isTimed, haechi.GrantLimit
	}
	grant := d.grant(q, now)
	switch {
	case grant == haechi.GrantLimit:
		return isSpent, grant
	case grant == haechi.GrantNone:
		q.until = max(q.engine.NextFetch(), now+1)
		return isTimed, grant
	case q.class != Urgent && grant == haechi.GrantReserved && d.arbitration == ReservedFirst:
		return inReserved, grant
	}
	return classPlace[q.class], grant
}

// throttle notes that a limit, or none, holds the queue, and books for how long
// the one before did.
func (q *Queue) throttle(by int, until, now int64) {
	q.until = until
	if q.throttledBy >= 0 {
		q.throttled[q.throttledBy] += now - q.throttledSince
		q.limits[q.throttledBy].waiting--
		q.dispatcher.limited--
	}
	if q.throttledBy, q.throttledSince = by, now; by >= 0 {
		q.limits[by].waiting++
		q.dispatcher.limited++
	}
}

// move takes a queue from its place to another.
func (d *Dispatcher) move(q *Queue, to place, now int64) {
	switch {
	case q.place < rings:
		d.exit(q, to == isTimed && q.throttledBy >= 0)
	case q.place == isTimed:
		d.removeTimed(q)
	}
	if to == isOut && q.throttledBy >= 0 {
		q.throttle(-1, now, now)
	}
	q.place = to
	switch {
	case to < rings:
		d.enter(q)
	case to == isTimed:
		d.pushTimed(q)
	}
}

// enter adds a queue to the ring of its place.
func (d *Dispatcher) enter(q *Queue) {
	d.rings[q.place].add(q.slot, &q.account)
	d.occupied |= 1 << q.place
	if class := int(q.place - inHigh); class >= 0 {
		d.classes.add(class, d.class[class])
	}
}

// exit removes a queue from the ring of its place; throttled says that a limit is the
// reason.
func (d *Dispatcher) exit(q *Queue, throttled bool) {
	r := &d.rings[q.place]
	r.remove(q.slot, &q.account, throttled)
	if r.set.count > 0 {
		return
	}
	d.occupied &^= 1 << q.place
	if class := int(q.place - inHigh); class >= 0 {
		d.classes.remove(class, d.class[class], throttled)
	}
}

// The heap of queues that wait for a time, by that and then by slot. It has room
// for every queue once it has held them all.

func (d *Dispatcher) pushTimed(q *Queue) {
	q.heapIndex = len(d.timed)
	d.timed = append(d.timed, q)
	d.up(q.heapIndex)
}

// removeTimed removes a queue from anywhere in the heap.
func (d *Dispatcher) removeTimed(q *Queue) {
	at, last := q.heapIndex, len(d.timed)-1
	d.swapTimed(at, last)
	d.timed[last] = nil
	d.timed = d.timed[:last]
	if at < last {
		d.down(at)
		d.up(at)
	}
}

func (d *Dispatcher) before(i, j int) bool {
	a, b := d.timed[i], d.timed[j]
	return a.until < b.until || a.until == b.until && a.slot < b.slot
}

func (d *Dispatcher) swapTimed(i, j int) {
	d.timed[i], d.timed[j] = d.timed[j], d.timed[i]
	d.timed[i].heapIndex, d.timed[j].heapIndex = i, j
}

func (d *Dispatcher) up(i int) {
	for i > 0 && d.before(i, (i-1)/2) {
		d.swapTimed(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (d *Dispatcher) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(d.timed); child++ {
			if d.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		d.swapTimed(i, least)
		i = least
	}
}
