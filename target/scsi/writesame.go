package scsi

import (
	"bytes"
	"errors"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// Bits in byte 1 of WRITE SAME (SBC-3 clause 5.44).
const (
	unmapBit = 0x08
	ndobBit  = 0x01 // of WRITE SAME(16) only
)

// patternSize is the buffer, in bytes, in which WRITE SAME repeats its block.
const patternSize = 64 << 10

// writeSame runs WRITE SAME. A block of zeroes is left to the store, which may
// know a faster way than writing it; any other is written from a buffer that
// repeats it.
func writeSame(c *Command) {
	if s := c.writeSameExtent(); s != nil {
		c.Fail(s)
		return
	}
	c.writeSameBlock(c.Nexus.LU)
}

// writeSameExtent decodes what the CDB is about.
func (c *Command) writeSameExtent() *sense.Data {
	lu := c.Nexus.LU
	if s := c.address(lu.traits.Load().limits.MaxWriteSame); s != nil {
		return s
	}
	if c.count == 0 { // all that is left of the medium
		if c.count = lu.state.Load().Blocks - c.lba; lu.traits.Load().limits.WriteSameNonZero || c.count > lu.traits.Load().limits.MaxWriteSame {
			return sense.InvalidFieldInCDB(lengthField(&c.CDB), sense.NoBit)
		}
	}
	if c.flags()&unmapBit != 0 && !lu.traits.Load().info.Discard {
		return sense.InvalidFieldInCDB(flagsByte(&c.CDB), 3)
	}
	c.fua = !lu.state.Load().WriteCache
	c.work.at, c.work.left = c.lba, c.count
	return nil
}

// writeSameBlock fetches the block unless it is known to be zero.
func (c *Command) writeSameBlock(lu *LogicalUnit) {
	if c.shield.active && c.flags()&ndobBit == 0 && (c.shield.moves || c.flags()&unmapBit == 0) {
		c.fetchShielded()
		return
	}
	if c.flags()&ndobBit != 0 {
		c.zero()
		return
	}
	if !c.brings(uint32(lu.config.BlockSize)) {
		c.Fail(sense.InvalidFieldInIU)
		return
	}
	c.fetch(c.Length, c.patternRoom(), zeroOrRepeat)
}

// patternRoom returns the size of the buffer for repeated blocks.
func (c *Command) patternRoom() uint32 {
	return uint32(min(patternSize, c.count<<c.Nexus.LU.blockShift))
}

func zeroOrRepeat(c *Command) {
	if isZero(c.data) {
		c.zero()
		return
	}
	c.repeat()
}

// zero makes the extent read as zeroes. With UNMAP set it is released, if what
// is released reads as zeroes.
func (c *Command) zero() {
	c.work.kind = backstore.WriteZeroes
	if c.flags()&unmapBit != 0 && c.Nexus.LU.traits.Load().info.DiscardZeroes {
		c.work.kind = backstore.Discard
	}
	c.run(zeroStep)
}

func zeroStep(c *Command) {
	s := c.carrier()
	for s.state != running {
		if s.state == done && errors.Is(s.op.Err, backstore.ErrUnsupported) {
			c.zeroByWriting(s)
			return
		}
		if !c.pieceDone(s) {
			return
		}
		if c.work.left == 0 {
			c.finishPieces()
			return
		}
		c.nextPiece(s, pieceSize, nil)
	}
}

// zeroByWriting writes zeroes from a buffer over the piece that s could not
// zero and all that follows.
func (c *Command) zeroByWriting(s *segment) {
	shift := c.Nexus.LU.blockShift
	c.work.at -= uint64(s.op.Len) >> shift
	c.work.left += uint64(s.op.Len) >> shift
	s.state = idle
	if c.list != nil {
		c.repeat()
		return
	}
	c.fetch(0, c.patternRoom(), func(c *Command) { c.repeat() })
}

// repeat fills the workspace with the block that arrived, or zeroes where the
// initiator sent none, and writes it until the extent is full.
func (c *Command) repeat() {
	room := c.workspace()
	clear(room)
	for at := 0; len(c.data) > 0 && at < len(room); at += len(c.data) {
		copy(room[at:], c.data)
	}
	c.run(repeatStep)
}

func repeatStep(c *Command) {
	s, room := c.carrier(), c.workspace()
	for s.state != running {
		if !c.pieceDone(s) {
			return
		}
		if c.work.left == 0 {
			c.stored()
			return
		}
		c.nextPiece(s, uint64(len(room)), room)
	}
}

// isZero reports whether b holds nothing but zeroes: its first byte is one and
// each equals the next, which is a single comparison of memory.
func isZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}
