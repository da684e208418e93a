package scsi

import "encoding/binary"

// The supported task management functions (SPC-4 clause 6.36), byte 0: those
// of RFC 7143 section 11.5.1.
const supportedFunctions = 0x80 | // ATS: ABORT TASK
	0x20 | // CACAS: CLEAR ACA
	0x40 | // ATSS: ABORT TASK SET
	0x10 | // CTSS: CLEAR TASK SET
	0x08 | // LURS: LOGICAL UNIT RESET
	0x02 // TRS: TARGET RESET

// supportedTaskManagementFunctions returns the basic data, or with REPD the
// extended data, which gives no timeouts.
func supportedTaskManagementFunctions(extended bool) []byte {
	if !extended {
		return []byte{supportedFunctions, 0, 0, 0}
	}
	data := make([]byte, 16)
	data[0] = supportedFunctions
	data[3] = byte(len(data) - 4) // ADDITIONAL DATA LENGTH
	return data
}

func runReportSupportedTaskManagementFunctions(c *Command) {
	data := supportedTaskManagementFunctions(c.CDB[2]&0x80 != 0)
	c.answer(data, binary.BigEndian.Uint32(c.CDB[6:]), nil)
}
