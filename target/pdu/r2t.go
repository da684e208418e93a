package pdu

import "encoding/binary"

// R2T is a request for data of a write; its StatSN is the next one, not its own
// (RFC 7143 11.8):
//
//	 0     0x31
//	 1     F = 1
//	 8     LUN
//	16     Initiator Task Tag
//	20     Target Transfer Tag
//	24     StatSN
//	28     ExpCmdSN
//	32     MaxCmdSN
//	36     R2TSN
//	40     Buffer Offset
//	44     Desired Data Transfer Length
type R2T BHS

// BHS is the same header with the fields that PDUs share.
func (p *R2T) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode and the F bit.
func (p *R2T) Init() *R2T {
	*p = R2T{0: byte(OpR2T), 1: 0x80}
	return p
}

// R2TSN is the number of the R2T within the command.
func (p *R2T) R2TSN() SN { return SN(binary.BigEndian.Uint32(p[36:40])) }

// SetR2TSN sets the number of the R2T within the command.
func (p *R2T) SetR2TSN(v SN) { binary.BigEndian.PutUint32(p[36:40], uint32(v)) }

// BufferOffset is the place in bytes of the data within the command's data.
func (p *R2T) BufferOffset() uint32 { return binary.BigEndian.Uint32(p[40:44]) }

// SetBufferOffset sets the place in bytes of the data within the command's data.
func (p *R2T) SetBufferOffset(v uint32) { binary.BigEndian.PutUint32(p[40:44], v) }

// DesiredDataTransferLength is the number of bytes to send, 1 to MaxBurstLength.
func (p *R2T) DesiredDataTransferLength() uint32 { return binary.BigEndian.Uint32(p[44:48]) }

// SetDesiredDataTransferLength sets the number of bytes to send, 1 to
// MaxBurstLength.
func (p *R2T) SetDesiredDataTransferLength(v uint32) { binary.BigEndian.PutUint32(p[44:48], v) }
