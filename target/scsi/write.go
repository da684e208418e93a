package scsi

import (
	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// write runs WRITE: up to MaxSegments segments under way, so that the transport
// and the medium work at the same time.
func write(c *Command) {
	if s := c.prepareWrite(); s != nil {
		c.Fail(s)
		return
	}
	if c.limit == 0 {
		c.Good()
		return
	}
	if uint32(len(c.Immediate)) == c.limit && !c.shield.active && c.writeNow() {
		return
	}
	c.run(writeStep)
}

// prepareWrite decodes a CDB that brings its blocks along. An initiator that
// brings fewer than the CDB asks for writes those; part of a block cannot be
// written.
func (c *Command) prepareWrite() *sense.Data {
	if s := c.transfer(); s != nil {
		return s
	}
	c.limit = c.dataOut()
	if c.limit%c.wireBlock() != 0 {
		return sense.InvalidFieldInIU
	}
	c.fua = c.stable()
	return nil
}

// writeNow writes immediate data out of the receive buffer if the medium takes
// it at once and no COMPARE AND WRITE is in the way. False left no trace.
func (c *Command) writeNow() bool {
	s := c.at(0)
	s.op.Kind, s.op.FUA, s.op.Err = backstore.Write, c.fua, nil
	s.op.Off, s.op.Data, s.op.Len = c.Nexus.LU.byteOff(c.lba), c.Immediate, int64(c.limit)
	s.lock.cover(shared, s.op.Off, s.op.Len)
	if !s.lock.try() {
		return false
	}
	if s.shutOut() {
		s.lock.release()
		return false
	}
	s.changing()
	if !c.fua {
		c.Nexus.writesVolatile()
	}
	taken := c.Lane.TryNow(&s.op)
	if !c.fua {
		c.Nexus.wroteVolatile()
	}
	s.lock.release()
	s.op.Data = nil
	switch {
	case !taken:
		c.refused = true
		return false
	case s.op.Err != nil:
		c.failOp(s)
	default:
		c.stored()
	}
	return true
}

func writeStep(c *Command) {
	for c.store() && c.room() {
		s := c.open(SegmentSize, 1)
		if s == nil {
			return
		}
		s.receive()
	}
}

// store writes the segments that have arrived and lets go of those that are
// written. It returns false when the command is to end.
func (c *Command) store() bool {
	for i := c.head; i != c.tail; i++ {
		s := c.at(i)
		if s.state == arrived && !s.put() {
			return false
		}
		if s.state == done && s.op.Err != nil {
			c.failOp(s)
			return false
		}
	}
	for c.head != c.tail && c.at(c.head).state == done {
		c.close()
	}
	return !c.goodIfAll()
}

// put writes a segment that has arrived. False says that its tuples are wrong, and
// that the command is to end.
func (s *segment) put() bool {
	if s.cmd.shield.active {
		return s.putShielded()
	}
	s.start(backstore.Write, s.data())
	return true
}

// goodIfAll ends the command when all of its segments have ended.
func (c *Command) goodIfAll() bool {
	if c.head != c.tail || c.next != c.limit {
		return false
	}
	if c.row.Access == AccessWrite {
		c.stored()
	} else {
		c.Good()
	}
	return true
}
