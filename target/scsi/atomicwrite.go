package scsi

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"lunar/target/scsi/sense"
)

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
	limits := &lu.traits.Load().limits
	most, unit := uint64(limits.MaxAtomic), uint64(limits.AtomicUnit)
	boundary := uint64(binary.BigEndian.Uint16(c.CDB[at.boundary:]))
	switch {
	case s != nil:
		c.Fail(s)
	case boundary > most || boundary%unit != 0:
		c.Fail(sense.InvalidFieldInCDB(at.boundary, sense.NoBit))
	case c.count > most || c.count%unit != 0:
		c.Fail(sense.InvalidFieldInCDB(at.length, sense.NoBit))
	case c.lba%unit != 0:
		c.Fail(sense.InvalidFieldInCDB(at.lba, sense.NoBit))
	case c.count == 0:
		c.Good()
	default:
		c.Length = uint32(c.count) * c.wireBlock()
		if c.limit = c.dataOut(); c.limit != c.Length {
			c.Fail(sense.InvalidFieldInIU) // part of it would be written alone
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
	t := c.atomicTurn()
	a := &c.Nexus.LU.atomics
	if !a.settle(t) {
		c.FailStatus(Busy)
		return
	}
	t.then = writeWhole
	c.running++
	c.Nexus.LU.awaitReads(t.byteRange, func() { a.settled(t) })
}

// writeWhole writes what has arrived: nobody reads the blocks any more.
func writeWhole(c *Command) {
	c.atomicTurn().patience.Stop()
	s := c.at(c.head)
	s.lock.cover(exclusive, c.span().off, c.span().n)
	s.op.Atomic = true
	s.put()
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
