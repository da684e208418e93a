package scsi

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// writeAtomic16 is the operation code of WRITE ATOMIC(16).
const writeAtomic16 = 0x9c

// atomicFields are where the fields of a WRITE ATOMIC CDB begin.
type atomicFields struct{ boundary, lba, length int }

var (
	shortAtomic = atomicFields{boundary: 10, lba: 2, length: 12}
	longAtomic  = atomicFields{boundary: 4, lba: 12, length: 28}
)

// writeAtomic runs WRITE ATOMIC (SBC-4 clauses 5.48 and 5.49): the blocks change all at
// once for whoever reads them, and a loss of power leaves all of them or none.
// What makes that true of the medium is the store's (backstore.Op.Atomic); reads
// and other writes are kept away here. All Data-Out is there before anything is
// written; it is stable afterwards, with FUA or without. With ATOMIC BOUNDARY an
// initiator asks for that of each piece of so many blocks; it gets it of all.
func writeAtomic(c *Command) {
	lu, at := c.Nexus.LU, shortAtomic
	if c.CDB[0] == variableLength {
		at = longAtomic
	}
	s := c.address(math.MaxUint64)
	limits := &lu.traits().limits
	most, unit := uint64(limits.MaxAtomic), uint64(limits.AtomicUnit)
	boundary := uint64(binary.BigEndian.Uint16(c.CDB[at.boundary:]))
	switch {
	case s != nil:
		c.Fail(s)
	case boundary > most || boundary%unit != 0:
		c.Fail(InvalidFieldInCDB(at.boundary, NoBit))
	case c.count > most || c.count%unit != 0:
		c.Fail(InvalidFieldInCDB(at.length, NoBit))
	case c.lba%unit != 0:
		c.Fail(InvalidFieldInCDB(at.lba, NoBit))
	case c.count == 0:
		c.Good()
	default:
		c.Length = uint32(c.count) * c.wireBlock()
		if c.limit = c.dataOut(); c.limit != c.Length {
			c.Fail(InvalidFieldInIU) // part of it would be written alone
			return
		}
		c.fua = true
		c.run(atomicStep)
	}
}

func atomicStep(c *Command) {
	if c.head == c.tail {
		if s := c.open(SegmentSize, 1); s != nil {
			s.receive()
		}
		return
	}
	s := c.at(c.head)
	switch {
	case s.state == arrived:
		s.state = running
		c.waitForTurn(true, settleReads)
	case s.state == done && s.op.Err != nil:
		c.failOp(s)
	case s.state == done:
		c.stored()
	}
}

// settleReads lets reads that have begun end: those that come later wait.
func settleReads(c *Command) {
	a, t := &c.Nexus.LU.atomics, c.atomic
	if !a.settle(t) {
		c.FailStatus(Busy)
		return
	}
	c.running++
	c.Nexus.LU.awaitReads(t.byteRange, func() { a.settled(t) })
}

// readsEnded is an atomic write that waits for no read any more.
type readsEnded Command

// Run implements Task: the write waits for others, as COMPARE AND WRITE does.
func (r *readsEnded) Run() {
	c := (*Command)(r)
	c.running--
	switch {
	case c.ending:
		c.settle()
	case c.atomic.late.Load():
		c.FailStatus(Busy)
	default:
		c.atomic.patience.Stop()
		s := c.at(c.head)
		s.hold.cover(exclusive, c.span().off, c.span().n)
		s.op.Atomic = true
		s.put()
	}
}

// readWhole goes on with then when no atomic write is under way of blocks that
// the command is about to read, and keeps those that come away until it has
// ended. A command that reads while there is none pays one look for it.
func (c *Command) readWhole(then func(*Command)) {
	if !c.Nexus.LU.atomics.pending.Load() {
		c.reads = true
		then(c)
		return
	}
	c.waitForTurn(false, func(c *Command) { c.reads = true; then(c) })
}

// span is what the command's LBA and length are about, in bytes.
func (c *Command) span() byteRange {
	lu := c.Nexus.LU
	return byteRange{lu.byteOff(c.lba), int64(c.count << lu.blockShift)}
}

// awaitReads calls done, on any goroutine, when the reads of the range have ended
// that have begun.
func (lu *LogicalUnit) awaitReads(r byteRange, done func()) {
	match := func(c *Command) bool { return c.reads && r.overlaps(c.span().off, c.span().n) }
	lu.mu.Lock()
	nexuses := slices.Collect(maps.Keys(lu.mu.nexuses))
	lu.mu.Unlock()
	var left atomic.Int32
	left.Store(int32(len(nexuses)) + 1)
	count := func() {
		if left.Add(-1) == 0 {
			done()
		}
	}
	for _, n := range nexuses {
		if n.AwaitTasks == nil {
			count()
			continue
		}
		n.AwaitTasks(match, count)
	}
	count()
}

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
	c.atomic = t
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
		t.c.Port.Wake(t.c, (*readsEnded)(t.c))
	}
}

// withdraw ends the wait of a command that is to end, unless it is over already: true
// says that neither Run nor readsEnded follows.
func (a *atomicWrites) withdraw(t *atomicTurn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.state == turnGoing {
		return false
	}
	t.state = turnGoing
	a.remove(t)
	return true
}

// endWait has a command that is to end wait for atomic writes, or as one of them for
// others, no longer.
func (c *Command) endWait() {
	if t := c.atomic; t != nil && c.Nexus.LU.atomics.withdraw(t) {
		c.running--
	}
	if c.copy != nil && c.copy.window.endWait() {
		c.running--
	}
}

// expire ends the patience of a write.
func (a *atomicWrites) expire(t *atomicTurn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.late.Store(true)
	state := t.state
	t.state = turnGoing
	switch state {
	case turnQueued:
		t.c.Port.Wake(t.c, t)
	case turnSettling:
		t.c.Port.Wake(t.c, (*readsEnded)(t.c))
	}
}

// leave ends a turn; those that waited for it go on.
func (a *atomicWrites) leave(left *atomicTurn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(left)
}

// remove is leave, for a caller that holds mu.
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
