package scsi

import (
	"encoding/binary"
	"slices"
)

// Third-party copy descriptor types of VPD page 8Fh (SPC-4 clause 7.8.17).
const (
	tpcSupportedCommands    = 0x0001
	tpcParameterData        = 0x0004
	tpcSupportedDescriptors = 0x0008
	tpcSupportedCSCDIDs     = 0x000c
	tpcGeneralOperations    = 0x8001
)

// thirdPartyCopy is page 8Fh: which copies the logical unit's copy manager
// makes, by which commands.
func thirdPartyCopy(n *Nexus) []byte {
	body := tpcDescriptor(tpcSupportedCommands, tpcCommands(n.LU))
	body = append(body, tpcDescriptor(tpcParameterData, tpcParameters())...)
	body = append(body, tpcDescriptor(tpcSupportedDescriptors, tpcDescriptors())...)
	body = append(body, tpcDescriptor(tpcSupportedCSCDIDs, []byte{0, 0})...)
	return append(body, tpcDescriptor(tpcGeneralOperations, tpcOperations(n.LU))...)
}

// tpcDescriptor pads the fields to a multiple of four bytes.
func tpcDescriptor(kind uint16, fields []byte) []byte {
	for len(fields)%4 != 0 {
		fields = append(fields, 0)
	}
	d := binary.BigEndian.AppendUint16(nil, kind)
	d = binary.BigEndian.AppendUint16(d, uint16(len(fields)))
	return append(d, fields...)
}

// tpcCommands lists operation codes with their service actions, as the command
// table has them.
func tpcCommands(lu *LogicalUnit) []byte {
	var list []byte
	for _, row := range lu.supportedCommands() {
		if !slices.ContainsFunc(copyTable, func(r Row) bool { return r.Opcode == row.Opcode && r.ServiceAction == row.ServiceAction }) {
			continue
		}
		list = tpcAddCommand(list, row)
	}
	return append([]byte{byte(len(list))}, list...)
}

// tpcAddCommand adds a row to its operation code's descriptor, the last one, or
// begins the next. The list is {operation code, number of service actions,
// service actions}.
func tpcAddCommand(list []byte, row *Row) []byte {
	for at := 0; at < len(list); at += 2 + int(list[at+1]) {
		if list[at] == row.Opcode {
			list[at+1]++
			return append(list, byte(row.ServiceAction))
		}
	}
	return append(list, row.Opcode, 1, byte(row.ServiceAction))
}

// tpcParameters tells the bounds of an EXTENDED COPY parameter list.
func tpcParameters() []byte {
	be, d := binary.BigEndian, make([]byte, 28)
	be.PutUint16(d[4:], maxCSCDs)
	be.PutUint16(d[6:], maxCopySegments)
	be.PutUint32(d[8:], maxCopyList)
	return d // no inline data
}

func tpcDescriptors() []byte {
	return []byte{3, copyBlocks, copyBlocksOffset, cscdIdentification}
}

// tpcOperations tells how much may be copied at once.
func tpcOperations(lu *LogicalUnit) []byte {
	be, d := binary.BigEndian, make([]byte, 32)
	be.PutUint32(d, maxCopyRecords)     // TOTAL CONCURRENT COPIES
	be.PutUint32(d[4:], maxCopyRecords) // MAXIMUM IDENTIFIED CONCURRENT COPIES
	be.PutUint32(d[8:], maxCopyBytes)   // MAXIMUM SEGMENT LENGTH
	d[12] = byte(lu.blockShift)         // DATA SEGMENT GRANULARITY
	return d
}
