package scsi

import (
	"bytes"

	"lunar/backstore"
	"lunar/backstore/protect"
)

func transferKind(write bool) backstore.Kind {
	if write {
		return backstore.Write
	}
	return backstore.Read
}

// readShielded runs READ with protection information.
func readShielded(c *Command) {
	if s := c.transferShielded(); s != nil {
		c.Fail(s)
		return
	}
	if c.limit = c.dataIn(); c.limit == 0 {
		c.Good()
		return
	}
	if lu := c.Nexus.LU; c.wantsMedium() && lu.info.VolatileCache {
		c.flushRange(lu.byteOff(c.lba), int64(c.count<<lu.blockShift), func(c *Command) {
			c.close()
			c.run(readShieldedStep)
		})
		return
	}
	c.run(readShieldedStep)
}

func readShieldedStep(c *Command) {
	for c.joinTuples() && c.sendRead() && c.room() {
		s := c.openShielded()
		if s == nil {
			return
		}
		s.startShielded(false)
	}
}

// joinTuples checks what was read and puts it together for the transport. It
// returns false when the command is to end.
func (c *Command) joinTuples() bool {
	for i := c.head; i != c.tail; i++ {
		s := c.at(i)
		if s.state != done || s.op.Err != nil || s.phase == checked {
			continue
		}
		if sense := s.checkTuples(); sense != nil {
			c.Fail(sense)
			return false
		}
		wire, blocks, tuples := s.shieldedParts()
		if c.shield.moves {
			protect.Interleave(wire, c.Nexus.LU.config.BlockSize, blocks, tuples)
		} else {
			copy(wire, blocks)
		}
		s.phase = checked
	}
	return true
}

// verifyShielded runs VERIFY with protection information, and WRITE AND VERIFY
// after its writes. Each block of a Data-Out buffer is compared with the medium;
// one block for all (BYTCHK 11b) cannot be, since their tuples differ.
func verifyShielded(c *Command) {
	if s := c.transferShielded(); s != nil {
		c.Fail(s)
		return
	}
	switch bytchk(&c.CDB) {
	case bytchkNone:
		c.limit, c.Length = c.Length, 0
		c.runShieldedCheck(check{})
	case bytchkAll:
		if c.limit = c.dataOut(); c.limit%c.wireBlock() != 0 {
			c.Fail(InvalidFieldInIU)
			return
		}
		c.runShieldedCheck(check{receive: true, compare: true})
	default:
		c.Fail(InvalidFieldInCDB(flagsByte(&c.CDB), 2))
	}
}

func (c *Command) runShieldedCheck(what check) {
	if c.limit == 0 {
		c.Good()
		return
	}
	c.work.check = what
	c.run(checkShieldedStep)
}

func checkShieldedStep(c *Command) {
	for c.checkShielded() && c.room() {
		s := c.openShielded()
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

// checkShielded takes the segments as far as they can go. It returns false when
// the command is to end.
func (c *Command) checkShielded() bool {
	for i := c.head; i != c.tail; i++ {
		for s := c.at(i); s.state == arrived || s.state == done && s.phase != checked; {
			if s.state == done && s.op.Err != nil {
				c.failOp(s)
				return false
			}
			if sense := s.nextShielded(); sense != nil {
				c.Fail(sense)
				return false
			}
		}
	}
	for c.head != c.tail && c.at(c.head).phase == checked {
		c.close()
	}
	return !c.goodIfAll()
}

// nextShielded is nextPhase with protection information.
func (s *segment) nextShielded() *Sense {
	what := s.cmd.work.check
	switch {
	case s.phase == unchecked && what.write:
		s.phase = written
		return s.storeShielded()
	case s.phase < readBack:
		s.phase = readBack
		s.startShielded(false)
		return nil
	}
	s.phase = checked
	if sense := s.checkTuples(); sense != nil || !what.compare {
		return sense
	}
	return s.compareShielded()
}

// compareShielded compares what arrived with what is on the medium.
func (s *segment) compareShielded() *Sense {
	wire, blocks, tuples := s.shieldedParts()
	size, unit := s.cmd.Nexus.LU.config.BlockSize, int(s.cmd.wireBlock())
	for i := 0; i*unit < len(wire); i++ {
		want, found := wire[i*unit:(i+1)*unit], blocks[i*size:(i+1)*size]
		if !bytes.Equal(want[:size], found) {
			return MiscompareAt(uint64(s.off) + uint64(i*unit+firstDifference(want[:size], found)))
		}
		if tuple := tuples[i*protect.TupleSize : (i+1)*protect.TupleSize]; unit > size && !bytes.Equal(want[size:], tuple) {
			return MiscompareAt(uint64(s.off) + uint64(i*unit+size+firstDifference(want[size:], tuple)))
		}
	}
	return nil
}
