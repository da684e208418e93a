package target

import (
	"sync"

	"lunar/scheduler"
)

// ledger keeps what queues have counted that are gone, for as long as the same
// initiator has a session that uses the same LUN: a connection that moves to
// another thread, or one of several sessions that ends, leaves its counts there.
type ledger struct {
	mu         sync.Mutex
	flows      map[scheduler.Flow]*ledgerEntry
	generation int // counts additions
}

// ledgerEntry is a flow's.
type ledgerEntry struct {
	connections int
	past        scheduler.Explanation
}

// past is the number of the thread that counts of the past are shown for.
const past = -1

// enter notes that a connection uses a flow.
func (l *ledger) enter(f scheduler.Flow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flows == nil {
		l.flows = map[scheduler.Flow]*ledgerEntry{}
	}
	e := l.flows[f]
	if e == nil {
		e = &ledgerEntry{past: scheduler.Explanation{Flow: f, Thread: past}}
		l.flows[f] = e
	}
	e.connections++
}

// add takes the counts of a queue that closes. gone says that its connection
// does, too.
func (l *ledger) add(x *scheduler.Explanation, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.generation++
	e := l.flows[x.Flow]
	if e == nil {
		return
	}
	for _, effect := range x.Effects {
		e.know(effect)
	}
	e.past.Merge(x)
	if gone {
		e.connections--
	}
	if e.connections == 0 {
		delete(l.flows, x.Flow)
	}
}

// know makes room for the effects of a rule, which count from now on.
func (e *ledgerEntry) know(effect scheduler.Effect) {
	for i := range e.past.Effects {
		if e.past.Effects[i].Rule == effect.Rule {
			return
		}
	}
	effect.HeldIOPS, effect.HeldBytes, effect.Reserved, effect.Share = 0, 0, 0, 0
	e.past.Effects = append(e.past.Effects, effect)
}

// forget drops the effects of rules that are no longer in force as they were.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.flows {
		e.past.Effects = nil
	}
}

// read appends the counts of the past of an initiator's flows; an empty name is
// all. The generation changes when a queue has closed.
func (l *ledger) read(initiator string, to []scheduler.Explanation) (all []scheduler.Explanation, generation int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f, e := range l.flows {
		if (initiator == "" || f.Initiator == initiator) && e.past.Counters != (scheduler.Counters{}) {
			x := e.past
			x.Effects = append([]scheduler.Effect(nil), x.Effects...)
			to = append(to, x)
		}
	}
	return to, l.generation
}
