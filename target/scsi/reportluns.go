package scsi

import (
	"encoding/binary"

	"lunar/target/scsi/sense"
)

// SELECT REPORT of REPORT LUNS (SPC-4 clause 6.33).
const (
	selectLogicalUnits = 0x00 // without well known ones
	selectWellKnown    = 0x01 // of which there are none here
	selectAll          = 0x02
)

// reportLUNs returns the LUN list of a nexus that may see the LUN numbers in
// luns. SPC-4 no longer refuses allocation lengths below 16, it truncates.
func reportLUNs(luns []uint64, selectReport byte) ([]byte, *sense.Data) {
	switch selectReport {
	case selectLogicalUnits, selectAll:
	case selectWellKnown:
		luns = nil
	default:
		return nil, sense.InvalidFieldInCDB(2, 7)
	}
	data := make([]byte, 8, 8+8*len(luns))
	binary.BigEndian.PutUint32(data, uint32(8*len(luns))) // LUN LIST LENGTH
	for _, n := range luns {
		data = binary.BigEndian.AppendUint64(data, EncodeLUN(n))
	}
	return data, nil
}

// runReportLUNs tells what a pending REPORTED LUNS DATA HAS CHANGED would send
// the initiator to ask for (SAM-5 clause 5.14), which is thereby cleared.
func runReportLUNs(c *Command) {
	c.Nexus.clearAttention(sense.ASCReportedLUNsDataChanged)
	data, sense := reportLUNs(c.Nexus.Map(), c.CDB[2])
	c.answer(data, binary.BigEndian.Uint32(c.CDB[6:]), sense)
}
