package pdu

import "encoding/binary"

// Reject is the refusal of a PDU (RFC 7143 11.17):
//
//	 0     0x3f
//	 1     F = 1
//	 2     Reason
//	16     ReservedTag
//	24     StatSN
//	28     ExpCmdSN
//	32     MaxCmdSN
//	36     DataSN/R2TSN
//	48     header of the rejected PDU
type Reject BHS

// BHS is the same header with the fields that PDUs share.
func (p *Reject) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode, the F bit and the reserved ITT.
func (p *Reject) Init() *Reject {
	*p = Reject{0: byte(OpReject), 1: 0x80}
	p.BHS().SetITT(ReservedTag)
	return p
}

// Reason is why the PDU was refused.
func (p *Reject) Reason() RejectReason { return RejectReason(p[2]) }

// SetReason sets why the PDU was refused.
func (p *Reject) SetReason(v RejectReason) { p[2] = byte(v) }

// DataSN is the next Data-In or R2T number of the task whose SNACK was refused.
func (p *Reject) DataSN() SN { return SN(binary.BigEndian.Uint32(p[36:40])) }

// SetDataSN sets the next Data-In or R2T number of the task whose SNACK was
// refused.
func (p *Reject) SetDataSN(v SN) { binary.BigEndian.PutUint32(p[36:40], uint32(v)) }

// RejectReason is why a PDU was refused (RFC 7143 11.17.1).
type RejectReason uint8

// Reasons of a Reject.
const (
	RejectDataDigestError     RejectReason = 0x02
	RejectSNACK               RejectReason = 0x03
	RejectProtocolError       RejectReason = 0x04
	RejectCommandNotSupported RejectReason = 0x05
	RejectImmediateCommand    RejectReason = 0x06
	RejectTaskInProgress      RejectReason = 0x07
	RejectInvalidDataACK      RejectReason = 0x08
	RejectInvalidPDUField     RejectReason = 0x09
	RejectLongOperation       RejectReason = 0x0a
	RejectNegotiationReset    RejectReason = 0x0b // deprecated by RFC 7143
	RejectWaitingForLogout    RejectReason = 0x0c
)

var rejectReasonNames = []string{
	RejectDataDigestError:     "data digest error",
	RejectSNACK:               "SNACK reject",
	RejectProtocolError:       "protocol error",
	RejectCommandNotSupported: "command not supported",
	RejectImmediateCommand:    "immediate command reject: too many immediate commands",
	RejectTaskInProgress:      "task in progress",
	RejectInvalidDataACK:      "invalid data ACK",
	RejectInvalidPDUField:     "invalid PDU field",
	RejectLongOperation:       "long operation reject",
	RejectNegotiationReset:    "negotiation reset",
	RejectWaitingForLogout:    "waiting for logout",
}

// String is the RFC's name of the value.
func (v RejectReason) String() string { return nameAt(rejectReasonNames, "reason", uint8(v)) }
