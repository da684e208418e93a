package scsi

import (
	"lunar/backstore"
	"lunar/backstore/protect"
)

// writeShielded runs WRITE with protection information.
func writeShielded(c *Command) {
	if s := c.prepareShielded(); s != nil {
		c.Fail(s)
		return
	}
	if c.limit == 0 {
		c.Good()
		return
	}
	c.run(writeShieldedStep)
}

// prepareShielded is prepareWrite for blocks with tuples.
func (c *Command) prepareShielded() *Sense {
	if s := c.transferShielded(); s != nil {
		return s
	}
	if c.limit = c.dataOut(); c.limit%c.wireBlock() != 0 {
		return InvalidFieldInIU
	}
	c.fua = c.stable()
	return nil
}

// writeAndVerifyShielded runs WRITE AND VERIFY with protection information.
func writeAndVerifyShielded(c *Command) {
	if bytchk(&c.CDB) > bytchkAll {
		c.Fail(InvalidFieldInCDB(flagsByte(&c.CDB), 2))
		return
	}
	if s := c.prepareShielded(); s != nil {
		c.Fail(s)
		return
	}
	c.fua = true
	c.runShieldedCheck(check{receive: true, write: true, compare: bytchk(&c.CDB) == bytchkAll})
}

func writeShieldedStep(c *Command) {
	for c.storeShielded() && c.room() {
		s := c.openShielded()
		if s == nil {
			return
		}
		s.receive()
	}
}

// storeShielded is store for blocks with tuples.
func (c *Command) storeShielded() bool {
	for i := c.head; i != c.tail; i++ {
		s := c.at(i)
		if s.state == arrived {
			if sense := s.storeShielded(); sense != nil {
				c.Fail(sense)
				return false
			}
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

// storeShielded writes a segment that has arrived, if its tuples are right. No
// tuple may be one that is not there: who sends none has them made.
func (s *segment) storeShielded() *Sense {
	c := s.cmd
	wire, blocks, tuples := s.shieldedParts()
	lu, size := c.Nexus.LU, c.Nexus.LU.config.BlockSize
	if c.shield.moves {
		protect.Separate(blocks, tuples, size, wire)
		if sense := s.checkTuples(); sense != nil {
			return sense
		}
	} else {
		copy(blocks, wire)
		c.makeTuples(lu, blocks, tuples, s.firstBlock())
	}
	s.startShielded(true)
	return nil
}

// makeTuples makes the tuples of blocks, the first of which is number first of
// the command.
func (c *Command) makeTuples(lu *LogicalUnit, blocks, tuples []byte, first uint32) {
	protect.Generate(lu.protect, lu.config.BlockSize, blocks, tuples, c.shield.ref+first)
	if c.shield.app == 0 {
		return
	}
	for at := 0; at < len(tuples); at += protect.TupleSize {
		t := protect.Tuple(tuples[at:])
		t.Set(t.Guard(), c.shield.app, t.Ref())
	}
}

// writeSameShielded runs WRITE SAME with protection information: the tuple that
// comes with the block is the first one's, the others have the reference tags
// that follow it (SBC-3 clause 5.44).
func writeSameShielded(c *Command) {
	lu := c.Nexus.LU
	if s := c.writeSameExtent(); s != nil {
		c.Fail(s)
		return
	}
	if c.CDB[flagsByte(&c.CDB)]&(ndobBit|unmapBit) != 0 {
		c.writeSameBlock(lu)
		return
	}
	c.Length = c.wireBlock()
	if !c.HasOut || c.EDTL != c.Length {
		c.Fail(InvalidFieldInIU)
		return
	}
	room := c.patternRoom()
	c.fetch(c.Length, room+room>>lu.blockShift*protect.TupleSize, repeatShielded)
}

// repeatShielded checks the tuple that came and fills the buffer with the block.
func repeatShielded(c *Command) {
	lu := c.Nexus.LU
	size := lu.config.BlockSize
	if c.shield.moves {
		at, wrong := c.shield.checks.Check(lu.protect, size, c.data[:size], c.data[size:], c.shield.ref)
		if wrong != 0 {
			c.Fail(c.sense(wrongTuple(c.lba+uint64(at), wrong)))
			return
		}
		t := protect.Tuple(c.data[size:])
		c.shield.app = t.App()
		if !t.Escaped(lu.protect) {
			c.shield.ref = t.Ref()
		}
	}
	blocks := c.workspace()[:c.patternRoom()]
	for at := 0; at < len(blocks); at += size {
		copy(blocks[at:], c.data[:size])
	}
	c.run(repeatShieldedStep)
}

func repeatShieldedStep(c *Command) {
	s, lu := c.carrier(), c.Nexus.LU
	for s.state != running {
		if !c.pieceDone(s) {
			return
		}
		if c.work.left == 0 {
			c.stored()
			return
		}
		room, first := c.patternRoom(), uint32(c.work.at-c.lba)
		n := min(c.work.left, uint64(room)>>lu.blockShift)
		blocks := c.workspace()[:n<<lu.blockShift]
		tuples := c.workspace()[room:][:n*protect.TupleSize]
		c.makeTuples(lu, blocks, tuples, first)
		s.op.Off, s.op.Len, s.op.Data = lu.byteOff(c.work.at), int64(len(blocks)), blocks
		s.op.Tuples, s.op.Unchecked = tuples, true
		c.work.at += n
		c.work.left -= n
		s.launch(backstore.Write)
	}
}
