package scsi

import (
	"encoding/binary"

	"lunar/backstore"
	"lunar/backstore/protect"
	"lunar/target/scsi/sense"
)

// putShielded writes a segment that has arrived, if its tuples are right; who sends
// none has them made. False says that the command is to end.
func (s *segment) putShielded() bool {
	c := s.cmd
	wire, blocks, tuples := s.shieldedParts()
	if c.shield.moves {
		protect.Separate(blocks, tuples, c.Nexus.LU.config.BlockSize, wire)
		if !s.checkTuples() {
			return false
		}
	} else {
		copy(blocks, wire)
		c.makeTuples(blocks, tuples, s.firstBlock())
	}
	s.startShielded(backstore.Write)
	return true
}

// makeTuples makes the tuples of blocks, the first of which is number first of
// the command. With type 3 a reference tag that came is that of all blocks.
func (c *Command) makeTuples(blocks, tuples []byte, first uint32) {
	lu := c.Nexus.LU
	protect.Generate(lu.protect, lu.config.BlockSize, blocks, tuples, c.shield.ref+first)
	repeats := lu.protect == protect.Type3 && c.shield.moves
	if c.shield.app == 0 && !repeats {
		return
	}
	for at := 0; at < len(tuples); at += protect.TupleSize {
		t := protect.Tuple(tuples[at:])
		ref := t.Ref()
		if repeats {
			ref = c.shield.ref
		}
		t.Set(t.Guard(), c.shield.app, ref)
	}
}

// fetchShielded gets the block of WRITE SAME and its tuple, which is the first
// one's: the others have the reference tags that follow it, or with type 3 the same
// (SBC-3 clause 5.44).
func (c *Command) fetchShielded() {
	if !c.brings(c.wireBlock()) {
		c.Fail(sense.InvalidFieldInIU)
		return
	}
	room := c.patternRoom()
	c.fetch(c.Length, room+room>>c.Nexus.LU.blockShift*protect.TupleSize, repeatShielded)
}

// neverWritten is the tuple of a block that was never written or was released: no
// other block may be released with UNMAP (SBC-3 clause 5.44).
const neverWritten = 1<<64 - 1

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
		if c.flags()&unmapBit != 0 && isZero(c.data[:size]) && binary.BigEndian.Uint64(t) == neverWritten {
			c.data = nil
			c.zero()
			return
		}
		c.shield.app = t.App()
		if lu.protect == protect.Type3 || !t.Escaped(lu.protect) {
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
		c.makeTuples(blocks, tuples, first)
		s.op.Off, s.op.Len, s.op.Data = lu.byteOff(c.work.at), int64(len(blocks)), blocks
		s.op.Tuples, s.op.Unchecked = tuples, true
		c.work.at += n
		c.work.left -= n
		s.launch(backstore.Write)
	}
}
