package scsi

import (
	"bytes"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// BYTCHK of VERIFY and WRITE AND VERIFY (SBC-3 clause 5.32).
const (
	bytchkNone  = 0 // the blocks can be read
	bytchkAll   = 1 // they equal the Data-Out buffer
	bytchkBlock = 3 // each of them equals the one block in the Data-Out buffer
)

func bytchk(cdb *CDB) byte { return cdb[flagsByte(cdb)] >> 1 & 3 }

// verify runs VERIFY.
func verify(c *Command) {
	if s := c.transfer(); s != nil {
		c.Fail(s)
		return
	}
	c.readWhole(startVerify)
}

func startVerify(c *Command) {
	switch what := bytchk(&c.CDB); {
	case what == bytchkNone:
		c.limit, c.Length = c.Length, 0
		c.runCheck(check{})
	case what == bytchkAll:
		c.verifyAll()
	case what == bytchkBlock && !c.shield.active: // their tuples differ
		c.verifyBlock()
	default:
		c.Fail(sense.InvalidFieldInCDB(flagsByte(&c.CDB), 2))
	}
}

func (c *Command) verifyAll() {
	if c.limit = c.dataOut(); c.limit%c.wireBlock() != 0 {
		c.Fail(sense.InvalidFieldInIU)
		return
	}
	c.runCheck(check{receive: true, compare: true})
}

// writeAndVerify runs WRITE AND VERIFY. What is verified is the medium, so the
// writes are stable first.
func writeAndVerify(c *Command) {
	if bytchk(&c.CDB) > bytchkAll {
		c.Fail(sense.InvalidFieldInCDB(flagsByte(&c.CDB), 2))
		return
	}
	if s := c.prepareWrite(); s != nil {
		c.Fail(s)
		return
	}
	c.fua = true
	c.runCheck(check{receive: true, write: true, compare: bytchk(&c.CDB) == bytchkAll})
}

func (c *Command) runCheck(what check) {
	if c.limit == 0 {
		c.Good()
		return
	}
	c.work.check = what
	c.run(checkStep)
}

func checkStep(c *Command) {
	for c.checkSegments() && c.room() {
		s := c.open(SegmentSize/2, 2)
		if s == nil {
			return
		}
		if c.work.check.receive {
			s.receive()
		} else {
			s.state = arrived
		}
	}
}

// checkSegments takes the segments as far as they can go. It returns false
// when the command is to end.
func (c *Command) checkSegments() bool {
	for i := c.head; i != c.tail; i++ {
		if !c.at(i).check() {
			return false
		}
	}
	for c.head != c.tail && c.at(c.head).phase == checked {
		c.close()
	}
	return !c.goodIfAll()
}

// The phases of a segment that is checked.
const (
	unchecked uint8 = iota
	written         // or being written
	readBack        // or being read
	checked
)

// check takes the segment through its phases until it has to wait.
func (s *segment) check() bool {
	for s.state == arrived || s.state == done && s.phase != checked {
		if s.state == done && s.op.Err != nil {
			s.cmd.failOp(s)
			return false
		}
		if !s.nextPhase() {
			return false
		}
	}
	return true
}

func (s *segment) nextPhase() bool {
	what := s.cmd.work.check
	switch {
	case s.phase == unchecked && what.write:
		s.phase = written
		return s.put()
	case s.phase < readBack:
		s.phase = readBack
		if s.cmd.shield.active {
			s.startShielded(backstore.Read)
		} else {
			s.start(backstore.Read, s.medium())
		}
	default:
		s.phase = checked
		if s.cmd.shield.active {
			return s.checkShielded(what.compare)
		}
		return !what.compare || s.cmd.compare(s.data(), s.medium(), s.off)
	}
	return true
}

// medium returns the part of the buffer for what is read.
func (s *segment) medium() []byte {
	half := wholePages(s.n)
	return s.ref.Bytes()[half : half+s.n]
}

// compare fails the command if the Data-Out bytes want, which begin at buffer
// offset off, are not those of the medium.
func (c *Command) compare(want, medium []byte, off uint32) bool {
	if bytes.Equal(want, medium) {
		return true
	}
	c.Fail(sense.MiscompareAt(uint64(off) + uint64(firstDifference(want, medium))))
	return false
}

// firstDifference returns the index of the first byte in which a and b differ.
func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

// verifyBlock compares every block with the single one that the initiator
// sends.
func (c *Command) verifyBlock() {
	size, total := uint32(c.Nexus.LU.config.BlockSize), c.Length
	c.Length = 0
	switch {
	case total == 0:
		c.Good()
	case !c.brings(size):
		c.Fail(sense.InvalidFieldInIU)
	default:
		c.work.at, c.work.left = c.lba, c.count
		c.fetch(size, min(total, SegmentSize/2), func(c *Command) { c.run(verifyBlockStep) })
	}
}

func verifyBlockStep(c *Command) {
	s, lu := c.carrier(), c.Nexus.LU
	for s.state != running {
		if s.state == done && !c.sameBlocks(s) {
			return
		}
		if c.work.left == 0 {
			c.Good()
			return
		}
		room := c.workspace()
		n := min(c.work.left, uint64(len(room))>>lu.blockShift)
		s.op.Off, s.op.Data, s.op.Len = lu.byteOff(c.work.at), room[:n<<lu.blockShift], int64(n<<lu.blockShift)
		c.work.at += n
		c.work.left -= n
		s.launch(backstore.Read)
	}
}

// sameBlocks compares the blocks that s read with the block that arrived.
func (c *Command) sameBlocks(s *segment) bool {
	if s.op.Err != nil {
		c.failOp(s)
		return false
	}
	for medium := s.op.Data; len(medium) > 0; medium = medium[len(c.data):] {
		if !c.compare(c.data, medium[:len(c.data)], 0) {
			return false
		}
	}
	return true
}
