package scsi

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// atomicPatience bounds how long an atomic write waits for reads, which may have
// to wait for an initiator that does not take its data, or for the very memory
// that the write holds. Then it ends with BUSY, and nothing is written.
const atomicPatience = 2 * time.Second

// atomicWrites are the atomic writes of a logical unit, and the reads and copies that
// wait for them or that they wait for, in order of arrival: a command goes on when no
// earlier one is left that it must not run beside. So neither reads nor writes
// starve.
//
// INVARIANT: an atomic write that goes on is on the list, so that reads that come
// see it; reads that have come before are found by LogicalUnit.awaitReads.
type atomicWrites struct {
	pending atomic.Bool // a write is on the list
	mu      sync.Mutex
	turns   []*atomicTurn
}

// byteRange is an extent of a medium in bytes.
type byteRange struct{ off, n int64 }

func (r byteRange) overlaps(off, n int64) bool { return off < r.off+r.n && r.off < off+n }

// atomicTurn is a command's place on the list.
type atomicTurn struct {
	byteRange
	c        *Command
	writes   bool
	then     func(*Command)
	state    turnState   // under atomicWrites.mu
	late     atomic.Bool // a write has lost its patience
	patience *time.Timer // of writes
}

// turnState is what a turn waits for.
type turnState uint8

const (
	turnQueued   turnState = iota // others that have come before
	turnGoing                     // nothing
	turnSettling                  // reads that are not on the list
)

// atomicTurn is the turn of a command that has one.
func (c *Command) atomicTurn() *atomicTurn { return c.feature.(*atomicTurn) }

// cancel implements feature.
func (t *atomicTurn) cancel(c *Command) bool { return c.Nexus.LU.atomics.cancel(t) }

// ended implements feature.
func (t *atomicTurn) ended(c *Command) {
	c.Nexus.LU.atomics.end(t)
	c.feature = nil
}

// discarded implements feature.
func (t *atomicTurn) discarded(c *Command, _ bool) { t.ended(c) }

// excludes reports whether the two must not run at the same time.
func (t *atomicTurn) excludes(o *atomicTurn) bool {
	return (t.writes || o.writes) && t.overlaps(o.off, o.n)
}

// waitForTurn goes on with then when it is the command's turn.
func (c *Command) waitForTurn(writes bool, then func(*Command)) {
	a, t := &c.Nexus.LU.atomics, &atomicTurn{byteRange: c.span(), c: c, writes: writes, then: then}
	if writes {
		t.patience = time.AfterFunc(atomicPatience, func() { a.expire(t) })
	}
	c.feature = t
	if a.enter(t, nil) {
		then(c)
		return
	}
	c.running++
}

// enter reports whether the command may go on at once; else Run follows. Its place is
// the last one, or that behind another turn of the command: who waits for that one must
// not be waited for.
func (a *atomicWrites) enter(t, behind *atomicTurn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := len(a.turns)
	if behind != nil {
		at = slices.Index(a.turns, behind) + 1
	}
	if a.free(t, at) {
		t.state = turnGoing
	}
	a.turns = slices.Insert(a.turns, at, t)
	if t.writes {
		a.pending.Store(true)
	}
	return t.state == turnGoing
}

// free reports whether nobody excludes t whose place is one of the first n, or who goes
// on already. The caller holds mu.
func (a *atomicWrites) free(t *atomicTurn, n int) bool {
	for i, o := range a.turns {
		if (i < n || o.state != turnQueued) && o != t && t.excludes(o) {
			return false
		}
	}
	return true
}

// settle has a write wait for reads, if it has patience left: settled or expire
// ends that.
func (a *atomicWrites) settle(t *atomicTurn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.late.Load() {
		return false
	}
	t.state = turnSettling
	return true
}

// settled follows the end of the reads. Any goroutine may call it.
func (a *atomicWrites) settled(t *atomicTurn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.state == turnSettling {
		t.state = turnGoing
		t.c.Port.Wake(t.c, t)
	}
}

// cancel ends the wait of a command that is to end. It returns true if the command was
// waiting; Run does not follow then.
func (a *atomicWrites) cancel(t *atomicTurn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.state == turnGoing {
		return false
	}
	t.state = turnGoing
	a.remove(t)
	return true
}

// expire ends the patience of a write.
func (a *atomicWrites) expire(t *atomicTurn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.late.Store(true)
	state := t.state
	t.state = turnGoing
	if state != turnGoing {
		t.c.Port.Wake(t.c, t)
	}
}

// end ends a turn, and lets those that waited for it go on.
func (a *atomicWrites) end(left *atomicTurn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(left)
}

// remove is end, for a caller that holds mu.
func (a *atomicWrites) remove(left *atomicTurn) {
	if left.patience != nil {
		left.patience.Stop()
	}
	a.turns = slices.DeleteFunc(a.turns, func(t *atomicTurn) bool { return t == left })
	a.pending.Store(slices.ContainsFunc(a.turns, func(t *atomicTurn) bool { return t.writes }))
	for i, t := range a.turns {
		if t.state == turnQueued && a.free(t, i) {
			t.state = turnGoing
			t.c.Port.Wake(t.c, t)
		}
	}
}

// Run implements Task: it is the command's turn.
func (t *atomicTurn) Run() {
	c := t.c
	c.running--
	switch {
	case c.ending:
		c.settle()
	case t.late.Load():
		c.FailStatus(Busy)
	default:
		t.then(c)
	}
}
