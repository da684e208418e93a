package scsi

import "encoding/binary"

func init() { enlist(sbcTable) }

// sbcTable holds the commands that read, write or release logical blocks
// (SBC-3). Usage leaves out protection information (RDPROTECT, WRPROTECT and
// VRPROTECT in bits 7 to 5 of byte 1: see Protectable), ANCHOR, which there
// is not, and NACA, which all commands have.
// DPO and GROUP NUMBER are accepted and change nothing by default: the one is advice, the
// other may name the class of reads and writes (GroupNumber), which does not change what
// the commands do. FUA_NV (bit 1 of byte 1) and
// SYNC_NV are obsolete and accepted for the sake of older initiators; they ask
// for less than FUA and a flush do.
var sbcTable = []Row{
	{
		Name: "READ(6)", Opcode: 0x08, ServiceAction: -1, Length: 6, Access: AccessRead,
		Usage: CDB{0x08, 0x1f, 0xff, 0xff, 0xff},
		Run:   read,
	},
	{
		Name: "WRITE(6)", Opcode: 0x0a, ServiceAction: -1, Length: 6, Access: AccessWrite,
		Usage: CDB{0x0a, 0x1f, 0xff, 0xff, 0xff},
		Run:   write,
	},
	{
		Name: "READ(10)", Opcode: 0x28, ServiceAction: -1, Length: 10, Access: AccessRead,
		Usage: CDB{0x28, 0x1a, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff},
		Flags: Protectable,
		Run:   read,
	},
	{
		Name: "WRITE(10)", Opcode: 0x2a, ServiceAction: -1, Length: 10, Access: AccessWrite,
		Usage: CDB{0x2a, 0x1a, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff},
		Flags: Protectable,
		Run:   write,
	},
	{
		Name: "WRITE AND VERIFY(10)", Opcode: 0x2e, ServiceAction: -1, Length: 10, Access: AccessWrite,
		Usage: CDB{0x2e, 0x16, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff},
		Flags: Protectable,
		Run:   writeAndVerify,
	},
	{
		Name: "VERIFY(10)", Opcode: 0x2f, ServiceAction: -1, Length: 10, Access: AccessRead,
		Usage: CDB{0x2f, 0x16, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff},
		Flags: Protectable,
		Run:   verify,
	},
	{
		Name: "PRE-FETCH(10)", Opcode: 0x34, ServiceAction: -1, Length: 10, Access: AccessRead,
		Usage: CDB{0x34, 0x02, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff},
		Run:   prefetch,
	},
	{
		Name: "READ DEFECT DATA(10)", Opcode: 0x37, ServiceAction: -1, Length: 10, Exempt: true,
		Conflict: ConflictExclusive,
		Usage:    CDB{0x37, 0, 0x1f, 0, 0, 0, 0, 0xff, 0xff},
		Run:      readDefectData,
	},
	{
		Name: "SYNCHRONIZE CACHE(10)", Opcode: 0x35, ServiceAction: -1, Length: 10,
		Usage: CDB{0x35, 0x06, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff},
		Run:   synchronizeCache,
	},
	{
		Name: "WRITE SAME(10)", Opcode: 0x41, ServiceAction: -1, Length: 10, Access: AccessWrite,
		Usage: CDB{0x41, 0x08, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff},
		Flags: Protectable,
		Run:   writeSame,
	},
	{
		Name: "UNMAP", Opcode: 0x42, ServiceAction: -1, Length: 10, Access: AccessWrite,
		Flags: ParameterList | NeedsDiscard,
		Usage: CDB{0x42, 0, 0, 0, 0, 0, 0x1f, 0xff, 0xff},
		List:  func(cdb *CDB) uint32 { return uint32(binary.BigEndian.Uint16(cdb[7:])) },
		Run:   unmap,
	},
	{
		Name: "SANITIZE OVERWRITE", Opcode: 0x48, ServiceAction: 0x01, Length: 10, Access: AccessWrite,
		Flags: ParameterList | DuringSanitize,
		Usage: CDB{0x48, 0xa1, 0, 0, 0, 0, 0, 0xff, 0xff},
		List:  sanitizeListLength, Run: sanitizeOverwrite,
	},
	{
		Name: "SANITIZE BLOCK ERASE", Opcode: 0x48, ServiceAction: 0x02, Length: 10, Access: AccessWrite,
		Flags: DuringSanitize | NeedsErase,
		Usage: CDB{0x48, 0xa2},
		Run:   sanitizeBlockErase,
	},
	{
		Name: "SANITIZE CRYPTOGRAPHIC ERASE", Opcode: 0x48, ServiceAction: 0x03, Length: 10, Access: AccessWrite,
		Flags: DuringSanitize | NeedsCryptoErase,
		Usage: CDB{0x48, 0xa3},
		Run:   sanitizeCryptoErase,
	},
	{
		Name: "SANITIZE EXIT FAILURE MODE", Opcode: 0x48, ServiceAction: 0x1f, Length: 10, Access: AccessWrite,
		Flags: DuringSanitize,
		Usage: CDB{0x48, 0x1f},
		Run:   sanitizeExitFailureMode,
	},
	{
		Name: "READ(16)", Opcode: 0x88, ServiceAction: -1, Length: 16, Access: AccessRead,
		Usage: CDB{0x88, 0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Flags: Protectable,
		Run:   read,
	},
	{
		Name: "COMPARE AND WRITE", Opcode: compareAndWrite16, ServiceAction: -1, Length: 16, Access: AccessWrite, Exempt: true,
		Usage: CDB{compareAndWrite16, 0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0xff, 0x1f},
		Run:   compareAndWrite,
	},
	{
		Name: "WRITE(16)", Opcode: 0x8a, ServiceAction: -1, Length: 16, Access: AccessWrite,
		Usage: CDB{0x8a, 0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Flags: Protectable,
		Run:   write,
	},
	{
		Name: "ORWRITE(16)", Opcode: 0x8b, ServiceAction: -1, Length: 16, Access: AccessWrite,
		Usage: CDB{0x8b, 0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Run:   orWrite,
	},
	{
		Name: "WRITE AND VERIFY(16)", Opcode: 0x8e, ServiceAction: -1, Length: 16, Access: AccessWrite,
		Usage: CDB{0x8e, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Flags: Protectable,
		Run:   writeAndVerify,
	},
	{
		Name: "VERIFY(16)", Opcode: 0x8f, ServiceAction: -1, Length: 16, Access: AccessRead,
		Usage: CDB{0x8f, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Flags: Protectable,
		Run:   verify,
	},
	{
		Name: "PRE-FETCH(16)", Opcode: 0x90, ServiceAction: -1, Length: 16, Access: AccessRead,
		Usage: CDB{0x90, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Run:   prefetch,
	},
	{
		Name: "SYNCHRONIZE CACHE(16)", Opcode: 0x91, ServiceAction: -1, Length: 16,
		Usage: CDB{0x91, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Run:   synchronizeCache,
	},
	{
		Name: "WRITE SAME(16)", Opcode: 0x93, ServiceAction: -1, Length: 16, Access: AccessWrite,
		Usage: CDB{0x93, 0x09, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Flags: Protectable,
		Run:   writeSame,
	},
	{
		Name: "WRITE ATOMIC(16)", Opcode: writeAtomic16, ServiceAction: -1, Length: 16, Access: AccessWrite,
		Usage: CDB{writeAtomic16, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Flags: Protectable | NeedsAtomic,
		Run:   writeAtomic,
	},
	{
		Name: "GET LBA STATUS", Opcode: 0x9e, ServiceAction: 0x12, Length: 16, Access: AccessRead, Exempt: true,
		Usage: CDB{0x9e, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		Run:   getLBAStatus,
	},
	{
		Name: "READ(12)", Opcode: 0xa8, ServiceAction: -1, Length: 12, Access: AccessRead,
		Usage: CDB{0xa8, 0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Flags: Protectable,
		Run:   read,
	},
	{
		Name: "WRITE(12)", Opcode: 0xaa, ServiceAction: -1, Length: 12, Access: AccessWrite,
		Usage: CDB{0xaa, 0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Flags: Protectable,
		Run:   write,
	},
	{
		Name: "WRITE AND VERIFY(12)", Opcode: 0xae, ServiceAction: -1, Length: 12, Access: AccessWrite,
		Usage: CDB{0xae, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Flags: Protectable,
		Run:   writeAndVerify,
	},
	{
		Name: "VERIFY(12)", Opcode: 0xaf, ServiceAction: -1, Length: 12, Access: AccessRead,
		Usage: CDB{0xaf, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		Flags: Protectable,
		Run:   verify,
	},
	{
		Name: "READ DEFECT DATA(12)", Opcode: 0xb7, ServiceAction: -1, Length: 12, Exempt: true,
		Conflict: ConflictExclusive,
		Usage:    CDB{0xb7, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		Run:      readDefectData,
	},
}

func sanitizeListLength(cdb *CDB) uint32 { return uint32(binary.BigEndian.Uint16(cdb[7:])) }

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

func init() { enlist(longTable) }

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
