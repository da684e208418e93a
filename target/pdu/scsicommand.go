package pdu

import "encoding/binary"

// SCSICommand is a SCSI command (RFC 7143 11.3):
//
//	 0     I | 0x01
//	 1     F | R | W | . . | ATTR (3 bits)
//	 4     TotalAHSLength
//	 8     LUN
//	16     Initiator Task Tag
//	20     Expected Data Transfer Length
//	24     CmdSN
//	28     ExpStatSN
//	32-47  CDB, padded with zeros
//	48     AHS: extended CDB, bidirectional read length
//	 -     immediate data
type SCSICommand BHS

// BHS is the same header with the fields that PDUs share.
func (p *SCSICommand) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode.
func (p *SCSICommand) Init() *SCSICommand {
	*p = SCSICommand{0: byte(OpSCSICommand)}
	return p
}

// SCSICommandFields are what an SCSICommand says, but for what follows its header.
type SCSICommandFields struct {
	LUN              uint64
	ITT              uint32
	EDTL             uint32 // Expected Data Transfer Length
	CmdSN            SN
	CDB              [16]byte
	Attribute        TaskAttribute
	Immediate, Final bool
	Read, Write      bool
}

// Decode takes the header apart.
func (p *SCSICommand) Decode() SCSICommandFields {
	b := p.BHS()
	return SCSICommandFields{
		LUN: b.LUN(), ITT: b.ITT(), EDTL: p.ExpectedDataTransferLength(), CmdSN: b.CmdSN(),
		CDB: *p.CDB(), Attribute: p.Attribute(), Immediate: b.Immediate(), Final: b.Final(), Read: p.Read(), Write: p.Write(),
	}
}

// InTurn reports that the command takes its turn by CmdSN and asks for no other order: it
// is not immediate, and untagged or SIMPLE.
func (p *SCSICommand) InTurn() bool {
	return !p.BHS().Immediate() && p.Attribute() <= AttributeSimple
}

// Read is the R bit: the command expects input data.
func (p *SCSICommand) Read() bool { return p[1]&0x40 != 0 }

// SetRead sets the R bit.
func (p *SCSICommand) SetRead(v bool) { setBit(&p[1], 0x40, v) }

// Write is the W bit: the command expects output data.
func (p *SCSICommand) Write() bool { return p[1]&0x20 != 0 }

// SetWrite sets the W bit.
func (p *SCSICommand) SetWrite(v bool) { setBit(&p[1], 0x20, v) }

// Attribute is the task attribute.
func (p *SCSICommand) Attribute() TaskAttribute { return TaskAttribute(p[1] & 0x07) }

// SetAttribute sets the task attribute.
func (p *SCSICommand) SetAttribute(v TaskAttribute) { p[1] = p[1]&^0x07 | byte(v)&0x07 }

// ExpectedDataTransferLength is the number of bytes that the initiator
// expects to transfer; for a bidirectional command those of the write.
func (p *SCSICommand) ExpectedDataTransferLength() uint32 { return binary.BigEndian.Uint32(p[20:24]) }

// SetExpectedDataTransferLength sets the number of bytes that the
// initiator expects to transfer.
func (p *SCSICommand) SetExpectedDataTransferLength(v uint32) {
	binary.BigEndian.PutUint32(p[20:24], v)
}

// CDB is the sixteen CDB bytes of the header; it aliases the header.
func (p *SCSICommand) CDB() *[16]byte { return (*[16]byte)(p[32:48]) }

// AppendCDB appends the whole CDB to dst: the sixteen bytes of the header and
// those of an extended CDB in ahs, the additional header segments that follow
// it. The error wraps ErrAHS.
func (p *SCSICommand) AppendCDB(dst, ahs []byte) ([]byte, error) {
	extended, _, err := FindAHS(ahs, AHSExtendedCDB)
	if err != nil {
		return dst, err
	}
	dst = append(dst, p[32:48]...)
	return append(dst, extended.Data...), nil
}

// TaskAttribute is the SAM-5 task attribute of a command (RFC 7143 11.3.1).
type TaskAttribute uint8

// Task attributes.
const (
	AttributeUntagged    TaskAttribute = 0
	AttributeSimple      TaskAttribute = 1
	AttributeOrdered     TaskAttribute = 2
	AttributeHeadOfQueue TaskAttribute = 3
	AttributeACA         TaskAttribute = 4
)
