package scsi

import (
	"encoding/binary"

	"lunar/backstore/protect"
	"lunar/target/scsi/sense"
)

// address sets the command's lba and count and checks that they lie within the
// medium, and count within most. An LBA behind the last block is out of range
// even if no block is asked for.
func (c *Command) address(most uint64) *sense.Data {
	c.lba, c.count = addressOf(&c.CDB)
	blocks := c.Nexus.LU.state.Load().Blocks
	switch {
	case c.lba >= blocks || c.count > blocks-c.lba:
		return sense.LBAOutOfRange
	case c.count > most:
		return sense.InvalidFieldInCDB(lengthField(&c.CDB), sense.NoBit)
	}
	return nil
}

// transfer is address for commands that move the blocks: it sets Length.
func (c *Command) transfer() *sense.Data {
	lu := c.Nexus.LU
	if s := c.address(uint64(lu.traits.Load().limits.MaxTransfer)); s != nil {
		return s
	}
	c.Length = uint32(c.count) * c.wireBlock()
	return nil
}

// byteOff returns where a logical block begins in the store.
func (lu *LogicalUnit) byteOff(lba uint64) int64 { return int64(lba << lu.blockShift) }

// StartsAt returns the byte of the store at which a command that was not looked at yet
// begins to read or write, if it is READ or WRITE of 10 or 16 bytes (SBC-3).
func (lu *LogicalUnit) StartsAt(cdb *[16]byte) (off int64, ok bool) {
	switch cdb[0] {
	case 0x28, 0x2a:
		return lu.byteOff(uint64(binary.BigEndian.Uint32(cdb[2:]))), true
	case 0x88, 0x8a:
		return lu.byteOff(binary.BigEndian.Uint64(cdb[2:])), true
	}
	return 0, false
}

// wholeBlocks rounds n bytes up to logical blocks.
func (lu *LogicalUnit) wholeBlocks(n uint32) uint32 {
	mask := uint32(lu.config.BlockSize) - 1
	return (n + mask) &^ mask
}

// flags are a media command's flags.
func (c *Command) flags() byte { return c.CDB[flagsByte(&c.CDB)] }

// wireBlock is what a block takes on the transport, in bytes.
func (c *Command) wireBlock() uint32 {
	if c.shield.moves {
		return uint32(c.Nexus.LU.config.BlockSize) + protect.TupleSize
	}
	return uint32(c.Nexus.LU.config.BlockSize)
}

// fuaBit is FUA in byte 1 of READ, WRITE and COMPARE AND WRITE of 10 bytes and
// more.
const fuaBit = 0x08

// wantsMedium reports that the initiator asks for what is on the medium: what is
// newer in a cache has to be written there first (SBC-3 clause 5.8, FUA).
func (c *Command) wantsMedium() bool { return c.CDB[0]>>5 != group6 && c.flags()&fuaBit != 0 }

// stable reports whether the command's data must be on stable media before it
// is acknowledged: because the CDB says so or no write may stay volatile.
func (c *Command) stable() bool {
	return c.wantsMedium() || !c.Nexus.LU.state.Load().WriteCache
}

// span is what the command's LBA and length are about, in bytes.
func (c *Command) span() byteRange {
	lu := c.Nexus.LU
	return byteRange{lu.byteOff(c.lba), int64(c.count << lu.blockShift)}
}

// dataIn returns how many bytes of Data-In move: what the CDB asks for, but no
// more than the initiator expects.
func (c *Command) dataIn() uint32 {
	switch {
	case !c.HasIn:
		return 0
	case c.HasOut:
		return min(c.Length, c.ReadEDTL)
	}
	return min(c.Length, c.EDTL)
}

// brings reports whether exactly the n bytes that the CDB asks for come.
func (c *Command) brings(n uint32) bool {
	c.Length = n
	return c.dataOut() == n && c.EDTL == n
}

// dataOut returns how many bytes of Data-Out move.
func (c *Command) dataOut() uint32 {
	c.Takes = true
	if c.HasOut {
		return min(c.Length, c.EDTL)
	}
	return 0
}
