package thirdparty

import (
	"encoding/binary"
	"math"
)

// checkCondition is the status of a copy's command that is not GOOD.
const checkCondition = 0x02

// StatusLID1 is the parameter data of RECEIVE COPY STATUS(LID1) (SPC-4 clause 6.18).
func (r *Record) StatusLID1() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	status, _ := r.outcome()
	data := make([]byte, 12)
	data[4] = 0x80 | byte(min(status, Failed)) // HDD: nothing is held
	binary.BigEndian.PutUint16(data[5:], r.segments)
	data[7] = putTransferCount32(data[8:], r.bytes)
	return lengthen(data)
}

// lengthen fills in AVAILABLE DATA, the length of what follows.
func lengthen(data []byte) []byte {
	binary.BigEndian.PutUint32(data, uint32(len(data)-4))
	return data
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

// failedSegmentHeader is the length of RECEIVE COPY FAILURE DETAILS before the
// sense data.
const failedSegmentHeader = 60

// FailureDetails is the parameter data of RECEIVE COPY FAILURE DETAILS(LID1) (SPC-4
// clause 6.17): the sense data of what made the copy fail.
func (r *Record) FailureDetails() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, sense := r.outcome()
	data := make([]byte, failedSegmentHeader, failedSegmentHeader+len(sense))
	if len(sense) > 0 {
		data[56] = checkCondition // EXTENDED COPY COMMAND STATUS
	}
	binary.BigEndian.PutUint16(data[58:], uint16(len(sense)))
	return lengthen(append(data, sense...))
}

// OperatingParameters is the parameter data of RECEIVE COPY OPERATING PARAMETERS
// (SPC-4 clause 6.16) of a unit whose logical blocks have 1<<shift bytes.
func OperatingParameters(shift uint) []byte {
	be, codes := binary.BigEndian, []byte{copyBlocks, copyBlocksOffset, CSCDIdentification}
	data := make([]byte, 44, 44+len(codes))
	data[4] = 0x01 // SNLID: a copy may do without a list identifier
	be.PutUint16(data[8:], MaxCSCDs)
	be.PutUint16(data[10:], MaxSegments)
	be.PutUint32(data[12:], maxList)
	be.PutUint32(data[16:], MaxBytes)
	be.PutUint16(data[34:], MaxRecords) // TOTAL CONCURRENT COPIES
	data[36] = MaxRecords               // MAXIMUM CONCURRENT COPIES
	data[37] = byte(shift)              // DATA SEGMENT GRANULARITY
	data[43] = byte(len(codes))
	return lengthen(append(data, codes...))
}

// Lengths of the LID4 results.
const (
	copyStatusHeader = 32
	unitsBlocks      = 0xf1 // TRANSFER COUNT UNITS; else bytes

	// COPY OPERATION STATUS of what is in progress.
	inForeground = 0x11
	inBackground = 0x12
)

// StatusLID4 is the parameter data of RECEIVE COPY STATUS(LID4) (SPC-4 clause 6.19).
func (r *Record) StatusLID4() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return lengthen(r.appendStatus(nil))
}

// TokenInformation is the parameter data of RECEIVE ROD TOKEN INFORMATION (SPC-4
// clause 6.24): the status of the command, and the token that it made.
func (r *Record) TokenInformation() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	data := r.appendStatus(nil)
	if r.token == nil || r.status != Completed {
		return lengthen(append(data, 0, 0, 0, 0))
	}
	data = binary.BigEndian.AppendUint32(data, 2+TokenLength) // ROD TOKEN DESCRIPTORS LENGTH
	return lengthen(append(append(data, 0, 0), r.token.data[:]...))
}

// appendStatus appends what RECEIVE COPY STATUS(LID4) and RECEIVE ROD TOKEN
// INFORMATION have in common, but for AVAILABLE DATA. The caller holds mu.
func (r *Record) appendStatus(dst []byte) []byte {
	be, data := binary.BigEndian, make([]byte, copyStatusHeader)
	status, sense := r.outcome()
	data[4] = r.action // RESPONSE TO SERVICE ACTION
	data[5] = byte(status)
	be.PutUint16(data[6:], r.operation)
	if status == InProgress {
		data[5] = inForeground
		if r.about.Background {
			data[5] = inBackground
		}
		be.PutUint32(data[8:], statusUpdateDelay)
	} else {
		be.PutUint32(data[8:], 0xfffffffe) // it has ended: no change is to be expected
	}
	if len(sense) > 0 {
		data[12] = checkCondition
	}
	data[13], data[14] = byte(len(sense)), byte(len(sense))
	be.PutUint64(data[16:], r.bytes>>r.about.Shift)
	if r.about.Shift > 0 {
		data[15] = unitsBlocks
	}
	be.PutUint16(data[24:], r.segments)
	return append(append(dst, data...), sense...)
}

// statusUpdateDelay is ESTIMATED STATUS UPDATE DELAY in milliseconds.
const statusUpdateDelay = 100
