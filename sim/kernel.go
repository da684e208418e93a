package sim

import "container/heap"

// Class orders events of the same time.
type Class uint8

// The classes, in the order in which they come.
const (
	Completion Class = iota
	PeriodStart
	Redistribution
	Conversion
	TokenTick
	BatchTimer
	Arrival
)

// Kernel is a virtual clock, in nanoseconds, and the events to come. Events of
// one time and class happen in the order in which they were added, so that equal
// seeds give equal runs.
type Kernel struct {
	now    int64
	count  uint64
	events queue
}

type event struct {
	at    int64
	class Class
	seq   uint64
	do    func()
}

// queue is a heap of events.
type queue []event

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool {
	a, b := &q[i], &q[j]
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.class != b.class:
		return a.class < b.class
	}
	return a.seq < b.seq
}

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(event)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last].do = nil
	*q = (*q)[:last]
	return e
}

// Now is the virtual time in ns.
func (k *Kernel) Now() int64 { return k.now }

// At has do called at a time, now if that has passed.
func (k *Kernel) At(at int64, class Class, do func()) {
	k.count++
	heap.Push(&k.events, event{max(at, k.now), class, k.count, do})
}

// After has do called in ns from now.
func (k *Kernel) After(ns int64, class Class, do func()) { k.At(k.now+ns, class, do) }

// Run lets time pass until there is no event before the given time, which is
// the time then.
func (k *Kernel) Run(until int64) {
	for len(k.events) > 0 && k.events[0].at < until {
		e := heap.Pop(&k.events).(event)
		k.now = e.at
		e.do()
	}
	k.now = max(k.now, until)
}

// Station serves one job at a time, in order of arrival.
type Station struct {
	kernel *Kernel
	free   int64
	busy   int64
}

// NewStation returns an idle station.
func NewStation(k *Kernel) *Station { return &Station{kernel: k} }

// Serve has done called when a job of ns has been served.
func (s *Station) Serve(ns int64, done func()) {
	s.free = max(s.free, s.kernel.now) + ns
	s.busy += ns
	s.kernel.At(s.free, Completion, done)
}

// Busy is the time that the accepted jobs take, in ns.
func (s *Station) Busy() int64 { return s.busy }
