package scsi

import (
	"encoding/binary"

	"lunar/target/scsi/thirdparty"
)

func init() { enlist(copyTable) }

// copyTable holds the third-party copy commands (SPC-4): what asks for a copy
// and what asks after it. EXTENDED COPY is not AccessWrite: what it writes to
// need not be the logical unit that it is sent to, and is checked apart.
var copyTable = []Row{
	{
		Name: "EXTENDED COPY(LID1)", Opcode: 0x83, ServiceAction: 0x00, Length: 16,
		Flags: ParameterList,
		Usage: CDB{0x83, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		List:  copyListLength, Run: extendedCopyLID1,
	},
	{
		Name: "EXTENDED COPY(LID4)", Opcode: 0x83, ServiceAction: 0x01, Length: 16,
		Flags: ParameterList,
		Usage: CDB{0x83, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		List:  copyListLength, Run: extendedCopyLID4,
	},
	{
		Name: "POPULATE TOKEN", Opcode: 0x83, ServiceAction: 0x10, Length: 16,
		Access: AccessRead, Flags: ParameterList,
		Usage: CDB{0x83, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		List:  copyListLength, Run: populateToken,
	},
	{
		Name: "WRITE USING TOKEN", Opcode: 0x83, ServiceAction: 0x11, Length: 16,
		Access: AccessWrite, Flags: ParameterList,
		Usage: CDB{0x83, 0x11, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f},
		List:  copyListLength, Run: writeUsingToken,
	},
	{
		Name: "COPY OPERATION ABORT", Opcode: 0x83, ServiceAction: 0x1c, Length: 16, Exempt: true,
		Usage: CDB{0x83, 0x1c, 0xff, 0xff, 0xff, 0xff},
		Run:   copyOperationAbort,
	},
	{
		Name: "RECEIVE COPY STATUS(LID1)", Opcode: 0x84, ServiceAction: 0x00, Length: 16, Exempt: true,
		Usage: CDB{0x84, 0x00, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		Run:   receiveCopy(listIDLID1, (*thirdparty.Record).StatusLID1),
	},
	{
		Name: "RECEIVE COPY OPERATING PARAMETERS", Opcode: 0x84, ServiceAction: 0x03, Length: 16, Exempt: true,
		Usage: CDB{0x84, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		Run:   receiveCopyOperatingParameters,
	},
	{
		Name: "RECEIVE COPY FAILURE DETAILS(LID1)", Opcode: 0x84, ServiceAction: 0x04, Length: 16, Exempt: true,
		Usage: CDB{0x84, 0x04, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		Run:   receiveCopy(listIDLID1, (*thirdparty.Record).FailureDetails),
	},
	{
		Name: "RECEIVE COPY STATUS(LID4)", Opcode: 0x84, ServiceAction: 0x05, Length: 16, Exempt: true,
		Usage: CDB{0x84, 0x05, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		Run:   receiveCopy(listIDLID4, (*thirdparty.Record).StatusLID4),
	},
	{
		Name: "RECEIVE ROD TOKEN INFORMATION", Opcode: 0x84, ServiceAction: 0x07, Length: 16, Exempt: true,
		Usage: CDB{0x84, 0x07, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		Run:   receiveCopy(listIDLID4, (*thirdparty.Record).TokenInformation),
	},
}

func copyListLength(cdb *CDB) uint32 { return binary.BigEndian.Uint32(cdb[10:]) }

// thirdPartyCopy is VPD page 8Fh.
func thirdPartyCopy(n *Nexus) []byte {
	var list []thirdparty.Command
	for _, row := range n.LU.supportedCommands() {
		if row.Opcode == copyTable[0].Opcode || row.Opcode == copyTable[len(copyTable)-1].Opcode {
			list = append(list, thirdparty.Command{Opcode: row.Opcode, ServiceAction: byte(row.ServiceAction)})
		}
	}
	return thirdparty.ThirdPartyCopy(n.LU.blockShift, list)
}
