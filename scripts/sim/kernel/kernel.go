// Package kernel is the virtual time of the simulator: an event queue with a
// fixed order among events of the same instant, and seeded random numbers.
// Nothing in it reads a real clock, and nothing depends on goroutines or on
// the order of a map, so that the same seed gives the same run.
package kernel

// Class orders the events of one instant (the clock rule of all timed code).
type Class uint8

// The classes in the order in which they run at equal times.
const (
	Completion     Class = iota // a station has finished a request
	PeriodStart                 // a QoS period ends and the next one starts
	Redistribution              // pShift moves tokens between servers
	Conversion                  // the monitor reads reports and rewrites the global pool
	TokenTick                   // an engine yields reservation tokens, waiters retry
	BatchTimer                  // a batch has waited for its maximum delay
	Arrival                     // a request is submitted or reaches a station
)

// Actor is what an event wakes. An actor gives its own meaning to what.
type Actor interface {
	Fire(now int64, what int32)
}

// event is one entry of the queue. order is the class and below it the number
// of the event, which keeps equal times and classes in the order in which they
// were planned.
type event struct {
	at    int64
	order uint64
	actor Actor
	what  int32
}

// classShift leaves room for more events than any run has.
const classShift = 56

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.order < o.order
}

// Kernel holds the virtual time in ns and the events to come. The zero value
// is ready at time 0. It is used by one goroutine.
type Kernel struct {
	now    int64
	seq    uint64
	events uint64
	heap   []event
}

// Now returns the virtual time in ns.
func (k *Kernel) Now() int64 { return k.now }

// Events returns how many events have run.
func (k *Kernel) Events() uint64 { return k.events }

// At plans that actor is woken with what at time at, in ns. A time that has
// passed panics: an actor that plans the past has lost count of the time.
func (k *Kernel) At(at int64, class Class, actor Actor, what int32) {
	if at < k.now {
		panic("kernel: event planned in the past")
	}
	k.seq++
	k.heap = append(k.heap, event{})
	k.up(event{at, uint64(class)<<classShift | k.seq, actor, what})
}

// Run runs events up to and including time until, and leaves the clock there.
func (k *Kernel) Run(until int64) {
	for len(k.heap) > 0 && k.heap[0].at <= until {
		e := k.heap[0]
		k.pop()
		k.now = e.at
		k.events++
		e.actor.Fire(e.at, e.what)
	}
	k.now = max(k.now, until)
}

func (k *Kernel) pop() {
	last := len(k.heap) - 1
	e := k.heap[last]
	k.heap[last] = event{}
	k.heap = k.heap[:last]
	if last > 0 {
		k.down(e)
	}
}

// up puts e into the hole at the heap's end, and the hole up to where e belongs.
func (k *Kernel) up(e event) {
	h := k.heap
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// down puts e into the hole at the top, and the hole down to where e belongs.
func (k *Kernel) down(e event) {
	h := k.heap
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].before(&h[child]) {
			child = right
		}
		if !h[child].before(&e) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = e
}

// Drain runs events until none is left; the clock stays at the last of them.
func (k *Kernel) Drain() {
	for len(k.heap) > 0 {
		k.Run(k.heap[0].at)
	}
}

// Call is an actor that calls a function.
type Call func()

// Fire implements Actor.
func (c Call) Fire(int64, int32) { c() }

// After plans that do is called in ns from now.
func (k *Kernel) After(ns int64, class Class, do Call) { k.At(k.now+ns, class, do, 0) }
