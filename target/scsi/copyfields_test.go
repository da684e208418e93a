package scsi

import (
	"encoding/binary"

	"lunar/target/scsi/thirdparty"
)

// Fields of the parameter lists and data of third-party copy commands (SPC-4 clauses 6.4
// and 6.17 to 6.24, SBC-3 clauses 5.12 and 5.59).
const (
	copyHeaderLID1         = 16
	copyHeaderLID4         = 48
	copyBlocks             = 0x02
	copyBlocksLength       = 28
	copyBlocksOffset       = 0x0a
	copyBlocksOffsetLength = 32
	copyStatusHeader       = 32
	failedSegmentHeader    = 60
	inBackground           = 0x12
	populateHeader         = 16
	writeTokenHeader       = 536
	rodImmediate           = 0x01
	rodTypeValid           = 0x02
	rodDelete              = 0x02
)

// statusOfCopy is what the logical unit knows of a copy: its status, and how many bytes
// were copied.
func statusOfCopy(n *Nexus, id uint32) (thirdparty.Status, uint64) {
	data := n.LU.copies.Find(n.asker(), id).StatusLID4()
	status := thirdparty.Status(data[5])
	if status>>4 == 1 { // in the foreground or in the background
		status = thirdparty.InProgress
	}
	return status, binary.BigEndian.Uint64(data[16:])
}
