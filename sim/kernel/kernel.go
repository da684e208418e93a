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

// event is one entry of the queue; seq keeps equal times and classes in the
// order in which they were planned.
type event struct {
	at    int64
	seq   uint64
	actor Actor
	what  int32
	class Class
}

func (e *event) before(o *event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	if e.class != o.class {
		return e.class < o.class
	}
	return e.seq < o.seq
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
	k.heap = append(k.heap, event{at: at, seq: k.seq, actor: actor, what: what, class: class})
	k.up(len(k.heap) - 1)
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
	k.heap[0] = k.heap[last]
	k.heap[last] = event{}
	k.heap = k.heap[:last]
	k.down(0)
}

func (k *Kernel) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !k.heap[i].before(&k.heap[parent]) {
			return
		}
		k.heap[i], k.heap[parent] = k.heap[parent], k.heap[i]
		i = parent
	}
}

func (k *Kernel) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(k.heap) {
			return
		}
		if right := child + 1; right < len(k.heap) && k.heap[right].before(&k.heap[child]) {
			child = right
		}
		if !k.heap[child].before(&k.heap[i]) {
			return
		}
		k.heap[i], k.heap[child] = k.heap[child], k.heap[i]
		i = child
	}
}
