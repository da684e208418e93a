package scsi

import (
	"encoding/binary"
	"math"
)

// receiveAllocation is ALLOCATION LENGTH of the RECEIVE COPY commands.
func receiveAllocation(cdb *CDB) uint32 { return binary.BigEndian.Uint32(cdb[10:]) }

// receiveCopyStatusLID1 runs RECEIVE COPY STATUS(LID1) (SPC-4 clause 6.18).
func receiveCopyStatusLID1(c *Command) {
	r := c.copyRecord(uint32(c.CDB[2]))
	if r == nil {
		c.Fail(InvalidFieldInCDB(2, 7))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	status, _ := r.outcome()
	data := make([]byte, 12)
	binary.BigEndian.PutUint32(data, uint32(len(data)-4))
	data[4] = 0x80 | byte(min(status, copyFailed)) // HDD: nothing is held
	binary.BigEndian.PutUint16(data[5:], r.segments)
	data[7] = putTransferCount32(data[8:], r.bytes)
	c.SendParameter(data, receiveAllocation(&c.CDB))
}

// putTransferCount32 writes a TRANSFER COUNT that fits its field and returns
// TRANSFER COUNT UNITS: 0 bytes, 1 KiB, 2 MiB...
func putTransferCount32(field []byte, n uint64) (units byte) {
	for n > math.MaxUint32 {
		n >>= 10
		units++
	}
	binary.BigEndian.PutUint32(field, uint32(n))
	return units
}

// copyRecord returns the record of one of the initiator's copies, or nil.
func (c *Command) copyRecord(id uint32) *copyRecord {
	return c.Nexus.LU.copies.find(c.Nexus.asker(), id)
}

// failedSegmentHeader is the length of RECEIVE COPY FAILURE DETAILS before the
// sense data.
const failedSegmentHeader = 60

// receiveCopyFailureDetails runs RECEIVE COPY FAILURE DETAILS(LID1) (SPC-4
// clause 6.17): the sense data of what made the copy fail.
func receiveCopyFailureDetails(c *Command) {
	r := c.copyRecord(uint32(c.CDB[2]))
	if r == nil {
		c.Fail(InvalidFieldInCDB(2, 7))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, sense := r.outcome()
	data := make([]byte, failedSegmentHeader, failedSegmentHeader+len(sense))
	if len(sense) > 0 {
		data[56] = byte(CheckCondition) // EXTENDED COPY COMMAND STATUS
	}
	binary.BigEndian.PutUint16(data[58:], uint16(len(sense)))
	data = append(data, sense...)
	binary.BigEndian.PutUint32(data, uint32(len(data)-4))
	c.SendParameter(data, receiveAllocation(&c.CDB))
}

// receiveCopyOperatingParameters runs RECEIVE COPY OPERATING PARAMETERS (SPC-4
// clause 6.16).
func receiveCopyOperatingParameters(c *Command) {
	be, codes := binary.BigEndian, []byte{copyBlocks, copyBlocksOffset, cscdIdentification}
	data := make([]byte, 44, 44+len(codes))
	data[4] = 0x01 // SNLID: a copy may do without a list identifier
	be.PutUint16(data[8:], maxCSCDs)
	be.PutUint16(data[10:], maxCopySegments)
	be.PutUint32(data[12:], maxCopyList)
	be.PutUint32(data[16:], maxCopyBytes)
	be.PutUint16(data[34:], maxCopyRecords) // TOTAL CONCURRENT COPIES
	data[36] = maxCopyRecords               // MAXIMUM CONCURRENT COPIES
	data[37] = byte(c.Nexus.LU.blockShift)  // DATA SEGMENT GRANULARITY
	data[43] = byte(len(codes))
	data = append(data, codes...)
	be.PutUint32(data, uint32(len(data)-4))
	c.SendParameter(data, receiveAllocation(&c.CDB))
}

// Lengths of the LID4 results.
const (
	copyStatusHeader = 32
	unitsBlocks      = 0xf1 // TRANSFER COUNT UNITS; else bytes

	// COPY OPERATION STATUS of what is in progress.
	inForeground = 0x11
	inBackground = 0x12
)

// receiveCopyStatusLID4 runs RECEIVE COPY STATUS(LID4) (SPC-4 clause 6.19).
func receiveCopyStatusLID4(c *Command) {
	r := c.copyRecord(binary.BigEndian.Uint32(c.CDB[2:]))
	if r == nil {
		c.Fail(InvalidFieldInCDB(2, 7))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	data := r.appendStatus(nil)
	binary.BigEndian.PutUint32(data, uint32(len(data)-4))
	c.SendParameter(data, receiveAllocation(&c.CDB))
}

// appendStatus appends what RECEIVE COPY STATUS(LID4) and RECEIVE ROD TOKEN
// INFORMATION have in common, but for AVAILABLE DATA. The caller holds mu.
func (r *copyRecord) appendStatus(dst []byte) []byte {
	be, data := binary.BigEndian, make([]byte, copyStatusHeader)
	status, sense := r.outcome()
	data[4] = r.action // RESPONSE TO SERVICE ACTION
	data[5] = byte(status)
	be.PutUint16(data[6:], r.operation)
	if status == copyInProgress {
		data[5] = inForeground
		if r.background {
			data[5] = inBackground
		}
		be.PutUint32(data[8:], statusUpdateDelay)
	} else {
		be.PutUint32(data[8:], 0xfffffffe) // it has ended: no change is to be expected
	}
	if len(sense) > 0 {
		data[12] = byte(CheckCondition)
	}
	data[13], data[14] = byte(len(sense)), byte(len(sense))
	be.PutUint64(data[16:], r.bytes>>r.shift)
	if r.shift > 0 {
		data[15] = unitsBlocks
	}
	be.PutUint16(data[24:], r.segments)
	return append(append(dst, data...), sense...)
}

// statusUpdateDelay is ESTIMATED STATUS UPDATE DELAY in milliseconds.
const statusUpdateDelay = 100
