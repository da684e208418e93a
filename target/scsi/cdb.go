package scsi

import "encoding/binary"

// CDB is a command descriptor block: the operation code in byte 0, the rest
// as its table row says. Bytes beyond Length are zero.
type CDB [32]byte

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

// variableLength is the operation code of CDBs whose service action is in bytes 8
// and 9 and tells the command (SPC-4 clause 4.2.3). Those here have 32 bytes, as
// the ADDITIONAL CDB LENGTH field in byte 7 says.
const (
	variableLength   = 0x7f
	additionalLength = 0x18
)

// flagsByte is the byte of a media command's CDB that has its flags.
func flagsByte(cdb *CDB) int {
	if cdb[0] == variableLength {
		return 10
	}
	return 1
}

// nacaBit is NACA in the CONTROL byte (SAM-5 clause 5.2).
const nacaBit = 0x04

// controlByte returns where the CONTROL byte of a CDB is; 0 if that is not known.
func controlByte(cdb *CDB) int {
	if cdb[0] == variableLength {
		return 1
	}
	return [8]int{5, 9, 9, 0, 15, 11, 0, 0}[cdb[0]>>5]
}

// groupField has the field GROUP NUMBER in its byte (SBC-3 clause 4.22).
const groupField = 0x1f

// groupBytes are where READ and WRITE have their GROUP NUMBER, by operation code; 0: nowhere.
var groupBytes = [256]uint8{0x28: 6, 0x2a: 6, 0xa8: 10, 0xaa: 10, 0x88: 14, 0x8a: 14}

// GroupNumber is the GROUP NUMBER of a READ or WRITE of 10, 12 or 16 bytes; of other commands
// there is none.
func GroupNumber(cdb *CDB) (number uint8, ok bool) {
	at := groupBytes[cdb[0]]
	return cdb[at] & groupField, at > 0
}

// writeAtomic16 is the operation code of WRITE ATOMIC(16).
const writeAtomic16 = 0x9c

// allocationAt6 returns the length in bytes 6 to 9 of a CDB of 12 bytes.
func allocationAt6(cdb *CDB) uint32 { return binary.BigEndian.Uint32(cdb[6:]) }
