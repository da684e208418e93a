package scsi

import (
	"encoding/binary"
	"errors"
	"math"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// GET LBA STATUS parameter data (SBC-3 clause 5.5.2): a header of 8 bytes, then
// descriptors of an 8 byte LBA, a 4 byte number of blocks and the provisioning
// status in the low bits of byte 12.
const (
	lbaStatusHeader     = 8
	lbaStatusDescriptor = 16
	lbaDeallocated      = 1
	// maxLBAStatus bounds the descriptors of one answer.
	maxLBAStatus = 64
)

// getLBAStatus runs GET LBA STATUS: it asks the store for one extent after the
// other until the initiator has no room for more.
func getLBAStatus(c *Command) {
	lu := c.Nexus.LU
	c.lba = binary.BigEndian.Uint64(c.CDB[2:])
	blocks := lu.state.Load().Blocks
	if c.lba >= blocks {
		c.Fail(sense.LBAOutOfRange)
		return
	}
	c.work.at, c.work.left = c.lba, blocks-c.lba
	c.work.kind = backstore.Map
	c.work.index = int(max(1, min(maxLBAStatus, c.lbaStatusRoom()/lbaStatusDescriptor)))
	c.Parameter = make([]byte, lbaStatusHeader, lbaStatusHeader+c.work.index*lbaStatusDescriptor)
	c.run(lbaStatusStep)
}

// lbaStatusRoom returns the bytes that the allocation length leaves for
// descriptors.
func (c *Command) lbaStatusRoom() uint32 {
	return max(lbaStatusHeader, lbaStatusAllocation(c)) - lbaStatusHeader
}

func lbaStatusAllocation(c *Command) uint32 { return binary.BigEndian.Uint32(c.CDB[10:]) }

func lbaStatusStep(c *Command) {
	s := c.carrier()
	for s.state != running {
		if s.state == done && !c.addLBAStatus(s) {
			return
		}
		if c.work.left == 0 || c.work.index == 0 {
			binary.BigEndian.PutUint32(c.Parameter, uint32(len(c.Parameter)-4))
			c.SendParameter(c.Parameter, lbaStatusAllocation(c))
			return
		}
		c.askLBAStatus(s)
	}
}

// askLBAStatus asks for the extent at work.at. A descriptor has 32 bits for
// its length.
func (c *Command) askLBAStatus(s *segment) {
	shift := c.Nexus.LU.blockShift
	s.op.Off, s.op.Len = int64(c.work.at<<shift), int64(min(c.work.left, math.MaxUint32)<<shift)
	s.launch(backstore.Map)
}

// addLBAStatus describes the extent that s asked for. A store that cannot tell
// has everything mapped. A block that is only partly unmapped is mapped.
func (c *Command) addLBAStatus(s *segment) bool {
	s.state = idle
	mapped, n := s.op.Mapped, s.op.Len
	switch {
	case errors.Is(s.op.Err, backstore.ErrUnsupported):
		mapped, n = true, int64(c.work.left<<c.Nexus.LU.blockShift)
	case s.op.Err != nil:
		c.failOp(s)
		return false
	}
	c.describeLBAs(mapped, n)
	return true
}

func (c *Command) describeLBAs(mapped bool, n int64) {
	w, lu := &c.work, c.Nexus.LU
	size := int64(lu.config.BlockSize)
	if !mapped && n < size {
		mapped = true
	}
	if mapped {
		n += size - 1
	}
	blocks := min(uint64(n/size), w.left, math.MaxUint32)
	var status byte
	if !mapped {
		status = lbaDeallocated
	}
	p := binary.BigEndian.AppendUint64(c.Parameter, w.at)
	p = binary.BigEndian.AppendUint32(p, uint32(blocks))
	c.Parameter = append(p, status, 0, 0, 0)
	w.at += blocks
	w.left -= blocks
	w.index--
}
