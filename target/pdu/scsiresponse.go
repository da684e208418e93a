package pdu

import "encoding/binary"

// SCSIResponse is the status of a SCSI command (RFC 7143 11.4):
//
//	 0     0x21
//	 1     1 | . . | o | u | O | U | .
//	 2     Response
//	 3     Status
//	16     Initiator Task Tag
//	20     SNACK Tag
//	24     StatSN
//	28     ExpCmdSN
//	32     MaxCmdSN
//	36     ExpDataSN
//	40     Bidirectional Read Residual Count
//	44     Residual Count
//	48     SenseLength (2 bytes), sense data, response data
type SCSIResponse BHS

// BHS is the same header with the fields that PDUs share.
func (p *SCSIResponse) BHS() *BHS { return (*BHS)(p) }

// SCSIResponseFields are the fields of an SCSIResponse but for the sequence numbers that
// it gets when it leaves.
type SCSIResponseFields struct {
	ITT                       uint32
	SNACKTag                  uint32
	Response                  ResponseCode
	Status                    uint8
	ExpDataSN                 SN
	Residual                  Residual
	BidirectionalReadResidual Residual
	Length                    int // of the data segment in bytes
}

// Residual is the difference, in bytes, between what the initiator expected and what
// there is: that the initiator does not get (Over) or that is missing (Under).
type Residual struct {
	Over, Under bool
	Count       uint32
}

// Init clears the header and sets the opcode and the F bit.
func (p *SCSIResponse) Init() *SCSIResponse {
	*p = SCSIResponse{0: byte(OpSCSIResponse), 1: 0x80}
	return p
}

// Encode makes the header one with these fields.
func (p *SCSIResponse) Encode(f *SCSIResponseFields) *SCSIResponse {
	b := p.Init().BHS()
	b.SetITT(f.ITT)
	b.SetDataSegmentLength(f.Length)
	p.SetSNACKTag(f.SNACKTag)
	p.SetResponse(f.Response)
	p.SetStatus(f.Status)
	p.SetExpDataSN(f.ExpDataSN)
	p.SetOverflow(f.Residual.Over)
	p.SetUnderflow(f.Residual.Under)
	p.SetResidualCount(f.Residual.Count)
	p.SetBidirectionalReadOverflow(f.BidirectionalReadResidual.Over)
	p.SetBidirectionalReadUnderflow(f.BidirectionalReadResidual.Under)
	p.SetBidirectionalReadResidualCount(f.BidirectionalReadResidual.Count)
	return p
}

// BidirectionalReadOverflow is the o bit.
func (p *SCSIResponse) BidirectionalReadOverflow() bool { return p[1]&0x10 != 0 }

// SetBidirectionalReadOverflow sets the o bit.
func (p *SCSIResponse) SetBidirectionalReadOverflow(v bool) { setBit(&p[1], 0x10, v) }

// BidirectionalReadUnderflow is the u bit.
func (p *SCSIResponse) BidirectionalReadUnderflow() bool { return p[1]&0x08 != 0 }

// SetBidirectionalReadUnderflow sets the u bit.
func (p *SCSIResponse) SetBidirectionalReadUnderflow(v bool) { setBit(&p[1], 0x08, v) }

// Overflow is the O bit: ResidualCount bytes were not transferred
// because the initiator expected fewer than there are.
func (p *SCSIResponse) Overflow() bool { return p[1]&0x04 != 0 }

// SetOverflow sets the O bit.
func (p *SCSIResponse) SetOverflow(v bool) { setBit(&p[1], 0x04, v) }

// Underflow is the U bit: ResidualCount bytes that the initiator
// expected were not transferred.
func (p *SCSIResponse) Underflow() bool { return p[1]&0x02 != 0 }

// SetUnderflow sets the U bit.
func (p *SCSIResponse) SetUnderflow(v bool) { setBit(&p[1], 0x02, v) }

// Response is whether the target executed the command.
func (p *SCSIResponse) Response() ResponseCode { return ResponseCode(p[2]) }

// SetResponse sets whether the target executed the command.
func (p *SCSIResponse) SetResponse(v ResponseCode) { p[2] = byte(v) }

// Status is the SAM-5 status byte; it counts only when Response is
// ResponseCompleted.
func (p *SCSIResponse) Status() uint8 { return p[3] }

// SetStatus sets the SAM-5 status byte; it counts only when Response is
// ResponseCompleted.
func (p *SCSIResponse) SetStatus(v uint8) { p[3] = v }

// SNACKTag is the tag that an R-Data SNACK must carry to be valid.
func (p *SCSIResponse) SNACKTag() uint32 { return binary.BigEndian.Uint32(p[20:24]) }

// SetSNACKTag sets the tag that an R-Data SNACK must carry to be valid.
func (p *SCSIResponse) SetSNACKTag(v uint32) { binary.BigEndian.PutUint32(p[20:24], v) }

// ExpDataSN is the number of Data-In and R2T PDUs sent for the command.
func (p *SCSIResponse) ExpDataSN() SN { return SN(binary.BigEndian.Uint32(p[36:40])) }

// SetExpDataSN sets the number of Data-In and R2T PDUs sent for the command.
func (p *SCSIResponse) SetExpDataSN(v SN) { binary.BigEndian.PutUint32(p[36:40], uint32(v)) }

// BidirectionalReadResidualCount is the read residual of a
// bidirectional command in bytes.
func (p *SCSIResponse) BidirectionalReadResidualCount() uint32 {
	return binary.BigEndian.Uint32(p[40:44])
}

// SetBidirectionalReadResidualCount sets the read residual of a
// bidirectional command in bytes.
func (p *SCSIResponse) SetBidirectionalReadResidualCount(v uint32) {
	binary.BigEndian.PutUint32(p[40:44], v)
}

// ResidualCount is the residual in bytes; the O and U bits say of which kind.
func (p *SCSIResponse) ResidualCount() uint32 { return binary.BigEndian.Uint32(p[44:48]) }

// SetResidualCount sets the residual in bytes; the O and U bits say of which kind.
func (p *SCSIResponse) SetResidualCount(v uint32) { binary.BigEndian.PutUint32(p[44:48], v) }

// SenseLengthSize is the length of the SenseLength field, which precedes the
// sense data in the data segment of a SCSI Response (RFC 7143 11.4.7).
const SenseLengthSize = 2

// AppendSense appends SenseLength and the sense data, the data segment of a
// SCSI Response, to dst.
func AppendSense(dst, sense []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(sense)))
	return append(dst, sense...)
}

// Sense is the sense data in the data segment of a SCSI Response, which it
// aliases; ok is false when the segment is shorter than it says.
func Sense(data []byte) (sense []byte, ok bool) {
	if len(data) < SenseLengthSize {
		return nil, len(data) == 0
	}
	n := int(binary.BigEndian.Uint16(data))
	if len(data)-SenseLengthSize < n {
		return nil, false
	}
	return data[SenseLengthSize : SenseLengthSize+n], true
}

// ResponseCode is the iSCSI service response to a command (RFC 7143 11.4.3).
type ResponseCode uint8

// Responses.
const (
	ResponseCompleted     ResponseCode = 0x00
	ResponseTargetFailure ResponseCode = 0x01
)
