package scsi

import "lunar/backstore"

// orWrite runs ORWRITE(16) (SBC-3 clause 5.6) with BMOP and everything else of
// ORWRITE(32) left out: what arrives is or-ed into the blocks. Each segment
// holds its extent in the guard exclusively from before its read until after
// its write, so that no other change falls between the two.
func orWrite(c *Command) {
	if s := c.prepareWrite(); s != nil {
		c.Fail(s)
		return
	}
	if c.limit == 0 {
		c.Good()
		return
	}
	c.run(orWriteStep)
}

func orWriteStep(c *Command) {
	for c.orSegments() && c.room() {
		s := c.open(SegmentSize/2, 2)
		if s == nil {
			return
		}
		s.receive()
	}
}

// The phases of a segment of ORWRITE.
const (
	orUnread  uint8 = iota
	orRead          // or being read
	orWritten       // or being written
)

// orSegments takes the segments as far as they can go. It returns false when
// the command is to end.
func (c *Command) orSegments() bool {
	for i := c.head; i != c.tail; i++ {
		if !c.at(i).or() {
			return false
		}
	}
	for c.head != c.tail && c.at(c.head).state == done && c.at(c.head).phase == orWritten {
		c.close()
	}
	return !c.goodIfAll()
}

// or takes the segment through its phases until it has to wait.
func (s *segment) or() bool {
	for s.state == arrived || s.state == done {
		switch {
		case s.state == done && s.op.Err != nil:
			s.cmd.failOp(s)
			return false
		case s.phase == orUnread:
			s.phase = orRead
			s.lock.cover(exclusive, s.nexus().LU.byteOff(s.cmd.lba)+int64(s.off), int64(s.n))
			s.lock.keep = true
			s.start(backstore.Read, s.medium())
		case s.phase == orRead:
			s.phase = orWritten
			merged := s.medium()
			for i, b := range s.data() {
				merged[i] |= b
			}
			s.start(backstore.Write, merged)
		default:
			// An earlier segment may wait for it, and is released first.
			s.lock.release()
			return true
		}
	}
	return true
}
