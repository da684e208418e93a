package scsi

import "encoding/binary"

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

// flags are a media command's flags.
func (c *Command) flags() byte { return c.CDB[flagsByte(&c.CDB)] }

// longCDB is the usage of a 32-byte media command with these flags: LBA in byte 12,
// expected reference tag in 20, application tag in 24 and its mask in 26, length in
// 28 (SBC-3 clause 5.11). Control and group number precede the service action.
func longCDB(action, flags byte) CDB {
	return CDB{
		variableLength, 0, 0, 0, 0, 0, 0x1f, additionalLength, 0, action, flags, 0,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	}
}

// longAtomicCDB has ATOMIC BOUNDARY besides (SBC-4 clause 5.49).
func longAtomicCDB() CDB {
	cdb := longCDB(0x0f, 0x18)
	cdb[4], cdb[5] = 0xff, 0xff
	return cdb
}

// longTable holds the commands of type 2 protection, which name the tags that they
// expect.
var longTable = []Row{
	{
		Name: "READ(32)", Opcode: variableLength, ServiceAction: 0x09, Length: 32, Access: AccessRead,
		Flags: Protectable | NeedsType2, Usage: longCDB(0x09, 0x18), Run: read,
	},
	{
		Name: "VERIFY(32)", Opcode: variableLength, ServiceAction: 0x0a, Length: 32, Access: AccessRead,
		Flags: Protectable | NeedsType2, Usage: longCDB(0x0a, 0x16), Run: verify,
	},
	{
		Name: "WRITE(32)", Opcode: variableLength, ServiceAction: 0x0b, Length: 32, Access: AccessWrite,
		Flags: Protectable | NeedsType2, Usage: longCDB(0x0b, 0x18), Run: write,
	},
	{
		Name: "WRITE AND VERIFY(32)", Opcode: variableLength, ServiceAction: 0x0c, Length: 32, Access: AccessWrite,
		Flags: Protectable | NeedsType2, Usage: longCDB(0x0c, 0x16), Run: writeAndVerify,
	},
	{
		Name: "WRITE SAME(32)", Opcode: variableLength, ServiceAction: 0x0d, Length: 32, Access: AccessWrite,
		Flags: Protectable | NeedsType2, Usage: longCDB(0x0d, 0x09), Run: writeSame,
	},
	{
		Name: "WRITE ATOMIC(32)", Opcode: variableLength, ServiceAction: 0x0f, Length: 32, Access: AccessWrite,
		Flags: Protectable | NeedsType2 | NeedsAtomic, Usage: longAtomicCDB(), Run: writeAtomic,
	},
}

// lookupLong is lookup for operation code 7Fh.
func lookupLong(cdb *CDB) (*Row, *Sense) {
	action := int(binary.BigEndian.Uint16(cdb[8:]))
	e := &index[variableLength]
	if action >= serviceActions || e.actions[action] == nil {
		return nil, InvalidFieldInCDB(8, NoBit)
	}
	if cdb[7] != additionalLength {
		return nil, InvalidFieldInCDB(7, NoBit)
	}
	return e.actions[action], nil
}
