package pdu

import "encoding/binary"

// DataIn is data of a read, sent by the target (RFC 7143 11.7):
//
//	 0     0x25
//	 1     F | A | . . . | O | U | S
//	 3     Status
//	 8     LUN
//	16     Initiator Task Tag
//	20     Target Transfer Tag, ReservedTag unless the A bit is set
//	24     StatSN, only with the S bit
//	28     ExpCmdSN
//	32     MaxCmdSN
//	36     DataSN
//	40     Buffer Offset
//	44     Residual Count, only with the S bit
//	48     data
type DataIn BHS

// BHS is the same header with the fields that PDUs share.
func (p *DataIn) BHS() *BHS { return (*BHS)(p) }

// DataInFields are the fields of a DataIn but for the sequence numbers that it gets when
// it leaves.
type DataInFields struct {
	ITT         uint32
	DataSN      SN
	Offset      uint32 // Buffer Offset
	Length      int    // of the data segment in bytes
	Final       bool
	Acknowledge bool
	LUN         uint64 // only with Acknowledge, as TTT
	TTT         uint32
	HasStatus   bool
	Status      uint8 // only with HasStatus, as Residual
	Residual    Residual
}

// Init clears the header and sets the opcode.
func (p *DataIn) Init() *DataIn {
	*p = DataIn{0: byte(OpDataIn)}
	return p
}

// Encode makes the header one with these fields.
func (p *DataIn) Encode(f *DataInFields) *DataIn {
	b := p.Init().BHS()
	b.SetITT(f.ITT)
	b.SetTTT(ReservedTag)
	b.SetFinal(f.Final)
	b.SetDataSegmentLength(f.Length)
	p.SetDataSN(f.DataSN)
	p.SetBufferOffset(f.Offset)
	if f.Acknowledge {
		p.SetAcknowledge(true)
		b.SetLUN(f.LUN)
		b.SetTTT(f.TTT)
	}
	if f.HasStatus {
		p.SetHasStatus(true)
		p.SetStatus(f.Status)
		p.SetOverflow(f.Residual.Over)
		p.SetUnderflow(f.Residual.Under)
		p.SetResidualCount(f.Residual.Count)
	}
	return p
}

// Acknowledge is the A bit: the target asks for a DataACK SNACK.
func (p *DataIn) Acknowledge() bool { return p[1]&0x40 != 0 }

// SetAcknowledge sets the A bit.
func (p *DataIn) SetAcknowledge(v bool) { setBit(&p[1], 0x40, v) }

// Overflow is the O bit: ResidualCount bytes were not transferred
// because the initiator expected fewer than there are.
func (p *DataIn) Overflow() bool { return p[1]&0x04 != 0 }

// SetOverflow sets the O bit.
func (p *DataIn) SetOverflow(v bool) { setBit(&p[1], 0x04, v) }

// Underflow is the U bit: ResidualCount bytes that the initiator
// expected were not transferred.
func (p *DataIn) Underflow() bool { return p[1]&0x02 != 0 }

// SetUnderflow sets the U bit.
func (p *DataIn) SetUnderflow(v bool) { setBit(&p[1], 0x02, v) }

// HasStatus is the S bit: the PDU carries the command's status, so no
// SCSI Response follows.
func (p *DataIn) HasStatus() bool { return p[1]&0x01 != 0 }

// SetHasStatus sets the S bit.
func (p *DataIn) SetHasStatus(v bool) { setBit(&p[1], 0x01, v) }

// Status is the SAM-5 status byte, only with the S bit.
func (p *DataIn) Status() uint8 { return p[3] }

// SetStatus sets the SAM-5 status byte, only with the S bit.
func (p *DataIn) SetStatus(v uint8) { p[3] = v }

// DataSN is the number of the PDU within the command.
func (p *DataIn) DataSN() SN { return SN(binary.BigEndian.Uint32(p[36:40])) }

// SetDataSN sets the number of the PDU within the command.
func (p *DataIn) SetDataSN(v SN) { binary.BigEndian.PutUint32(p[36:40], uint32(v)) }

// BufferOffset is the place in bytes of the data within the command's data.
func (p *DataIn) BufferOffset() uint32 { return binary.BigEndian.Uint32(p[40:44]) }

// SetBufferOffset sets the place in bytes of the data within the command's data.
func (p *DataIn) SetBufferOffset(v uint32) { binary.BigEndian.PutUint32(p[40:44], v) }

// ResidualCount is the residual in bytes, only with the S bit.
func (p *DataIn) ResidualCount() uint32 { return binary.BigEndian.Uint32(p[44:48]) }

// SetResidualCount sets the residual in bytes, only with the S bit.
func (p *DataIn) SetResidualCount(v uint32) { binary.BigEndian.PutUint32(p[44:48], v) }
