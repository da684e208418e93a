package scsi

import "lunar/backstore"

// compareAndWrite runs COMPARE AND WRITE (SBC-3 clause 5.2). The Data-Out
// buffer holds the blocks to compare and, behind them, those to write. It holds
// its extent in the guard exclusively from before the read until after the
// write, but not while the initiator is still sending.
func compareAndWrite(c *Command) {
	lu := c.Nexus.LU
	if s := c.address(uint64(lu.limits.MaxCompareAndWrite)); s != nil {
		c.Fail(s)
		return
	}
	if c.count == 0 {
		c.Good()
		return
	}
	n := uint32(c.count << lu.blockShift)
	c.Length = 2 * n
	if !c.HasOut || c.EDTL != c.Length {
		c.Fail(InvalidFieldInIU)
		return
	}
	c.fua = c.stable()
	c.fetch(2*n, wholePages(n), lockAndCompare)
}

func lockAndCompare(c *Command) {
	s := c.carrier()
	n := uint32(c.count << c.Nexus.LU.blockShift)
	s.off, s.n = 0, n
	s.hold.cover(exclusive, c.Nexus.LU.byteOff(c.lba), int64(n))
	s.hold.keep = true
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
			c.Good()
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
