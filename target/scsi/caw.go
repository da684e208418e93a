package scsi

import (
	"math"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// compareBlocksField is the byte of NUMBER OF LOGICAL BLOCKS.
const compareBlocksField = 13

// compareAndWrite runs COMPARE AND WRITE (SBC-3 clause 5.2). The Data-Out
// buffer holds the blocks to compare and, behind them, those to write. It holds
// its extent in the guard exclusively from before the read until after the
// write, but not while the initiator is still sending.
func compareAndWrite(c *Command) {
	lu := c.Nexus.LU
	if s := c.address(math.MaxUint64); s != nil {
		c.Fail(s)
		return
	}
	// Data for no blocks at all is what an initiator sends that asks for 256
	// of them in a field of one byte.
	if c.count > uint64(lu.traits.Load().limits.MaxCompareAndWrite) || c.count == 0 && c.HasOut && c.EDTL > 0 {
		c.Fail(sense.InvalidFieldInCDB(compareBlocksField, sense.NoBit))
		return
	}
	if c.count == 0 {
		c.Good()
		return
	}
	n := uint32(c.count << lu.blockShift)
	if !c.brings(2 * n) {
		c.Fail(sense.InvalidFieldInIU)
		return
	}
	c.fua = c.stable()
	c.fetch(2*n, wholePages(n), lockAndCompare)
}

func lockAndCompare(c *Command) {
	s := c.carrier()
	n := uint32(c.count << c.Nexus.LU.blockShift)
	s.off, s.n = 0, n
	s.lock.cover(exclusive, c.Nexus.LU.byteOff(c.lba), int64(n))
	s.lock.keep = true
	c.run(compareStep)
}

// The phases of COMPARE AND WRITE.
const (
	comparing uint8 = iota
	swapping
)

func compareStep(c *Command) {
	s := c.carrier()
	if s.state == idle {
		s.start(backstore.Read, c.workspace()[:s.n])
	}
	for s.state == done {
		if s.op.Err != nil {
			c.failOp(s)
			return
		}
		if s.phase == swapping {
			c.stored()
			return
		}
		medium := s.op.Data
		if !c.compare(c.data[:s.n], medium, 0) {
			return
		}
		s.phase = swapping
		copy(medium, c.data[s.n:])
		s.start(backstore.Write, medium)
	}
}
