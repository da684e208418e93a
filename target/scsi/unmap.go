package scsi

import (
	"encoding/binary"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// The UNMAP parameter list (SBC-3 clause 5.31.2): UNMAP DATA LENGTH and UNMAP
// BLOCK DESCRIPTOR DATA LENGTH in a header of 8 bytes, then descriptors of an
// 8 byte LBA, a 4 byte number of blocks and 4 reserved bytes.
const (
	unmapHeader     = 8
	unmapDescriptor = 16
)

// unmap runs UNMAP: the whole list is checked before anything is released.
func unmap(c *Command) {
	descriptors, s := unmapDescriptors(c)
	if s == nil {
		s = c.Nexus.LU.checkUnmap(descriptors)
	}
	if s != nil {
		c.Fail(s)
		return
	}
	c.data = descriptors
	c.fua = !c.Nexus.LU.state.Load().WriteCache
	c.work.kind = backstore.Discard
	c.run(unmapStep)
}

// unmapDescriptors returns the descriptors of the list, whole ones only: an
// incomplete last one is to be ignored, and no list at all is no error.
func unmapDescriptors(c *Command) ([]byte, *sense.Data) {
	list := c.List()
	if c.Length == 0 {
		return nil, nil
	}
	if len(list) < unmapHeader {
		return nil, sense.ParameterListLengthError
	}
	n := int(binary.BigEndian.Uint16(list[2:]))
	if n > len(list)-unmapHeader {
		return nil, sense.ParameterListLengthError
	}
	return list[unmapHeader:][:n-n%unmapDescriptor], nil
}

// checkUnmap checks all descriptors against the medium and the limits.
func (lu *LogicalUnit) checkUnmap(descriptors []byte) *sense.Data {
	if uint32(len(descriptors)/unmapDescriptor) > lu.traits.Load().limits.MaxUnmapDescriptors {
		return sense.InvalidFieldInList(2, sense.NoBit)
	}
	blocks, total := lu.state.Load().Blocks, uint64(0)
	for at := 0; at < len(descriptors); at += unmapDescriptor {
		lba, n := unmapExtent(descriptors[at:])
		if lba > blocks || n > blocks-lba {
			return sense.LBAOutOfRange
		}
		if total += n; total > uint64(lu.traits.Load().limits.MaxUnmap) {
			return sense.InvalidFieldInList(unmapHeader+at+8, sense.NoBit)
		}
	}
	return nil
}

func unmapExtent(descriptor []byte) (lba, blocks uint64) {
	return binary.BigEndian.Uint64(descriptor), uint64(binary.BigEndian.Uint32(descriptor[8:]))
}

func unmapStep(c *Command) {
	s := c.carrier()
	for s.state != running {
		if !c.pieceDone(s) {
			return
		}
		if !c.nextExtent() {
			c.finishPieces()
			return
		}
		c.nextPiece(s, pieceSize, nil)
	}
}

// nextExtent makes the next descriptor with blocks in it the work, when the
// last one is done.
func (c *Command) nextExtent() bool {
	for c.work.left == 0 {
		if len(c.data) == 0 {
			return false
		}
		c.work.at, c.work.left = unmapExtent(c.data)
		c.data = c.data[unmapDescriptor:]
	}
	return true
}
