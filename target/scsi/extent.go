package scsi

import "encoding/binary"

// The groups of operation codes (SAM-5 clause 5.2.2), in bits 7 to 5, that
// tell a CDB's length and where its LBA and length fields are.
const (
	group6        = 0
	groupVariable = 3 // that of 32-byte CDBs
	group16       = 4
	group12       = 5
)

// lengthField returns the first byte of the CDB's TRANSFER LENGTH field or
// what stands in its place.
func lengthField(cdb *CDB) int {
	switch cdb[0] >> 5 {
	case group6:
		return 4
	case group12:
		return 6
	case group16:
		return 10
	case groupVariable:
		return 28
	}
	return 7
}

// addressOf returns the LOGICAL BLOCK ADDRESS and TRANSFER LENGTH fields of a
// media command. In COMPARE AND WRITE the three bytes before NUMBER OF LOGICAL BLOCKS
// are reserved and known to be zero.
func addressOf(cdb *CDB) (lba, count uint64) {
	be := binary.BigEndian
	switch cdb[0] >> 5 {
	case groupVariable:
		return be.Uint64(cdb[12:]), uint64(be.Uint32(cdb[28:]))
	case group6:
		// A length of zero means 256 blocks (SBC-3 clause 5.8).
		return uint64(be.Uint32(cdb[0:]) & 0x1fffff), (uint64(cdb[4])+255)%256 + 1
	case group12:
		return uint64(be.Uint32(cdb[2:])), uint64(be.Uint32(cdb[6:]))
	case group16:
		if cdb[0] == writeAtomic16 {
			return be.Uint64(cdb[2:]), uint64(be.Uint16(cdb[12:]))
		}
		return be.Uint64(cdb[2:]), uint64(be.Uint32(cdb[10:]))
	}
	return uint64(be.Uint32(cdb[2:])), uint64(be.Uint16(cdb[7:]))
}

// address sets the command's lba and count and checks that they lie within the
// medium, and count within most. An LBA behind the last block is out of range
// even if no block is asked for.
func (c *Command) address(most uint64) *Sense {
	c.lba, c.count = addressOf(&c.CDB)
	blocks := c.Nexus.LU.state.Load().Blocks
	switch {
	case c.lba >= blocks || c.count > blocks-c.lba:
		return LBAOutOfRange
	case c.count > most:
		return InvalidFieldInCDB(lengthField(&c.CDB), NoBit)
	}
	return nil
}

// transfer is address for commands that move the blocks: it sets Length.
func (c *Command) transfer() *Sense {
	lu := c.Nexus.LU
	if s := c.address(uint64(lu.traits().limits.MaxTransfer)); s != nil {
		return s
	}
	c.Length = uint32(c.count) * c.wireBlock()
	return nil
}

// byteOff returns where a logical block begins in the store.
func (lu *LogicalUnit) byteOff(lba uint64) int64 { return int64(lba << lu.blockShift) }

// wholeBlocks rounds n bytes up to logical blocks.
func (lu *LogicalUnit) wholeBlocks(n uint32) uint32 {
	mask := uint32(lu.config.BlockSize) - 1
	return (n + mask) &^ mask
}
