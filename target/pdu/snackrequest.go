package pdu

import "encoding/binary"

// SNACKRequest is a request for missing PDUs, or an acknowledgement of data
// (RFC 7143 11.16):
//
//	 0     0x10
//	 1     1 | . . . | Type (4 bits)
//	 8     LUN
//	16     Initiator Task Tag
//	20     Target Transfer Tag or SNACK Tag
//	28     ExpStatSN
//	40     BegRun
//	44     RunLength
type SNACKRequest BHS

// BHS is the same header with the fields that PDUs share.
func (p *SNACKRequest) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode and the F bit.
func (p *SNACKRequest) Init() *SNACKRequest {
	*p = SNACKRequest{0: byte(OpSNACKRequest), 1: 0x80}
	return p
}

// Type is what is requested or acknowledged.
func (p *SNACKRequest) Type() SNACKType { return SNACKType(p[1] & 0x0f) }

// SetType sets what is requested or acknowledged.
func (p *SNACKRequest) SetType(v SNACKType) { p[1] = p[1]&^0x0f | byte(v)&0x0f }

// BegRun is the first number that is missing, or the next one that is expected.
func (p *SNACKRequest) BegRun() SN { return SN(binary.BigEndian.Uint32(p[40:44])) }

// SetBegRun sets the first number that is missing, or the next one that is
// expected.
func (p *SNACKRequest) SetBegRun(v SN) { binary.BigEndian.PutUint32(p[40:44], uint32(v)) }

// RunLength is the number of missing PDUs, 0 for all from BegRun on.
func (p *SNACKRequest) RunLength() uint32 { return binary.BigEndian.Uint32(p[44:48]) }

// SetRunLength sets the number of missing PDUs, 0 for all from BegRun on.
func (p *SNACKRequest) SetRunLength(v uint32) { binary.BigEndian.PutUint32(p[44:48], v) }

// SNACKType is what a SNACK requests or acknowledges (RFC 7143 11.16.1).
type SNACKType uint8

// Types of SNACK.
const (
	SNACKDataR2T SNACKType = 0
	SNACKStatus  SNACKType = 1
	SNACKDataACK SNACKType = 2
	SNACKRData   SNACKType = 3
)
